//! The event log on disk: one sled tree. Only this module and those in its folder know
//! sled.
//!
//! | part  | bytes                                              |
//! |-------|----------------------------------------------------|
//! | key   | sequence number, u64 big-endian (so keys sort)     |
//! | value | one byte [`EVENT_FORMAT`], then the event as JSON  |
//!
//! The tree `meta` holds two numbers, each u64 big-endian. `next_seq` keeps numbers from
//! being given twice when the newest events are forgotten. `writing` is the generation of
//! the log: every rewrite draws a new one, and a checkpoint of another generation is
//! removed.
//!
//! # Forgetting
//!
//! sled only appends: what is removed from a tree stays on disk until its space is
//! needed. To forget is therefore to write the log anew, next to the old one, and to put
//! the new one in its place by two renames. A crash can leave these states:
//!
//! | on disk                  | what happened                        | what the next start does  |
//! |--------------------------|--------------------------------------|---------------------------|
//! | log                      | nothing                              | nothing                   |
//! | log, `.rewrite`          | the rewrite was not finished         | it removes the rewrite    |
//! | `.forgotten`, `.rewrite` | the rewrite was finished             | it does the second rename |
//! | log, `.forgotten`        | both renames were done               | it removes the old log    |
//!
//! # Damage
//!
//! A log that sled cannot open is kept as `.damaged-1` (`-2`, …) until the user forgets something,
//! and a new log is begun.
//!
//! [`EVENT_FORMAT`]: crate::event::EVENT_FORMAT

use crate::checkpoint::{self, Checkpoint};
use crate::event::{Event, EventKind};
use crate::log::{EventLog, LogError};
use crate::mark::Mark;
use files::{forgotten_of, mark_of, probe_of, rewrite_of};
use flusher::Flusher;
use parking_lot::{Mutex, RwLock};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Store;

mod files;
mod flusher;
mod store;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;

/// The reason why nothing can be done with a log that is closed for good.
const CLOSED: &str = "it is closed, because this process ends";

pub struct SledLog {
    path: PathBuf,
    /// `None` while the log is opened again, after that failed, and once it is closed for good.
    store: Arc<RwLock<Option<Store>>>,
    flusher: Flusher,
    /// The next sequence number. The lock also keeps the numbers in append order.
    next_seq: Mutex<u64>,
    mark: Mutex<Mark>,
    /// Held while the checkpoint is replaced or removed.
    checkpoint: Mutex<()>,
    missing: Option<Missing>,
    /// Closed for good. It is set under the lock of `store`.
    is_closed: AtomicBool,
}

/// Events that were on disk and are gone.
struct Missing {
    from: u64,
    to: u64,
    /// The place where the log lies that could not be opened.
    set_aside: Option<PathBuf>,
}

impl SledLog {
    pub fn open(path: &Path) -> Result<SledLog, LogError> {
        let cannot = |error: io::Error| store::cannot_open(path, &error);
        let (rewrite, forgotten) = (rewrite_of(path), forgotten_of(path));
        files::finish_rewrite(path).map_err(cannot)?;
        let store = match Store::open(path) {
            // Completions and learning continue with a new log, and the damaged one is kept.
            Err(LogError::Damaged { .. }) => {
                files::set_aside(path).map_err(cannot)?;
                Store::open(path)?
            }
            opened => opened?,
        };
        // sled's file lock is held from here on, so the files next to the log are ours.
        files::remove(&rewrite).and_then(|()| files::remove(&forgotten)).map_err(cannot)?;
        // A crash can leave this file. If it cannot be removed it only takes room.
        let _ = std::fs::remove_file(probe_of(path));
        let from = store.next_seq(path)?;
        let mark = Mark::open(mark_of(path));
        let next_seq = from.max(mark.noted());
        // As long as nothing is in the new log, everything lies in the one that was set aside.
        let set_aside = match from {
            0 => files::set_aside_so_far(path).map_err(cannot)?.pop().map(|(_, aside)| aside),
            _ => None,
        };
        let missing = (from < next_seq).then(|| Missing { from, to: next_seq - 1, set_aside });
        let store = Arc::new(RwLock::new(Some(store)));
        let flushed = store.clone();
        // The next append or the next flush reports what is wrong.
        let flush = move || drop(flushed.read().as_ref().map(Store::flush));
        let log = SledLog {
            path: path.to_owned(),
            flusher: Flusher::start(flush).map_err(cannot)?,
            store,
            next_seq: Mutex::new(next_seq),
            mark: Mutex::new(mark),
            checkpoint: Mutex::new(()),
            missing,
            is_closed: AtomicBool::new(false),
        };
        log.remove_foreign_checkpoint().map_err(cannot)?;
        Ok(log)
    }

    /// Removes a checkpoint that a crash during forgetting left behind, and one of events
    /// that are no longer in the log.
    fn remove_foreign_checkpoint(&self) -> io::Result<()> {
        let path = checkpoint::path_of(&self.path);
        checkpoint::remove_unfinished(&path)?;
        let is_ours = |(generation, next_seq)| {
            generation == self.generation()
                && next_seq <= *self.next_seq.lock()
                && self.missing.is_none()
        };
        if checkpoint::read_position(&path)?.is_none_or(is_ours) {
            return Ok(());
        }
        checkpoint::remove(&path)
    }

    fn write_error(&self, error: impl ToString) -> LogError {
        LogError::Write { path: self.path.clone(), reason: error.to_string() }
    }

    /// Does something with the open store. No rewrite replaces it meanwhile.
    fn with_store<T>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        match self.store.read().as_ref() {
            Some(store) => work(store),
            None if self.is_closed.load(Ordering::Relaxed) => Err(self.write_error(CLOSED)),
            None => Err(self.write_error("it is closed and will be opened again")),
        }
    }

    /// Copies the events from `from_seq` on for which `keep` is true. Returns the number
    /// that follows the last event it has seen.
    fn copy(
        &self,
        to: &Store,
        from_seq: u64,
        keep: &(dyn Fn(&Event) -> bool + Sync),
    ) -> Result<u64, LogError> {
        let mut end = from_seq;
        let mut failed = None;
        self.scan(from_seq, &mut |event| {
            end = event.seq + 1;
            if keep(&event)
                && let Err(error) = to.insert(&event)
            {
                failed = Some(self.write_error(error));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(end), Err)
    }

    /// Puts the finished rewrite in the log's place.
    fn take_rewrite(&self) -> Result<(), LogError> {
        // sled keeps some records in files that it names by its folder's path, so neither
        // folder may be open while it is renamed.
        let mut store = self.store.write();
        drop(store.take());
        let renamed = files::take_rewrite(&self.path);
        if renamed.is_err() {
            // The first rename may be done. If this fails too, the log is opened again later.
            let _ = files::finish_rewrite(&self.path);
        }
        let mut opened = Ok(());
        if self.path.exists() && !self.is_closed.load(Ordering::Relaxed) {
            opened = Store::open(&self.path).map(|opened| *store = Some(opened));
        }
        drop(store);
        let _no_checkpoint_is_saved_meanwhile = self.checkpoint.lock();
        let cannot = |error: io::Error| self.write_error(error);
        checkpoint::remove(&checkpoint::path_of(&self.path)).map_err(cannot)?;
        renamed.map_err(cannot)?;
        opened
    }
}

impl EventLog for SledLog {
    fn append(&self, at_ms: u64, kind: EventKind) -> Result<Event, LogError> {
        let mut next_seq = self.next_seq.lock();
        let event = Event { seq: *next_seq, at_ms, kind };
        self.with_store(|store| store.insert(&event).map_err(|error| self.write_error(error)))?;
        *next_seq += 1;
        self.flusher.need();
        Ok(event)
    }

    fn flush(&self) -> Result<(), LogError> {
        let appended = *self.next_seq.lock();
        self.with_store(|store| store.flush().map_err(|error| self.write_error(error)))?;
        self.mark.lock().note(appended).map_err(|error| self.write_error(error))
    }

    fn set_aside(&self) -> Result<Vec<PathBuf>, LogError> {
        let found = files::set_aside_so_far(&self.path).map_err(|error| self.write_error(error))?;
        Ok(found.into_iter().map(|(_, aside)| aside).collect())
    }

    fn damage(&self) -> Option<String> {
        let Missing { from, to, set_aside } = self.missing.as_ref()?;
        let kept = match set_aside {
            None => "those before are kept".into(),
            Some(aside) => format!("what is left of them lies in {}", aside.display()),
        };
        Some(format!(
            "{}: damaged; events {from} to {to} were on disk and are gone, {kept}; check the disk",
            self.path.display()
        ))
    }

    fn scan(
        &self,
        from_seq: u64,
        visit: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let mut from_seq = from_seq;
        loop {
            let events = self.with_store(|store| store.read_some(&self.path, from_seq))?;
            let Some(last) = events.last() else { return Ok(()) };
            from_seq = last.seq + 1;
            if events.into_iter().try_for_each(&mut *visit).is_break() {
                return Ok(());
            }
        }
    }

    fn retain(&self, keep: &(dyn Fn(&Event) -> bool + Sync)) -> Result<(), LogError> {
        self.remove_others()?;
        let rewrite = rewrite_of(&self.path);
        let cannot = |error: io::Error| self.write_error(error);
        let new = Store::open(&rewrite)?;
        let copied = self.copy(&new, 0, keep)?;
        // Most events are copied by now. Appends wait while the latest ones are.
        let next_seq = self.next_seq.lock();
        self.copy(&new, copied, keep)?;
        new.note_next_seq(*next_seq).map_err(|error| self.write_error(error))?;
        new.flush().map_err(cannot)?;
        drop(new);
        self.take_rewrite()
    }

    fn remove_others(&self) -> Result<(), LogError> {
        let cannot = |error: io::Error| self.write_error(error);
        // A rewrite that stopped between its two renames may be all that is left of the log, so it
        // is finished first.
        if self.store.read().is_none() {
            self.reopen()?;
        }
        let _open = self.store.read();
        files::remove_others(&self.path).map_err(cannot)
    }

    fn reopen(&self) -> Result<(), LogError> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(self.write_error(CLOSED));
        }
        files::check_room(&self.path).map_err(|error| self.write_error(error))?;
        // sled repeats its first error for ever, so the store is closed and opened again.
        // No lock is held while it opens: every keystroke in an editor takes this lock.
        drop(self.store.write().take());
        let cannot = |error: io::Error| self.write_error(error);
        // A rewrite that stopped between its two renames holds all events.
        files::finish_rewrite(&self.path).map_err(cannot)?;
        let opened = Store::open(&self.path)?;
        let on_disk = opened.next_seq(&self.path)?;
        let mut next_seq = self.next_seq.lock();
        *next_seq = on_disk.max(*next_seq);
        let mut store = self.store.write();
        // It may have been closed for good meanwhile.
        if !self.is_closed.load(Ordering::Relaxed) {
            *store = Some(opened);
        }
        Ok(())
    }

    fn number_from(&self, next_seq: u64) -> Result<(), LogError> {
        let mut known = self.next_seq.lock();
        if *known < next_seq {
            let noted = |store: &Store| {
                store.note_next_seq(next_seq).map_err(|error| self.write_error(error))
            };
            self.with_store(noted)?;
            *known = next_seq;
        }
        Ok(())
    }

    fn close(&self) {
        let mut store = self.store.write();
        self.is_closed.store(true, Ordering::Relaxed);
        drop(store.take());
    }

    fn generation(&self) -> u64 {
        self.store.read().as_ref().map_or(0, |store| store.generation)
    }

    fn checkpoint(&self) -> Result<Option<Checkpoint>, LogError> {
        let path = checkpoint::path_of(&self.path);
        checkpoint::read(&path)
            .map_err(|error| LogError::Checkpoint { path, reason: error.to_string() })
    }

    fn save_checkpoint(&self, checkpoint: &Checkpoint) -> Result<bool, LogError> {
        // A checkpoint must not know events that a crash can still undo.
        self.flush()?;
        let path = checkpoint::path_of(&self.path);
        let _nothing_is_forgotten_meanwhile = self.checkpoint.lock();
        if checkpoint.generation != self.generation() {
            return Ok(false);
        }
        checkpoint::write(&path, checkpoint)
            .map_err(|error| LogError::Write { path, reason: error.to_string() })?;
        Ok(true)
    }
}
