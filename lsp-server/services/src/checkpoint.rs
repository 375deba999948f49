//! Writes checkpoints of the log. A thread of their own writes them from the log alone, so that
//! nobody waits and no lock is held.

use crate::Services;
use crate::derived_state::{CHECKPOINT_EVENTS, DerivedInputs, DerivedState};
use crate::recorder::Recorder;
use feedback::checkpoint::Checkpoint;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Default)]
pub struct Checkpoints {
    /// The log position at which the next checkpoint is due.
    due: AtomicU64,
    under_way: AtomicBool,
    /// The last error that was logged. It is kept so that a full disk is not logged at every
    /// attempt.
    trouble: Mutex<Option<String>>,
}

impl Checkpoints {
    /// Returns whether no checkpoint is being written. Then only one copy of the derived state is
    /// in memory. Only tests ask.
    pub fn is_idle(&self) -> bool {
        !self.under_way.load(Ordering::Relaxed)
    }

    /// Notes that a checkpoint covers the log up to here, or soon will.
    pub fn after(&self, next_seq: u64) {
        self.due.store(next_seq.saturating_add(CHECKPOINT_EVENTS), Ordering::Relaxed);
    }

    /// Writes a checkpoint of what was just read from the log.
    pub fn keep(self: &Arc<Self>, recorder: &Arc<Recorder>, checkpoint: Checkpoint) {
        self.after(checkpoint.next_seq);
        let (checkpoints, log) = (self.clone(), recorder.log().clone());
        tokio::task::spawn_blocking(move || {
            let kept = log.save_checkpoint(&checkpoint);
            checkpoints.log_outcome(kept.err().map(|error| error.to_string()));
        });
    }

    /// Logs a failure, if it is a new one. A failed checkpoint only makes the next start slower.
    fn log_outcome(&self, trouble: Option<String>) {
        let mut logged = self.trouble.lock();
        if let Some(reason) = trouble.as_ref().filter(|reason| logged.as_ref() != Some(reason)) {
            tracing::warn!("the next start will take longer: {reason}");
        }
        *logged = trouble;
    }
}

/// Writes a checkpoint if one is due. It is cheap to call often.
pub fn tick(services: &Arc<Services>) {
    let (checkpoints, next_seq) = (&services.checkpoints, services.recorder.next_seq());
    if next_seq < checkpoints.due.load(Ordering::Relaxed)
        || checkpoints.under_way.swap(true, Ordering::Relaxed)
    {
        return;
    }
    checkpoints.after(next_seq);
    let services = services.clone();
    tokio::task::spawn_blocking(move || {
        let _under_way = UnderWay(&services.checkpoints);
        let adapters = &services.adapters;
        let inputs = DerivedInputs::of(&adapters.serving(), &adapters.model().sha256);
        let kept = DerivedState::write_checkpoint(&**services.recorder.log(), &inputs);
        services.checkpoints.log_outcome(kept.err().map(|error| format!("{error:#}")));
    });
}

/// Notes that no checkpoint is under way when it is dropped, also by a panic.
struct UnderWay<'a>(&'a Checkpoints);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.store(false, Ordering::Relaxed);
    }
}
