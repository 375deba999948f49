//! What leaves for the team and what comes from it. The coordinator's side is the package `team`;
//! here a contribution is made and a version of the shared part is checked, kept and tried.

use crate::adapters::registry::{Candidate, Entry, Registry, TEAM_JOB};
use crate::adapters::team::{Contributed, Ledger, Outcome, Received, TeamFiles};
use crate::app::App;
use crate::config::Config;
use crate::learning::contribution::{EPISODES_MAX, Request};
use crate::learning::trial_runner;
use crate::services::adapter_service::ServedModel;
use anyhow::{Context, Result, ensure};
use feedback::job::UpdateReport;
use models::adapter::LoraAdapter;
use models::file::hex;
use models::gguf::Gguf;
use models::team::compose::{compose, private_part};
use models::team::contribution::{Contribution, Limits, contribute, normal};
use models::team::core::Core;
use models::team::delta;
use models::team::frame::Frame;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::oneshot;

/// The version of the messages between Hone and the package `team`.
pub const TEAM_FORMAT: u32 = 1;

/// The largest message that is read, in bytes: a chain of deltas as hex digits.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// The longest chain of deltas. A machine that was away for longer gets the whole.
const CHAIN_MAX: usize = 1_000;

/// The longest wait until the supervisor, which may be in an update, has learned for the team.
const CONTRIBUTION_LIMIT: Duration = Duration::from_secs(1_800);

/// How often a version is composed with the private part before it is given up. A trial may end, or
/// an update may come, while the candidate is checked.
const ATTEMPTS: usize = 5;

/// Learning goes on from another adapter than the one that a version was composed with.
#[derive(Debug, thiserror::Error)]
#[error("another adapter is learned from since; the version is tried when the next one comes")]
struct HeadChanged;

/// How far a received norm may be above its limit because of rounding.
const NORM_SLACK: f64 = 1.01;

/// How far the norm of noise may be above its expected value. Its deviation is a third of a percent
/// with as many numbers as the default model has.
const NOISE_SLACK: f64 = 1.05;

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

/// A version of the shared part, as the package `team` hands it over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionMessage {
    pub format: u32,
    pub frame: String,
    pub version: u64,
    pub core: String,
    /// The version that the chain begins at. 0 is that of all zeros.
    pub from: u64,
    /// Deltas as hex digits, each with the version that it leads to.
    pub chain: Vec<Link>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub version: u64,
    pub delta: String,
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
            "the round has {members} member(s); team.minimum_members asks for {}",
            settings.minimum_members
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
        let ledger = tokio::task::spawn_blocking(move || files.ledger()).await??;
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

    /// How many labels the next contribution would learn from.
    pub async fn labels_for_team(&self) -> Result<usize> {
        let files = self.team_files();
        let ledger = tokio::task::spawn_blocking(move || files.ledger()).await??;
        let contributed = ledger.taken_up();
        Ok(self.services.recorder.recent(EPISODES_MAX, &contributed).episodes.len())
    }

    /// Takes a version of the shared part from the message in this file. It is kept for the next
    /// contribution, and serves once it has passed what every candidate must pass.
    pub async fn receive(&self, message: PathBuf) -> Result<Received> {
        let config = self.services.settings.current();
        self.follow_team().await?;
        let (frame, before) = self.frame_and_core().await?;
        let files = self.team_files();
        let at_ms = self.services.clock.unix_ms();
        let received = tokio::task::spawn_blocking(move || -> Result<Option<Core>> {
            let message = read_message(&message)?;
            let core = follow(&frame, &before, &message)?;
            if core == before {
                // A daemon that ended in the middle of the check has noted nothing of it.
                let noted = files.ledger()?.received.map_or(0, |received| received.version);
                return Ok((noted != core.version).then_some(core));
            }
            let limit = norm_limit(&config, core.version, core.numbers().len());
            ensure!(
                core.norm() <= limit,
                "version {} has the norm {:.2}; {limit:.2} is the most that so many rounds give",
                core.version,
                core.norm()
            );
            files.write_core(&frame, &core)?;
            Ok(Some(core))
        });
        match received.await?? {
            Some(_) => self.offer_shared().await,
            None => {
                let (_, core) = self.frame_and_core().await?;
                let (outcome, version) = (Outcome::Same, core.version);
                Ok(Received { at_ms, version, outcome, reason: None })
            }
        }
    }

    /// Tries the shared part that was received last, together with the private part that learning
    /// goes on from. If that changes in the meantime, it is composed anew.
    pub async fn offer_shared(&self) -> Result<Received> {
        let mut tried = self.try_shared().await;
        for _ in 1..ATTEMPTS {
            match &tried {
                Err(error) if error.is::<HeadChanged>() => tried = self.try_shared().await,
                _ => break,
            }
        }
        tried
    }

    async fn try_shared(&self) -> Result<Received> {
        let (frame, core) = self.frame_and_core().await?;
        self.try_core(frame, core).await
    }

    async fn try_core(&self, frame: Frame, core: Core) -> Result<Received> {
        let services = &self.services;
        services.adapters.serving().check_writable()?;
        let at_ms = services.clock.unix_ms();
        let (registry, version) = (services.adapters.serving(), core.version);
        let parent = registry.head();
        let composed =
            tokio::task::spawn_blocking(move || candidate(&registry, &frame, &core, at_ms));
        let made = composed.await??;
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
        let received = Received { at_ms, version, outcome, reason };
        let (files, noted) = (self.team_files(), received.clone());
        // While this change lives, nobody else changes the ledger.
        let change = services.adapters.change().await;
        let (_, written) = change
            .blocking(move |_| -> Result<()> {
                let mut ledger = files.ledger()?;
                ledger.received = Some(noted);
                files.write_ledger(&ledger)
            })
            .await?;
        written?;
        Ok(received)
    }

    /// After something was forgotten, the adapters that learned from it are gone, and the shared
    /// part with them. It is tried again, without them.
    pub(super) async fn offer_shared_again(&self) -> Result<()> {
        if self.services.settings.current().team.address.is_none() {
            return Ok(());
        }
        let (_, core) = self.frame_and_core().await?;
        if core.version > 0 {
            self.offer_shared().await?;
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
        TeamFiles::beside(&self.paths.adapters())
    }

    async fn frame_and_core(&self) -> Result<(Frame, Core)> {
        let (model, files) = (self.services.adapters.model().clone(), self.team_files());
        let read = move || {
            let frame = frame(&model)?;
            let core = files.core(&frame);
            Ok((frame, core))
        };
        tokio::task::spawn_blocking(read).await?
    }
}

/// The largest norm that a version can have. Each is the one before plus a mean of contributions,
/// of which noise may be the larger part: it has as many dimensions as there are numbers.
fn norm_limit(config: &Config, version: u64, numbers: usize) -> f64 {
    let team = &config.team;
    let noise = team.noise * (numbers as f64).sqrt() / team.minimum_members as f64;
    version as f64 * config.lab.team_max_norm * (NORM_SLACK + NOISE_SLACK * noise)
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

fn read_message(path: &Path) -> Result<VersionMessage> {
    let name = || path.display().to_string();
    let bytes = std::fs::metadata(path).with_context(name)?.len();
    ensure!(bytes <= MESSAGE_BYTES_MAX, "{}: over {MESSAGE_BYTES_MAX} bytes", name());
    let text = std::fs::read(path).with_context(name)?;
    serde_json::from_slice(&text).context("it is no message of a team's version")
}

/// The version that a message leads to, from the one that is here.
///
/// # Errors
/// It is for another base model, older than what is here, damaged, or begins at a version that is
/// not here.
fn follow(frame: &Frame, here: &Core, message: &VersionMessage) -> Result<Core> {
    ensure!(
        message.format == TEAM_FORMAT,
        "the message has format {}, this Hone reads {TEAM_FORMAT}; update both",
        message.format
    );
    ensure!(
        message.frame == hex(&frame.sha256()),
        "the team shares an adapter for another base model; serve the team's model"
    );
    ensure!(
        message.version >= here.version,
        "version {} is older than {}, which is here; the coordinator has lost versions. If the \
         team begins anew, delete shared.core in the folder `team` of Hone's home",
        message.version,
        here.version
    );
    if message.version == here.version {
        ensure!(
            message.core == hex(&here.sha256(frame)),
            "version {} is another than the one of this number that is here",
            message.version
        );
        return Ok(here.clone());
    }
    ensure!(message.chain.len() <= CHAIN_MAX, "a chain of {} deltas", message.chain.len());
    let mut core = match message.from {
        0 => Core::zero(frame),
        from if from == here.version => here.clone(),
        from => anyhow::bail!("the deltas begin at version {from}, here is {}", here.version),
    };
    for link in &message.chain {
        ensure!(link.version > core.version, "the deltas are not in order");
        let delta = unhex(&link.delta).context("a delta is not in hex digits")?;
        core = delta::decode(frame, &core, &delta, link.version)
            .with_context(|| format!("the delta to version {}", link.version))?;
    }
    let is_it = core.version == message.version && hex(&core.sha256(frame)) == message.core;
    ensure!(is_it, "the deltas do not lead to version {}", message.version);
    Ok(core)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
            _ => None,
        })
        .collect()
}

/// The candidate with this shared part and the private part of the head.
fn candidate(registry: &Registry, frame: &Frame, core: &Core, at_ms: u64) -> Result<Candidate> {
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
    Ok(Candidate { entry, adapter: path, optimizer: None })
}

#[cfg(test)]
mod tests;
