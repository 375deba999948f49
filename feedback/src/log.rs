//! The place of events: the trait, and the form in memory that tests use.
//! [`crate::sled_log`] keeps them on disk.

use crate::checkpoint::Checkpoint;
use crate::event::{Event, EventKind};
use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::path::PathBuf;
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
    #[error(
        "{path}: the event log cannot be opened for writing: {reason}; give yourself the right to \
         write to its folder, or set HONE_HOME to another one"
    )]
    NotWritable { path: PathBuf, reason: String },
    #[error("{path}: the event log is damaged: {reason}")]
    Damaged { path: PathBuf, reason: String },
    #[error("{path}: cannot write the event log: {reason}; free disk space or check permissions")]
    Write { path: PathBuf, reason: String },
    #[error("{path}: cannot be used, so the whole event log is read: {reason}")]
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

    /// Forgets every event for which `keep` is false. When this returns, nothing of them
    /// is left on disk. The others keep their numbers, and no number is given twice.
    /// Events that are appended meanwhile are put to `keep` as well.
    fn retain(&self, keep: &(dyn Fn(&Event) -> bool + Sync)) -> Result<(), LogError>;

    /// Removes what lies next to the log and may hold events that cannot be searched: logs that
    /// could not be opened, and what an earlier [`EventLog::retain`] could not remove.
    fn remove_others(&self) -> Result<(), LogError> {
        Ok(())
    }

    /// Finds the logs next to this one that could not be opened, the oldest first.
    fn set_aside(&self) -> Result<Vec<PathBuf>, LogError> {
        Ok(vec![])
    }

    /// Describes events that were on disk, are gone, and were never forgotten.
    fn damage(&self) -> Option<String> {
        None
    }

    /// Opens the log again after a write failed, if there is room for a write now. This
    /// takes a while, and appending fails at once meanwhile. Events that were appended
    /// and not flushed may be gone.
    fn reopen(&self) -> Result<(), LogError> {
        Ok(())
    }

    /// Makes sure that the next event has this number or a larger one.
    fn number_from(&self, next_seq: u64) -> Result<(), LogError>;

    /// Closes the log for good, so that another process can open it while this one ends. What was
    /// not flushed may be gone, and appending fails from now on.
    fn close(&self) {}

    /// The generation of the log: a number that changes when something is forgotten.
    fn generation(&self) -> u64 {
        0
    }

    /// The checkpoint that was saved last.
    fn checkpoint(&self) -> Result<Option<Checkpoint>, LogError> {
        Ok(None)
    }

    /// Saves a checkpoint of this log, to be kept until something is forgotten. `false`
    /// if something was forgotten since it was folded: then it is not saved.
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

impl EventLog for MemoryLog {
    fn append(&self, at_ms: u64, kind: EventKind) -> Result<Event, LogError> {
        let mut events = self.events.lock();
        let event = Event { seq: self.next_seq.fetch_add(1, Ordering::Relaxed), at_ms, kind };
        events.push(event.clone());
        Ok(event)
    }

    fn number_from(&self, next_seq: u64) -> Result<(), LogError> {
        self.next_seq.fetch_max(next_seq, Ordering::Relaxed);
        Ok(())
    }

    fn flush(&self) -> Result<(), LogError> {
        Ok(())
    }

    fn scan(
        &self,
        from_seq: u64,
        visit: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let events = self.events.lock();
        let wanted = events.iter().filter(|event| event.seq >= from_seq);
        // The visitor's wish to stop is no error.
        let _ = wanted.cloned().try_for_each(visit);
        Ok(())
    }

    fn retain(&self, keep: &(dyn Fn(&Event) -> bool + Sync)) -> Result<(), LogError> {
        self.events.lock().retain(|event| keep(event));
        self.generation.fetch_add(1, Ordering::Relaxed);
        *self.checkpoint.lock() = None;
        Ok(())
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    fn checkpoint(&self) -> Result<Option<Checkpoint>, LogError> {
        Ok(self.checkpoint.lock().clone())
    }

    fn save_checkpoint(&self, checkpoint: &Checkpoint) -> Result<bool, LogError> {
        let mut saved = self.checkpoint.lock();
        let is_of_this_log = checkpoint.generation == self.generation();
        if is_of_this_log {
            *saved = Some(checkpoint.clone());
        }
        Ok(is_of_this_log)
    }
}
