//! A log that could not be written, for want of room or because the disk did not answer, is opened
//! again once that is possible: without a restart, and with nobody waiting for it.

use crate::services::Services;
use crate::services::derived_state::DerivedInputs;
use anyhow::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it is tried.
const RETRY: Duration = Duration::from_secs(1);

/// When the log was last tried to be opened again.
#[derive(Default)]
pub struct LogRecovery {
    tried: Option<Instant>,
}

impl LogRecovery {
    /// Cheap to call often.
    pub fn tick(&mut self, services: &Arc<Services>) {
        let waits = self.tried.is_some_and(|tried| tried.elapsed() < RETRY);
        if waits || !services.recorder.has_outage() {
            return;
        }
        self.tried = Some(Instant::now());
        let services = services.clone();
        tokio::spawn(async move {
            if let Err(error) = reopen(&services).await {
                tracing::debug!("the log is not open yet: {error:#}");
            }
        });
    }
}

async fn reopen(services: &Arc<Services>) -> Result<()> {
    // One try at a time, and none while something is forgotten.
    let Some(change) = services.adapters.try_change() else { return Ok(()) };
    let inputs = DerivedInputs::of(change.registry(), &services.adapters.model().sha256);
    let reopening = services.clone();
    let checkpoint = tokio::task::spawn_blocking(move || {
        reopening.recorder.log().reopen()?;
        // What was never on disk is in the folds, and nowhere else.
        reopening.recorder.read_again(&inputs)
    })
    .await??;
    drop(change);
    if let Some(checkpoint) = checkpoint {
        services.checkpoints.keep(&services.recorder, checkpoint);
    }
    services.recorder.end_outage();
    tracing::info!("events are recorded again");
    Ok(())
}
