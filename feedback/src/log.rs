//! Where events are kept: a small trait, its in-memory form for tests, and
//! [`crate::sled_log`] for real.

use crate::checkpoint::Checkpoint;
use crate::event::{Event, EventKind};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(
        "{path}: the event log is in use by another Hone process; stop it with `hone stop`, \
         or set HONE_HOME to another folder"
    )]
    InUse { path: PathBuf },
    #[error("{path}: cannot open the event log: {reason}; move the folder away to start afresh")]
    Open { path: PathBuf, reason: String },
    #[error("{path}: the event log is damaged: {reason}")]
    Damaged { path: PathBuf, reason: String },
    #[error("{path}: cannot write the event log: {reason}; free disk space or check permissions")]
    Write { path: PathBuf, reason: String },
    #[error("{path}: of no use, so all of the event log is read: {reason}")]
    Checkpoint { path: PathBuf, reason: String },
    #[error("{path}: cannot read event {seq}: {reason}")]
    Read { path: PathBuf, seq: u64, reason: String },
    #[error(
        "{path}: event {seq} has format {found}, this Hone knows up to {known}; \
         update Hone (nothing was changed)"
    )]
    NewerFormat { path: PathBuf, seq: u64, found: u8, known: u8 },
}

pub trait EventLog: Send + Sync {
    /// Appends and numbers an event. Durable after the next [`EventLog::flush`].
    fn append(&self, at_ms: u64, kind: EventKind) -> Result<Event, LogError>;

    /// Returns once everything appended before is on disk.
    fn flush(&self) -> Result<(), LogError>;

    /// Visits events in order, from `from_seq` on, until told to stop.
    fn scan(
        &self,
        from_seq: u64,
        visit: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<(), LogError>;

    /// Forgets every event that `keep` says no to: when this returns, nothing
    /// of them is left on disk. The others keep their numbers, and no number is
    /// given twice. Events may be appended meanwhile; they are asked about too.
    fn retain(&self, keep: &(dyn Fn(&Event) -> bool + Sync)) -> Result<(), LogError>;

    /// What was once on disk and is not any more, though nobody forgot it.
    fn damage(&self) -> Option<String> {
        None
    }

    /// Opens it again after a write failed, if there is a chance by now. Takes a
    /// while; whoever appends meanwhile is refused at once. What was never on disk
    /// may be gone.
    fn reopen(&self) -> Result<(), LogError> {
        Ok(())
    }

    /// The generation of the log: a number that changes when something is forgotten.
    fn generation(&self) -> u64 {
        0
    }

    /// What was last kept of what was made of this log.
    fn checkpoint(&self) -> Result<Option<Checkpoint>, LogError> {
        Ok(None)
    }

    /// Keeps what was made of this log, until something is forgotten. `false` if
    /// that was the case since it was made: then nothing was kept.
    fn save_checkpoint(&self, checkpoint: &Checkpoint) -> Result<bool, LogError> {
        let _ = checkpoint;
        Ok(false)
    }
}

#[derive(Default)]
pub struct MemoryLog {
    events: Mutex<Vec<Event>>,
    next_seq: AtomicU64,
    generation: AtomicU64,
    checkpoint: Mutex<Option<Checkpoint>>,
}

impl MemoryLog {
    fn events(&self) -> std::sync::MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Checkpoint>> {
        self.checkpoint.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl EventLog for MemoryLog {
    fn append(&self, at_ms: u64, kind: EventKind) -> Result<Event, LogError> {
        let mut events = self.events();
        let event = Event { seq: self.next_seq.fetch_add(1, Ordering::Relaxed), at_ms, kind };
        events.push(event.clone());
        Ok(event)
    }

    fn flush(&self) -> Result<(), LogError> {
        Ok(())
    }

    fn scan(
        &self,
        from_seq: u64,
        visit: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let _ =
            self.events().iter().filter(|event| event.seq >= from_seq).cloned().try_for_each(visit);
        Ok(())
    }

    fn retain(&self, keep: &(dyn Fn(&Event) -> bool + Sync)) -> Result<(), LogError> {
        self.events().retain(|event| keep(event));
        self.generation.fetch_add(1, Ordering::Relaxed);
        *self.kept() = None;
        Ok(())
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    fn checkpoint(&self) -> Result<Option<Checkpoint>, LogError> {
        Ok(self.kept().clone())
    }

    fn save_checkpoint(&self, checkpoint: &Checkpoint) -> Result<bool, LogError> {
        let mut kept = self.kept();
        let is_of_this = checkpoint.generation == self.generation();
        if is_of_this {
            *kept = Some(checkpoint.clone());
        }
        Ok(is_of_this)
    }
}
