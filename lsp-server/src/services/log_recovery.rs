//! A log that could not be written, for want of room or of a disk that answers, is
//! opened again once it can be: without a restart, and with nobody waiting for it.

use crate::app::Daemon;
use anyhow::Result;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often it is tried.
const RETRY: Duration = Duration::from_secs(1);

/// The time between an event that could not be recorded and the log's being open again.
#[derive(Default)]
pub struct Outage(Mutex<State>);

#[derive(Default)]
struct State {
    /// Why nothing is recorded now.
    reason: Option<String>,
    /// Outages that began and outages that ended.
    turns: u64,
    tried: Option<Instant>,
}

impl Outage {
    /// Notes that an event was not recorded; `true` for the first.
    pub fn begin(&self, reason: String) -> bool {
        let mut state = self.0.lock();
        let is_first = state.reason.replace(reason).is_none();
        state.turns += u64::from(is_first);
        is_first
    }

    /// Answers what the reason was.
    fn end(&self) -> Option<String> {
        let mut state = self.0.lock();
        let reason = state.reason.take();
        state.turns += u64::from(reason.is_some());
        reason
    }

    pub fn reason(&self) -> Option<String> {
        self.0.lock().reason.clone()
    }

    /// Another number, if an outage began or ended since: then nobody can tell
    /// whether what was recorded meanwhile is there.
    pub fn turns(&self) -> u64 {
        self.0.lock().turns
    }

    fn is_due(&self) -> bool {
        let mut state = self.0.lock();
        let waits = state.tried.is_some_and(|tried| tried.elapsed() < RETRY);
        let due = state.reason.is_some() && !waits;
        if due {
            state.tried = Some(Instant::now());
        }
        due
    }
}

/// Cheap to call often.
pub fn tick(daemon: &Arc<Daemon>) {
    if daemon.outage.is_due() {
        let daemon = daemon.clone();
        tokio::spawn(async move {
            if let Err(error) = reopen(&daemon).await {
                tracing::debug!("the log is not open yet: {error:#}");
            }
        });
    }
}

async fn reopen(daemon: &Arc<Daemon>) -> Result<()> {
    // One try at a time, and none while something is forgotten.
    let Ok(_alone) = daemon.swapping.try_lock() else { return Ok(()) };
    let reading = daemon.clone();
    tokio::task::spawn_blocking(move || {
        reading.event_log().reopen()?;
        // What was never on disk is in the folds, and nowhere else.
        reading.read_again()
    })
    .await??;
    let reason = daemon.outage.end();
    let mut learner = daemon.learner.lock();
    if learner.last_error == reason {
        learner.last_error = None;
    }
    tracing::info!("events are recorded again");
    Ok(())
}
