//! When a checkpoint of the log is written: on a thread of its own, from the log alone, so that
//! nobody waits for it and no lock is held.

use crate::services::Services;
use crate::services::derived_state::{CHECKPOINT_EVENTS, DerivedInputs, DerivedState};
use crate::services::recorder::Recorder;
use feedback::checkpoint::Checkpoint;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Default)]
pub struct Checkpoints {
    /// Log position at which the next one is due.
    due: AtomicU64,
    under_way: AtomicBool,
    /// What was logged last: a full disk is full at every try.
    trouble: Mutex<Option<String>>,
}

impl Checkpoints {
    /// Nobody holds a second copy of the derived state at this moment.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        !self.under_way.load(Ordering::Relaxed)
    }

    /// A checkpoint covers the log up to here, or is about to.
    pub fn after(&self, next_seq: u64) {
        self.due.store(next_seq.saturating_add(CHECKPOINT_EVENTS), Ordering::Relaxed);
    }

    /// Writes what was just read.
    pub fn keep(self: &Arc<Self>, recorder: &Arc<Recorder>, checkpoint: Checkpoint) {
        self.after(checkpoint.next_seq);
        let (checkpoints, log) = (self.clone(), recorder.log().clone());
        tokio::task::spawn_blocking(move || {
            let kept = log.save_checkpoint(&checkpoint);
            checkpoints.tell(kept.err().map(|error| error.to_string()));
        });
    }

    /// A checkpoint that fails costs the next start some time, and nobody else anything.
    fn tell(&self, trouble: Option<String>) {
        let mut told = self.trouble.lock();
        if let Some(reason) = trouble.as_ref().filter(|reason| told.as_ref() != Some(reason)) {
            tracing::warn!("the next start will take longer: {reason}");
        }
        *told = trouble;
    }
}

/// Writes a checkpoint where one is due. Cheap to call often.
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
        let adapters = &services.adapters;
        let inputs = DerivedInputs::of(&adapters.serving(), &adapters.model().sha256);
        let kept = DerivedState::keep(&**services.recorder.log(), &inputs);
        services.checkpoints.tell(kept.err().map(|error| format!("{error:#}")));
        services.checkpoints.under_way.store(false, Ordering::Relaxed);
    });
}
