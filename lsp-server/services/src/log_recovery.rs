//! Reopens a log that could not be written because the disk was full or did not answer. It needs no
//! restart, and nobody waits for it.

use crate::Services;
use crate::derived_state::DerivedInputs;
use anyhow::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two attempts.
const RETRY: Duration = Duration::from_secs(1);

/// The time of the last attempt to reopen the log.
#[derive(Default)]
pub struct LogRecovery {
    tried: Option<Instant>,
}

impl LogRecovery {
    /// Starts an attempt if one is due. It is cheap to call often.
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
    // Only one attempt runs at a time, and none while something is forgotten.
    let Some(change) = services.adapters.try_change() else { return Ok(()) };
    let inputs = DerivedInputs::of(change.registry(), &services.adapters.model().sha256);
    let reopening = services.clone();
    let checkpoint = host::tasks::blocking(move || {
        reopening.recorder.log().reopen()?;
        // The folds may hold events that were never on disk. Reading the log again removes them.
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
