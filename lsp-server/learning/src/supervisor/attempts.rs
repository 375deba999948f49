//! What becomes of updates that fail or are given up: how often they are tried, and how long the
//! next one waits.

use super::{Supervisor, UpdateCause};
use feedback::episode::Batch;
use services::health::TroubleSource;
use services::learner_status::LearnerState;
use std::time::Duration;

/// The time before a failed update is tried again. Every further failure doubles it.
const FIRST_BACKOFF: Duration = Duration::from_secs(5);
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// The number of attempts with the same batch. Then it is set aside until another update shows
/// whether the batch is the cause.
const ATTEMPTS: u32 = 3;

/// The update was given up although nothing failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the update was given up: {reason}")]
pub(super) struct GivenUp {
    pub(super) reason: String,
    /// The machine lacks what an update needs, so the next one waits.
    pub(super) lacks_resources: bool,
}

impl GivenUp {
    pub(super) fn unwanted(reason: String) -> GivenUp {
        GivenUp { reason, lacks_resources: false }
    }
}

impl Supervisor {
    /// Learns from a batch that failed before another update succeeded. If it fails again, it is
    /// given up.
    pub(super) async fn try_once_more(
        &mut self,
        suspect: Batch,
        cause: UpdateCause,
    ) -> Option<Duration> {
        self.status.send_modify(|status| status.state = LearnerState::Training);
        let updated = self.update(&suspect, cause).await;
        self.rest(LearnerState::Idle);
        match updated {
            Ok(left_out) => self.learned(suspect, &left_out),
            Err(error) => match error.downcast::<GivenUp>() {
                Ok(given_up) => {
                    tracing::info!("{given_up}");
                    // After something was forgotten, what is left of it waits again by itself.
                    let is_current = self.services.recorder.is_current(&suspect);
                    self.suspect = Some(suspect).filter(|_| is_current);
                }
                Err(error) => {
                    self.child = None;
                    let labels = printable::count(suspect.episodes.len(), "label");
                    tracing::warn!("{labels} given up: {error:#}");
                }
            },
        }
        None
    }

    /// Gives back the batch of an update that was given up. Returns how long to wait before the
    /// next.
    pub(super) fn given_up(&mut self, batch: Batch, given_up: &GivenUp) -> Option<Duration> {
        tracing::info!("{given_up}");
        self.services.recorder.return_batch(batch);
        self.rest(LearnerState::Idle);
        if !given_up.lacks_resources {
            return None;
        }
        self.child = None;
        self.short_of_resources = self.short_of_resources.saturating_add(1);
        Some(backoff(self.short_of_resources))
    }

    /// Notes a failure. Returns how long to wait before the next attempt.
    pub(super) fn failed(&mut self, batch: Batch, error: &anyhow::Error) -> Duration {
        self.child = None;
        self.failures += 1;
        let mut reason = format!("{error:#}");
        if self.failures.is_multiple_of(ATTEMPTS) {
            match self.suspect.take() {
                Some(suspect) => {
                    self.services.recorder.return_batch(suspect);
                    self.services.recorder.return_batch(batch);
                }
                None => {
                    let labels = printable::count(batch.episodes.len(), "label");
                    reason = format!(
                        "{reason}; {labels} set aside after {ATTEMPTS} attempts, until \
                         another update succeeds or the daemon starts again"
                    );
                    self.suspect = Some(batch);
                }
            }
        } else {
            self.services.recorder.return_batch(batch);
        }
        tracing::warn!("update failed: {reason}");
        self.services.health.report(TroubleSource::Learner, reason.clone());
        self.status.send_modify(|status| status.failure = Some(reason));
        self.rest(LearnerState::Backoff);
        backoff(self.failures)
    }
}

/// Returns how long to wait after so many attempts in a row that came to nothing.
fn backoff(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    FIRST_BACKOFF.saturating_mul(1 << doublings).min(MAX_BACKOFF)
}
