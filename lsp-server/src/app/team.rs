//! What leaves for the team and what comes from it. The coordinator's side is the package `team`;
//! here a contribution is made and a version of the shared part is checked, kept and tried.

use crate::app::App;
use adapters::registry::{AdapterCandidate, Entry, Registry, TEAM_JOB};
use adapters::team::{Contributed, Joined, Ledger, Outcome, Received, TeamFiles};
use anyhow::{Context, Result, ensure};
use feedback::job::UpdateReport;
use learning::contribution::{EPISODES_MAX, Request};
use learning::trial_runner;
use models::adapter::LoraAdapter;
use models::file::hex;
use models::gguf::Gguf;
use models::team::compose::{compose, private_part};
use models::team::contribution::{Contribution, Limits, contribute, normal};
use models::team::core::Core;
use models::team::frame::Frame;
use rand::Rng;
use serde::{Deserialize, Serialize};
use services::adapter_service::ServedModel;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;
use version::{Bounds, follow, read_message};

pub mod version;

/// The version of the messages between Hone and the package `team`.
pub const TEAM_FORMAT: u32 = 1;

/// The most members of a round. Sums of more do not fit into the numbers of secure aggregation.
const MEMBERS_MAX: usize = 65_535;

/// The longest wait until the supervisor, which may be in an update, has learned for the team.
const CONTRIBUTION_LIMIT: Duration = Duration::from_secs(1_800);

/// How often a version is composed with the private part before it is given up. A trial may end, or
/// an update may come, while the candidate is checked.
const ATTEMPTS: usize = 5;

/// Learning continues from another adapter than the one that a version was composed with.
#[derive(Debug, thiserror::Error)]
#[error("another adapter is learned from since; the version is tried when the next one comes")]
struct HeadChanged;

/// What a member sends of what it learned, as the package `team` gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContributionMessage {
    pub format: u32,
    /// SHA-256 of the frame, as hex digits.
    pub frame: String,
    /// The version that was learned from, and its checksum.
    pub version: u64,
    pub core: String,
    /// The change, in steps of 2⁻¹⁵.
    pub numbers: Vec<i16>,
}

impl App {
    /// Learns for the team and makes a contribution of it, for a round with this many members.
    /// `epsilon` is what all contributions will have spent then, if they have noise.
    pub async fn contribute(
        &self,
        members: usize,
        epsilon: Option<f64>,
    ) -> Result<ContributionMessage> {
        let services = &self.services;
        let config = services.settings.current();
        let (settings, max_norm) = (&config.team, config.lab.team_max_norm);
        let address = self.follow_team().await?;
        ensure!(
            members >= settings.minimum_members,
            "the round has {}; team.minimum_members asks for {}",
            printable::count(members, "member"),
            settings.minimum_members
        );
        ensure!(
            members <= MEMBERS_MAX,
            "the round has {members} members; {MEMBERS_MAX} are the most"
        );
        if settings.noise > 0.0 {
            let epsilon = epsilon.context("with team.noise, --epsilon must say what is spent")?;
            ensure!(
                epsilon <= settings.epsilon_limit,
                "the contribution would bring ε to {epsilon}; team.epsilon_limit is {}",
                settings.epsilon_limit
            );
        }
        let (frame, core) = self.frame_and_core().await?;
        let (files, version) = (self.team_files(), core.version);
        let ledger = host::tasks::blocking(move || files.ledger()).await??;
        if settings.noise > 0.0 {
            check_epsilon(epsilon, &ledger)?;
        }
        let (answer, answered) = oneshot::channel();
        let requests = self.contributions.get().context("this process does not learn")?;
        ensure!(
            ledger.contributed_to().is_none_or(|newest| newest < version),
            "version {version} has a contribution of this machine already; the next one comes with \
             the next round"
        );
        let contributed = ledger.taken_up();
        let request = Request { core: core.clone(), contributed, answer };
        ensure!(requests.try_send(request).is_ok(), "another contribution is under way");
        let learned = tokio::time::timeout(CONTRIBUTION_LIMIT, answered).await;
        let learned =
            learned.context("an update took too long")?.context("learning has ended")??;
        let limits = Limits {
            max_norm,
            // At least this many members add their share.
            noise: settings.noise * max_norm / (settings.minimum_members as f64).sqrt(),
        };
        let (files, at_ms) = (self.team_files(), services.clock.unix_ms());
        let noise = settings.noise;
        // While this change lives, nothing is forgotten.
        let change = services.adapters.change().await;
        ensure!(
            services.recorder.is_current(&learned.batch),
            "a file was forgotten while the contribution was learned"
        );
        ensure!(
            services.settings.current().team.address.as_deref() == Some(&*address),
            "the team was left while the contribution was learned"
        );
        let made = change.blocking(move |_| {
            let made = record(&files, &frame, &core, &learned.change, limits, |ledger| {
                let (version, offers) = (core.version, learned.batch.offers());
                let made =
                    Contributed { at_ms, version, offers, forgotten: false, elsewhere: false };
                ledger.add(made, noise, epsilon);
            })?;
            Ok::<_, anyhow::Error>(ContributionMessage {
                format: TEAM_FORMAT,
                frame: hex(&frame.sha256()),
                version: core.version,
                core: hex(&core.sha256(&frame)),
                numbers: made.numbers,
            })
        });
        let (_, message) = made.await?;
        let message = message?;
        tracing::info!("contributed to the team's adapter, version {}", message.version);
        Ok(message)
    }

    /// Returns how many labels the next contribution would learn from.
    pub async fn labels_for_team(&self) -> Result<usize> {
        let files = self.team_files();
        let ledger = host::tasks::blocking(move || files.ledger()).await??;
        let contributed = ledger.taken_up();
        Ok(self.services.recorder.recent(EPISODES_MAX, &contributed).episodes.len())
    }

    /// Takes a version of the shared part from the message in this file. If what every candidate
    /// must pass does not refuse it, it is kept for the next contribution, and serves or is tried.
    pub async fn receive(&self, message: PathBuf) -> Result<Received> {
        let config = self.services.settings.current();
        self.follow_team().await?;
        let (frame, held) = self.frame_and_core().await?;
        let files = self.team_files();
        let at_ms = self.services.clock.unix_ms();
        let known = frame.clone();
        let read = host::tasks::blocking(move || -> Result<_> {
            let message = read_message(&message)?;
            let ledger = files.ledger()?;
            let joined = ledger.joined.unwrap_or(Joined { version: held.version, at_ms });
            let bounds = Bounds::of(&config, known.numbers(), joined, at_ms);
            let core = follow(&known, &held, &message, bounds)?;
            let before = if core == held {
                let (outcome, version) = (Outcome::Same, core.version);
                Some(Received { at_ms, version, core: message.core, outcome, reason: None })
            } else {
                // What was refused is refused again without another check, in every round.
                let sha256 = hex(&core.sha256(&known));
                ledger.received.filter(|last| was_refused(last, &sha256))
            };
            Ok((core, before))
        });
        match read.await?? {
            (_, Some(before)) => Ok(before),
            (core, None) => self.offer(&frame, &core).await,
        }
    }

    /// Tries a shared part together with the private part that learning continues from. If that
    /// changes in the meantime, it is composed anew.
    async fn offer(&self, frame: &Frame, core: &Core) -> Result<Received> {
        let mut tried = self.try_core(frame.clone(), core.clone()).await;
        for _ in 1..ATTEMPTS {
            match &tried {
                Err(error) if error.is::<HeadChanged>() => {
                    tried = self.try_core(frame.clone(), core.clone()).await;
                }
                _ => break,
            }
        }
        tried
    }

    async fn try_core(&self, frame: Frame, core: Core) -> Result<Received> {
        let services = &self.services;
        services.adapters.serving().check_writable()?;
        let at_ms = services.clock.unix_ms();
        let (registry, version) = (services.adapters.serving(), core.version);
        let parent = registry.head();
        let composed = host::tasks::blocking(move || {
            let made = candidate(&registry, &frame, &core, at_ms);
            (frame, core, made)
        });
        let (frame, core, made) = composed.await?;
        let made = made?;
        let file = made.adapter.clone();
        let still_wanted = |registry: &Registry| {
            ensure!(registry.head() == parent, HeadChanged);
            Ok(())
        };
        let tried = trial_runner::try_candidate(services, made, still_wanted).await;
        if tried.is_err() {
            let _ = std::fs::remove_file(file);
        }
        let reason = tried?.refusal;
        let outcome = match &reason {
            Some(_) => Outcome::Refused,
            None if services.settings.current().lab.trial => Outcome::Trial,
            None => Outcome::Serves,
        };
        tracing::info!("version {version} of the team's adapter: {outcome:?}");
        let received =
            Received { at_ms, version, core: hex(&core.sha256(&frame)), outcome, reason };
        let (files, noted) = (self.team_files(), received.clone());
        // While this change lives, nobody else changes the ledger.
        let change = services.adapters.change().await;
        let (_, written) = change.blocking(move |_| keep(&files, &frame, &core, noted)).await?;
        written?;
        Ok(received)
    }

    /// After something was forgotten, the adapters that learned from it are gone, and the shared
    /// part with them. It is tried again, without them.
    pub(super) async fn offer_shared_again(&self) -> Result<()> {
        if self.services.settings.current().team.address.is_none() {
            return Ok(());
        }
        let (frame, core) = self.frame_and_core().await?;
        if core.version > 0 {
            self.offer(&frame, &core).await?;
        }
        Ok(())
    }

    /// The address of the team, whose the files are from now on.
    ///
    /// # Errors
    /// This machine is in no team.
    async fn follow_team(&self) -> Result<String> {
        let address = self.services.settings.current().team.address.clone();
        let address = address.context("this machine is in no team; `hone team join` joins one")?;
        let (files, followed) = (self.team_files(), address.clone());
        let change = self.services.adapters.change().await;
        let (_, done) = change.blocking(move |_| files.follow_team(&followed)).await?;
        done?;
        Ok(address)
    }

    fn team_files(&self) -> TeamFiles {
        TeamFiles::next_to(&self.paths.adapters())
    }

    async fn frame_and_core(&self) -> Result<(Frame, Core)> {
        let (model, files) = (self.services.adapters.model().clone(), self.team_files());
        let read = move || {
            let frame = frame(&model)?;
            let core = files.core(&frame);
            Ok((frame, core))
        };
        host::tasks::blocking(read).await?
    }
}

fn frame(model: &ServedModel) -> Result<Frame> {
    Frame::of(&Gguf::open(&model.path)?, &model.sha256)
}

/// Clips and rounds what was learned, and notes it before anything leaves.
fn record(
    files: &TeamFiles,
    frame: &Frame,
    core: &Core,
    change: &[f32],
    limits: Limits,
    note: impl FnOnce(&mut Ledger),
) -> Result<Contribution> {
    ensure!(change.len() == core.numbers().len(), "the change has another size");
    // This generator is fit for secrets.
    let mut random = rand::rng();
    let noise = || normal(|| random.random());
    let made = contribute(change, &files.left(frame), limits, noise)?;
    let mut ledger = files.ledger()?;
    note(&mut ledger);
    files.write_ledger(&ledger)?;
    files.write_left(&made.left)?;
    Ok(made)
}

/// # Errors
/// Less would be spent than was spent before. The package `team` computes what is spent, and the
/// ledger only keeps it.
fn check_epsilon(epsilon: Option<f64>, ledger: &Ledger) -> Result<()> {
    ensure!(
        epsilon >= ledger.epsilon,
        "ε {:.3} is below what earlier contributions have spent; it only grows",
        epsilon.unwrap_or_default()
    );
    Ok(())
}

/// Returns true if the version with these numbers was refused when it last came.
fn was_refused(last: &Received, sha256: &str) -> bool {
    last.outcome == Outcome::Refused && last.core == sha256
}

/// Notes what became of a version, and keeps it as the base of contributions unless it was refused.
fn keep(files: &TeamFiles, frame: &Frame, core: &Core, received: Received) -> Result<()> {
    let mut ledger = files.ledger()?;
    if received.outcome != Outcome::Refused {
        if files.core(frame).version == 0 {
            ledger.joined = Some(Joined { version: core.version, at_ms: received.at_ms });
        }
        files.write_core(frame, core)?;
    }
    ledger.received = Some(received);
    files.write_ledger(&ledger)
}

/// The candidate with this shared part and the private part of the head.
fn candidate(
    registry: &Registry,
    frame: &Frame,
    core: &Core,
    at_ms: u64,
) -> Result<AdapterCandidate> {
    let head = registry.entry(registry.head());
    let adapter = match head {
        Some(entry) => Some(LoraAdapter::read(&registry.adapter_file(entry.version))?),
        None => None,
    };
    let private = adapter.as_ref().and_then(private_part);
    let mut composed = compose(frame, core, private.as_ref())?;
    if let Some(adapter) = &adapter {
        composed.invocation.clone_from(&adapter.invocation);
    }
    let version = registry.next_version();
    let (path, _) = registry.job_files(&format!("{TEAM_JOB}-{at_ms}-{version}"));
    let sha256 = composed.write(&path)?;
    let report = UpdateReport {
        job: format!("{TEAM_JOB} {}", core.version),
        candidate: version,
        adapter_sha256: sha256.clone(),
        // Nobody measured it; what it grew from has gone at least this far.
        kl_base: head.map_or(0.0, |entry| entry.report.kl_base),
        ..UpdateReport::default()
    };
    let entry = Entry {
        version,
        parent: registry.head(),
        sha256,
        base_sha256: frame.base_sha256.clone(),
        created_at_ms: at_ms,
        labels: (0, 0),
        // Of the offers on this machine it has learned through its parent alone.
        offers: vec![],
        history: None,
        forgotten: false,
        verdict: None,
        report,
    };
    Ok(AdapterCandidate { entry, adapter: path, optimizer: None })
}

#[cfg(test)]
mod tests;
