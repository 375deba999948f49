//! Supervises the learner: takes batches, watches the process, checks the adapters that it makes,
//! and swaps them in. A learner that crashes, hangs or reports something false costs one update and
//! never a completion.

mod attempts;
mod for_team;

use crate::preemption::LearnerPreemption;
use crate::process::{Ended, Learner, LearnerProgram};
use crate::resources::Resources;
use crate::{contribution, install, job};
use anyhow::Result;
use attempts::GivenUp;
use feedback::episode::Batch;
use feedback::event::OfferId;
use feedback::job::{Job, JobProgress, Phase, UpdateReport};
use services::Services;
use services::handed_prompts::HandedPrompts;
use services::health::TroubleSource;
use services::learner_status::{LearnerState, LearnerStatus};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// The most labelled episodes of one job: those that waited while the last one ran.
const MAX_JOB_EPISODES: usize = 64;

/// The time for which an idle learner keeps the base model in memory for the next job.
const WARM: Duration = Duration::from_secs(60);

/// The time between two checks while the machine lacks the resources for an update.
const RESOURCES_INTERVAL: Duration = Duration::from_secs(10);

/// The time between two checks whether a running update is still wanted.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// What the status says while the daemon checks what the learner made.
const CHECKING: &str = "checking the new adapter in pauses";

pub struct Supervisor {
    services: Arc<Services>,
    status: watch::Sender<LearnerStatus>,
    program: LearnerProgram,
    preemption: Arc<LearnerPreemption>,
    child: Option<Learner>,
    failures: u32,
    /// A batch whose updates have failed. If the next batch fails as often, the cause is none of
    /// the two, and both wait again. If another update succeeds, it gets one more attempt.
    suspect: Option<Batch>,
    /// Updates in a row that were given up for lack of memory or power.
    short_of_resources: u32,
    /// A random number that makes the files of a job differ from those of every earlier job. The
    /// learner of a daemon that died may still write its own.
    run_id: u32,
    next_job: u64,
    /// Requests to learn for the team, if anybody may make them.
    contributions: Option<mpsc::Receiver<contribution::Request>>,
    /// True if learning was on when the running update began. A user may ask for one update while
    /// learning is paused.
    was_learning: bool,
}

/// The cause of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateCause {
    /// Enough labels wait.
    Batch,
    /// The user asked. There is no minimum and no backoff.
    Now,
}

impl Supervisor {
    pub fn new(
        services: Arc<Services>,
        status: watch::Sender<LearnerStatus>,
        program: LearnerProgram,
        preemption: Arc<LearnerPreemption>,
    ) -> Supervisor {
        Supervisor {
            services,
            status,
            program,
            preemption,
            child: None,
            failures: 0,
            suspect: None,
            short_of_resources: 0,
            run_id: rand::random(),
            next_job: 1,
            contributions: None,
            was_learning: false,
        }
    }

    /// The same, which also learns for the team when it is asked to.
    pub fn with_contributions(self, requests: mpsc::Receiver<contribution::Request>) -> Supervisor {
        Supervisor { contributions: Some(requests), ..self }
    }

    pub async fn run(mut self, mut now: mpsc::Receiver<()>) {
        let mut not_before = Instant::now();
        loop {
            let cause = tokio::select! {
                asked = now.recv() => match asked {
                    Some(()) => UpdateCause::Now,
                    None => return,
                },
                request = contribution::next(&mut self.contributions) => {
                    self.contribute(request).await;
                    self.rest(LearnerState::Idle);
                    continue;
                }
                () = ready(&self.services, not_before) => UpdateCause::Batch,
                () = tokio::time::sleep(WARM), if self.child.is_some() => {
                    self.child = None;
                    continue;
                }
            };
            if cause == UpdateCause::Batch && !is_due(&self.services) {
                continue;
            }
            // This comes before any labels are taken, because the update could not be registered.
            if let Some(reason) = self.services.adapters.learning_refusal() {
                tracing::warn!("{reason}");
                continue;
            }
            let held_back = match cause {
                UpdateCause::Batch => self.reason_to_wait().await,
                UpdateCause::Now => None,
            };
            let is_held_back = held_back.is_some();
            self.status.send_modify(|status| status.held_back = held_back);
            if is_held_back {
                // The memory that a resting learner holds may be what the machine lacks.
                self.child = None;
                not_before = Instant::now() + RESOURCES_INTERVAL;
                continue;
            }
            if let Some(wait) = self.learn(cause).await {
                not_before = Instant::now() + wait;
            }
        }
    }

    /// Learns from the waiting labels, if there are any. Returns how long to wait after a failure.
    async fn learn(&mut self, cause: UpdateCause) -> Option<Duration> {
        let recorder = self.services.recorder.clone();
        let most = MAX_JOB_EPISODES.max(self.services.settings.current().lab.batch_episodes);
        // The state changes first. So at every moment a reader sees that labels wait or that an
        // update runs.
        self.status.send_modify(|status| status.state = LearnerState::Training);
        let Some(batch) = recorder.take_batch(most) else {
            self.rest(LearnerState::Idle);
            return None;
        };
        match self.update(&batch, cause).await {
            Ok(left_out) => {
                (self.failures, self.short_of_resources) = (0, 0);
                self.learned(batch, &left_out);
                self.status.send_modify(|status| status.failure = None);
                // A successful update shows that these sources have recovered.
                for source in
                    [TroubleSource::Learner, TroubleSource::Trial, TroubleSource::Adapters]
                {
                    self.services.health.clear(source);
                }
                self.rest(LearnerState::Idle);
                match self.suspect.take() {
                    Some(suspect) => self.try_once_more(suspect, cause).await,
                    None => None,
                }
            }
            Err(error) => match error.downcast::<GivenUp>() {
                Ok(given_up) => self.given_up(batch, &given_up),
                Err(error) => Some(self.failed(batch, &error)),
            },
        }
    }

    /// Notes that an update has learned from a batch, but for the offers that it has left out.
    /// Those wait for the next one.
    fn learned(&self, batch: Batch, left_out: &[OfferId]) {
        let offers = batch.offers();
        let waiting = left_out.iter().filter(|offer| offers.contains(offer)).count();
        if waiting > 0 {
            tracing::info!(
                "{} left for the next update, because the prompts of all need more memory than an \
                 update may use for them",
                printable::count(waiting, "label")
            );
        }
        self.remove_prompts(&batch, left_out);
        self.services.recorder.learned(batch, left_out);
    }

    /// Removes the prompts of a batch that nobody needs any more.
    fn remove_prompts(&self, batch: &Batch, left_out: &[OfferId]) {
        let Some(handed) = self.services.handed_prompts.clone() else { return };
        let completions = batch.episodes.iter().map(|episode| &episode.completion);
        let prompts: Vec<Vec<u32>> = completions
            .filter(|completion| !left_out.contains(&completion.id))
            .map(|completion| completion.base_prompt().to_vec())
            .collect();
        tokio::task::spawn_blocking(move || handed.remove(prompts.iter().map(Vec::as_slice)));
    }

    fn rest(&self, state: LearnerState) {
        self.status.send_modify(|status| {
            status.state = state;
            status.progress = None;
        });
    }

    /// The reason why no automatic update may start now, if there is one.
    async fn reason_to_wait(&self) -> Option<String> {
        let resources = resources().await?;
        let path = &self.services.adapters.model().path;
        let bytes = std::fs::metadata(path).map_or(0, |model| model.len());
        // A learner that still runs has the base model in memory already.
        let bytes = if self.child.is_some() { 0 } else { bytes };
        resources.reason_not_to_start(&self.services.settings.current().learning, bytes)
    }

    /// The reason why the running update should be given up, if there is one.
    async fn reason_to_give_up(
        &self,
        job: &Job,
        batch: &Batch,
        cause: UpdateCause,
    ) -> Option<GivenUp> {
        let services = &self.services;
        let settings = services.settings.current();
        let parent = job.parent.as_ref().map_or(0, |parent| parent.version);
        if !services.recorder.is_current(batch) {
            return Some(GivenUp::unwanted("a file was forgotten".into()));
        }
        let head = services.adapters.serving().head();
        if head != parent {
            return Some(GivenUp::unwanted(format!(
                "learning continues from v{head} and not from v{parent}"
            )));
        }
        if self.was_learning && !settings.learning.enabled {
            return Some(GivenUp::unwanted("learning was paused".into()));
        }
        if cause == UpdateCause::Now {
            return None;
        }
        let reason = resources().await?.reason_to_stop(&settings.learning)?;
        Some(GivenUp { reason, lacks_resources: true })
    }

    /// Runs one update, from the batch to the served adapter. Returns which offers of the batch it
    /// has left out.
    async fn update(&mut self, batch: &Batch, cause: UpdateCause) -> Result<Vec<OfferId>> {
        let settings = self.services.settings.current();
        self.was_learning = settings.learning.enabled;
        let limit_mb =
            resources().await.map_or(0, |resources| resources.learner_limit_mb(&settings.learning));
        let job = self.job(batch, limit_mb);
        let mut report = self.train(&job, batch, cause).await?;
        let offers = batch.offers();
        report.left_out.retain(|offer| offers.contains(offer));
        report.left_out.extend(self.set_aside(&offers));
        let left_out = report.left_out.clone();
        self.status.send_modify(|status| status.progress = Some(CHECKING.into()));
        install::install(&self.services, &job, batch, report).await?;
        Ok(left_out)
    }

    /// Returns the offers of the batch that is set aside. The labels up to the last one of a later
    /// batch count as learned, so each update names those that it did not learn from.
    fn set_aside(&self, learned: &[OfferId]) -> Vec<OfferId> {
        let offers = self.suspect.as_ref().map(Batch::offers).unwrap_or_default();
        offers.into_iter().filter(|offer| !learned.contains(offer)).collect()
    }

    fn job(&mut self, batch: &Batch, memory_limit_mb: u64) -> Job {
        let run = format!("{:08x}-{}", self.run_id, self.next_job);
        self.next_job += 1;
        job::update(&self.services, batch, &run, memory_limit_mb)
    }

    /// Runs a job. If the update is no longer wanted, it is cancelled.
    async fn train(
        &mut self,
        job: &Job,
        batch: &Batch,
        cause: UpdateCause,
    ) -> Result<UpdateReport> {
        let mut learner = match self.child.take() {
            Some(learner) => learner,
            None => {
                let handed = self.services.handed_prompts.as_ref().map(HandedPrompts::folder);
                Learner::start(&self.program, handed, self.preemption.clone())?
            }
        };
        let progress = |progress: &JobProgress| {
            self.status.send_modify(|status| status.progress = Some(describe(progress)));
        };
        let unwanted = self.until_unwanted(job, batch, cause);
        let ended = learner.run(job, progress, unwanted).await?;
        self.child = Some(learner);
        match ended {
            Ended::Done(report) => Ok(*report),
            Ended::Cancelled(reason) => {
                let cancelled = || GivenUp::unwanted("the learner cancelled it".into());
                Err(reason.unwrap_or_else(cancelled).into())
            }
        }
    }

    async fn until_unwanted(&self, job: &Job, batch: &Batch, cause: UpdateCause) -> GivenUp {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            if let Some(reason) = self.reason_to_give_up(job, batch, cause).await {
                return reason;
            }
        }
    }
}

fn describe(progress: &JobProgress) -> String {
    let phase = match progress.phase {
        Phase::Load => "reading the base model",
        Phase::Prompt => "computing prompts",
        Phase::Train => "training",
        Phase::Evaluate => "evaluating",
    };
    format!("{phase} {}/{}", progress.done, progress.total)
}

/// The machine's resources; `None` if they cannot be asked.
async fn resources() -> Option<Resources> {
    host::tasks::blocking(Resources::now).await.ok()
}

/// Returns whether enough labels wait for an update, and something can be learned.
fn is_due(services: &Services) -> bool {
    let config = services.settings.current();
    config.learning.enabled
        && services.recorder.labels_waiting() >= config.lab.batch_episodes
        && services.adapters.learning_refusal().is_none()
}

/// Resolves when an automatic update may start.
async fn ready(services: &Services, not_before: Instant) {
    let (mut labels, mut settings) =
        (services.recorder.label_changes(), services.settings.changes());
    while !is_due(services) {
        tokio::select! {
            _ = labels.changed() => {}
            _ = settings.changed() => {}
        }
    }
    sleep_until(not_before).await;
}

#[cfg(test)]
mod tests;
