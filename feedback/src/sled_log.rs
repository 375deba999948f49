//! The event log on disk: one sled tree, the only module that knows sled.
//!
//! | part  | bytes                                              |
//! |-------|----------------------------------------------------|
//! | key   | sequence number, u64 big-endian (so keys sort)     |
//! | value | one byte [`EVENT_FORMAT`], then the event as JSON  |
//!
//! sled appends: what is removed from a tree stays on disk until its space is
//! needed. So to forget is to write the log anew, beside the old one, and to
//! have it take its place by two renames:
//!
//! | on disk                  | what happened                | then                   |
//! |--------------------------|------------------------------|------------------------|
//! | log                      | –                            | –                      |
//! | log, `.rewrite`          | it was not written to the end | the rewrite is removed |
//! | `.forgotten`, `.rewrite` | it was, and is the log now   | the second rename      |
//! | log, `.forgotten`        | both renames are done        | the old one is removed |
//!
//! A log that is damaged so that sled does not open it is kept as `.damaged-1`
//! (`-2`, …) until something is forgotten, and a new one goes on.
//!
//! The tree `meta` holds, u64 big-endian each, `next_seq`, for when the newest
//! events are among the forgotten: no number is given twice; and `writing`, drawn
//! anew by every rewrite, names the log's generation (the key keeps its old name): a
//! checkpoint of another generation is removed.

use crate::checkpoint::{self, Checkpoint};
use crate::event::{EVENT_FORMAT, Event, EventKind};
use crate::log::{EventLog, LogError};
use crate::mark::Mark;
use models::file::{beside, publish, sync_folder_of};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

const EVENTS: &str = "events";
const META: &str = "meta";
const NEXT_SEQ: &str = "next_seq";
/// The key keeps the name that it had in the first release.
const GENERATION: &str = "writing";

/// The file in sled's folder that holds the records.
const DATABASE: &str = "db";

/// sled's page cache. The log is written in order and read once at start.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// What an unclean death may lose of events nobody was told were saved.
const BACKGROUND_FLUSH_MS: u64 = 200;

/// A daemon that is ending lets go of the log last, when its process is gone;
/// whoever comes right after it waits this long.
const HANDOVER: Duration = Duration::from_secs(3);
const HANDOVER_POLL: Duration = Duration::from_millis(20);

/// A log that could not be written is opened again once this much can be.
const ROOM_BYTES: usize = 1024 * 1024;

/// Events read at a time: a slow reader must not hold up a rewrite, nor that
/// the next append.
const SCAN_EVENTS: usize = 64;

pub struct SledLog {
    path: PathBuf,
    /// `None` while it is opened again, and where that failed.
    store: RwLock<Option<Store>>,
    /// The next sequence number; the lock also keeps numbers in append order.
    next_seq: Mutex<u64>,
    mark: Mutex<Mark>,
    /// Held while the checkpoint is replaced or removed.
    checkpoint: Mutex<()>,
    /// Events that were on disk and are not any more.
    missing: Option<Missing>,
}

struct Missing {
    from: u64,
    to: u64,
    /// Where the file is from which nothing could be read.
    set_aside: Option<PathBuf>,
}

struct Store {
    db: sled::Db,
    events: sled::Tree,
    generation: u64,
    /// What sled writes to.
    file: File,
}

impl Store {
    fn open(path: &Path) -> Result<Store, LogError> {
        let deadline = Instant::now() + HANDOVER;
        let db = loop {
            let opened = sled::Config::new()
                .path(path)
                .cache_capacity(CACHE_BYTES)
                .flush_every_ms(Some(BACKGROUND_FLUSH_MS))
                .open();
            match opened.map_err(|error| open_error(path, &error)) {
                Ok(db) => break db,
                Err(LogError::InUse { .. }) if Instant::now() < deadline => {
                    std::thread::sleep(HANDOVER_POLL);
                }
                Err(error) => return Err(error),
            }
        };
        let failed = |error| open_error(path, &error);
        let events = db.open_tree(EVENTS).map_err(failed)?;
        let meta = db.open_tree(META).map_err(failed)?;
        let generation = match number(meta.get(GENERATION).map_err(failed)?) {
            Some(generation) => generation,
            None => {
                let drawn: u64 = rand::random();
                meta.insert(GENERATION, &drawn.to_be_bytes()).map_err(failed)?;
                drawn
            }
        };
        let cannot =
            |error: io::Error| LogError::Open { path: path.to_owned(), reason: error.to_string() };
        let file = File::open(path.join(DATABASE)).map_err(cannot)?;
        Ok(Store { db, events, generation, file })
    }

    /// On Linux sled has the kernel write the bytes, and no more: neither where they
    /// lie in the file nor what the disk holds back is on it before its next fsync.
    /// A kernel that stops in between would take an acknowledged event with it.
    fn flush(&self) -> io::Result<()> {
        self.db.flush()?;
        self.file.sync_data()
    }

    fn next_seq(&self, path: &Path) -> Result<u64, LogError> {
        let failed = |error| open_error(path, &error);
        let meta = self.db.open_tree(META).map_err(failed)?;
        let noted = number(meta.get(NEXT_SEQ).map_err(failed)?);
        let last = self.events.last().map_err(failed)?;
        let after_last = match last {
            None => 0,
            Some((key, value)) => decode(path, &key, &value)?.seq + 1,
        };
        Ok(after_last.max(noted.unwrap_or(0)))
    }

    /// Up to [`SCAN_EVENTS`] events from a number on.
    fn some(&self, path: &Path, from_seq: u64) -> Result<Vec<Event>, LogError> {
        let items = self.events.range(from_seq.to_be_bytes()..).take(SCAN_EVENTS);
        items
            .map(|item| {
                let (key, value) = item.map_err(|error| LogError::Read {
                    path: path.to_owned(),
                    seq: from_seq,
                    reason: error.to_string(),
                })?;
                decode(path, &key, &value)
            })
            .collect()
    }
}

impl SledLog {
    pub fn open(path: &Path) -> Result<SledLog, LogError> {
        let cannot =
            |error: io::Error| LogError::Open { path: path.to_owned(), reason: error.to_string() };
        let (rewrite, forgotten) = (rewrite_of(path), forgotten_of(path));
        if !path.exists() && forgotten.exists() && rewrite.exists() {
            publish(&rewrite, path).map_err(cannot)?;
        }
        let (store, set_aside) = match Store::open(path) {
            // Completions go on, and so does learning; what is left is not thrown away.
            Err(LogError::Damaged { .. }) => {
                let aside = set_aside(path).map_err(cannot)?;
                (Store::open(path)?, Some(aside))
            }
            opened => (opened?, None),
        };
        // Ours alone from here on, and so is what lies beside it.
        remove(&rewrite).and_then(|()| remove(&forgotten)).map_err(cannot)?;
        // Of a death at the wrong moment; one that stays takes room and does no harm.
        let _ = std::fs::remove_file(probe_of(path));
        let from = store.next_seq(path)?;
        let mark = Mark::open(mark_of(path));
        let next_seq = from.max(mark.noted());
        let missing = (from < next_seq).then(|| Missing { from, to: next_seq - 1, set_aside });
        let log = SledLog {
            path: path.to_owned(),
            store: RwLock::new(Some(store)),
            next_seq: Mutex::new(next_seq),
            mark: Mutex::new(mark),
            checkpoint: Mutex::new(()),
            missing,
        };
        log.remove_foreign_checkpoint().map_err(cannot)?;
        Ok(log)
    }

    /// A death in the middle of forgetting left it, or it knows of events that are
    /// not there any more.
    fn remove_foreign_checkpoint(&self) -> io::Result<()> {
        let path = checkpoint::path_of(&self.path);
        checkpoint::remove_unfinished(&path)?;
        let is_ours = |(generation, next_seq)| {
            generation == self.generation()
                && next_seq <= *self.next_seq()
                && self.missing.is_none()
        };
        match checkpoint::place(&path)?.is_none_or(is_ours) {
            true => Ok(()),
            false => checkpoint::remove(&path),
        }
    }

    fn write_error(&self, error: impl ToString) -> LogError {
        LogError::Write { path: self.path.clone(), reason: error.to_string() }
    }

    fn next_seq(&self) -> MutexGuard<'_, u64> {
        self.next_seq.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> RwLockReadGuard<'_, Option<Store>> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_checkpoint(&self) -> MutexGuard<'_, ()> {
        self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is there, for as long as nobody writes it anew.
    fn with_store<T>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        match self.store().as_ref() {
            Some(store) => work(store),
            None => Err(self.write_error("it is not open, and is tried again")),
        }
    }

    /// Copies what `keep` says yes to from `from_seq` on; answers where it ended.
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
                && let Err(error) = self.insert(to, &event)
            {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(end), Err)
    }

    fn insert(&self, store: &Store, event: &Event) -> Result<(), LogError> {
        let mut value = vec![EVENT_FORMAT];
        serde_json::to_writer(&mut value, event).map_err(|error| self.write_error(error))?;
        let inserted = store.events.insert(event.seq.to_be_bytes(), value);
        inserted.map(drop).map_err(|error| self.write_error(error))
    }
}

impl EventLog for SledLog {
    fn append(&self, at_ms: u64, kind: EventKind) -> Result<Event, LogError> {
        let mut next_seq = self.next_seq();
        let event = Event { seq: *next_seq, at_ms, kind };
        self.with_store(|store| self.insert(store, &event))?;
        *next_seq += 1;
        Ok(event)
    }

    fn flush(&self) -> Result<(), LogError> {
        let appended = *self.next_seq();
        self.with_store(|store| store.flush().map_err(|error| self.write_error(error)))?;
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        mark.note(appended).map_err(|error| self.write_error(error))
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
            let events = self.with_store(|store| store.some(&self.path, from_seq))?;
            let Some(last) = events.last() else { return Ok(()) };
            from_seq = last.seq + 1;
            if events.into_iter().try_for_each(&mut *visit).is_break() {
                return Ok(());
            }
        }
    }

    fn retain(&self, keep: &(dyn Fn(&Event) -> bool + Sync)) -> Result<(), LogError> {
        let rewrite = rewrite_of(&self.path);
        let cannot = |error: io::Error| self.write_error(error);
        remove(&rewrite).map_err(cannot)?;
        // Nobody can tell what is in them; it may be what is to be forgotten.
        for aside in set_aside_so_far(&self.path) {
            remove(&aside).map_err(cannot)?;
        }
        let new = Store::open(&rewrite)?;
        let copied = self.copy(&new, 0, keep)?;
        // Most is there by now; appends wait for what came meanwhile.
        let next_seq = self.next_seq();
        self.copy(&new, copied, keep)?;
        let noted =
            new.db.open_tree(META).and_then(|meta| meta.insert(NEXT_SEQ, &next_seq.to_be_bytes()));
        noted.map_err(|error| self.write_error(error))?;
        new.flush().map_err(cannot)?;
        drop(new);
        // sled keeps some records in files that it names by its folder's path,
        // so neither folder is open when it gets another name.
        let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        drop(store.take());
        let taken = take_place(&self.path);
        let opened = match self.path.exists() {
            true => Store::open(&self.path).map(|opened| *store = Some(opened)),
            false => Ok(()),
        };
        drop(store);
        let _nothing_is_kept_meanwhile = self.lock_checkpoint();
        checkpoint::remove(&checkpoint::path_of(&self.path)).map_err(cannot)?;
        taken.map_err(cannot)?;
        opened
    }

    fn reopen(&self) -> Result<(), LogError> {
        let cannot = |error: io::Error| self.write_error(error);
        has_room(&self.path).map_err(cannot)?;
        // sled stays with its first error for good, so it is let go of. Nobody waits:
        // a lock on the log is one on every editor's next key.
        drop(self.store.write().unwrap_or_else(PoisonError::into_inner).take());
        let opened = Store::open(&self.path)?;
        let there = opened.next_seq(&self.path)?;
        let mut next_seq = self.next_seq();
        *next_seq = there.max(*next_seq);
        *self.store.write().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        Ok(())
    }

    fn generation(&self) -> u64 {
        self.store().as_ref().map_or(0, |store| store.generation)
    }

    fn checkpoint(&self) -> Result<Option<Checkpoint>, LogError> {
        let path = checkpoint::path_of(&self.path);
        checkpoint::read(&path)
            .map_err(|error| LogError::Checkpoint { path, reason: error.to_string() })
    }

    fn save_checkpoint(&self, checkpoint: &Checkpoint) -> Result<bool, LogError> {
        // It must not know of an event that a death could still undo.
        self.flush()?;
        let path = checkpoint::path_of(&self.path);
        let _nothing_is_forgotten_meanwhile = self.lock_checkpoint();
        if checkpoint.generation != self.generation() {
            return Ok(false);
        }
        checkpoint::write(&path, checkpoint)
            .map_err(|error| LogError::Write { path, reason: error.to_string() })?;
        Ok(true)
    }
}

fn number(bytes: Option<sled::IVec>) -> Option<u64> {
    bytes.and_then(|bytes| bytes.as_ref().try_into().ok()).map(u64::from_be_bytes)
}

fn probe_of(path: &Path) -> PathBuf {
    beside(path, ".room")
}

/// Whether files can grow beside the log.
fn has_room(path: &Path) -> io::Result<()> {
    let probe = probe_of(path);
    let written =
        std::fs::write(&probe, vec![0; ROOM_BYTES]).and_then(|()| File::open(&probe)?.sync_all());
    let removed = std::fs::remove_file(&probe);
    written.and(removed)
}

fn rewrite_of(path: &Path) -> PathBuf {
    beside(path, ".rewrite")
}

/// Logs that could not be opened, oldest first.
fn set_aside_so_far(path: &Path) -> Vec<PathBuf> {
    let numbered = (1..).map(|number| beside(path, &format!(".damaged-{number}")));
    numbered.take_while(|aside| aside.exists()).collect()
}

/// Gives a log that cannot be opened another name.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let number = set_aside_so_far(path).len() + 1;
    let aside = beside(path, &format!(".damaged-{number}"));
    publish(path, &aside)?;
    Ok(aside)
}

fn mark_of(path: &Path) -> PathBuf {
    beside(path, ".mark")
}

fn forgotten_of(path: &Path) -> PathBuf {
    beside(path, ".forgotten")
}

/// The rewrite becomes the log, and what was the log is gone.
fn take_place(path: &Path) -> io::Result<()> {
    let (rewrite, forgotten) = (rewrite_of(path), forgotten_of(path));
    publish(path, &forgotten)?;
    if let Err(error) = publish(&rewrite, path) {
        publish(&forgotten, path)?;
        return Err(error);
    }
    remove(&forgotten)
}

fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| sync_folder_of(folder)),
    }
}

fn open_error(path: &Path, error: &sled::Error) -> LogError {
    let reason = error.to_string();
    if matches!(error, sled::Error::Corruption { .. }) {
        return LogError::Damaged { path: path.to_owned(), reason };
    }
    // sled reports its file lock as an I/O error with this text only.
    if reason.contains("could not acquire lock") {
        return LogError::InUse { path: path.to_owned() };
    }
    LogError::Open { path: path.to_owned(), reason }
}

fn decode(path: &Path, key: &[u8], value: &[u8]) -> Result<Event, LogError> {
    let seq = key.try_into().map(u64::from_be_bytes).unwrap_or(u64::MAX);
    let read_error = |reason: String| LogError::Read { path: path.to_owned(), seq, reason };
    match value.split_first() {
        // What later formats added has defaults.
        Some((&found, json)) if (1..=EVENT_FORMAT).contains(&found) => {
            serde_json::from_slice(json).map_err(|error| read_error(error.to_string()))
        }
        Some((&found, _)) if found > EVENT_FORMAT => {
            let path = path.to_owned();
            Err(LogError::NewerFormat { path, seq, found, known: EVENT_FORMAT })
        }
        _ => Err(read_error("not an event record".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Evidence, Outcome};

    fn accepted(id: &str) -> EventKind {
        let (outcome, evidence) = (Outcome::Accepted, Evidence::Command);
        EventKind::Outcome { id: id.into(), outcome, evidence }
    }

    /// A completion as the first release wrote it.
    const FIRST_FORMAT: &str = r#"{"seq":0,"at_ms":5,"event":"completion","id":"1-1",
        "path":"a.rs","language":"rust","model_sha256":"ab","adapter":0,
        "sampling":{"temperature":0.0,"seed":0},"prompt":[1,2],"adapter_from":1,"healing":"",
        "tokens":[{"id":3,"logprob":-0.5}],"stop":"newline","shown":"x","shown_from":0,
        "timing":{"prompt_reused":0,"prompt_evaluated":2,"prompt_ms":1.0,"decode_ms":1.0,
        "total_ms":2.0}}"#;

    #[test]
    fn a_log_of_the_first_format_is_read_and_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.sled");
        {
            let store = Store::open(&path).unwrap();
            let record = [&[1], FIRST_FORMAT.as_bytes()].concat();
            store.events.insert(0u64.to_be_bytes(), record).unwrap();
            store.db.flush().unwrap();
        }
        let log = SledLog::open(&path).unwrap();
        log.append(6, accepted("1-1")).unwrap();
        let events = all(&log);
        let EventKind::Completion(completion) = &events[0].kind else { panic!("{events:?}") };
        assert_eq!(completion.decision, Default::default());
        assert_eq!((events.len(), events[1].seq), (2, 1));
    }

    fn all(log: &dyn EventLog) -> Vec<Event> {
        let mut events = Vec::new();
        log.scan(0, &mut |event| {
            events.push(event);
            ControlFlow::Continue(())
        })
        .unwrap();
        events
    }

    #[test]
    fn events_come_back_in_order_after_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.sled");
        let mut written = Vec::new();
        for round in 0..2 {
            let log = SledLog::open(&path).unwrap();
            for i in 0..300 {
                written.push(log.append(i, accepted(&format!("{round}-{i}"))).unwrap());
            }
            log.flush().unwrap();
        }
        assert_eq!(all(&SledLog::open(&path).unwrap()), written);
    }

    #[test]
    fn a_second_process_is_told_who_holds_the_log_and_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let _first = SledLog::open(dir.path()).unwrap();
        let second = SledLog::open(dir.path()).map(drop).unwrap_err();
        assert!(matches!(second, LogError::InUse { .. }), "{second}");
        assert!(second.to_string().contains("hone stop"));
    }

    #[test]
    fn a_record_of_a_newer_hone_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let newer = vec![EVENT_FORMAT + 1, b'?'];
        store.events.insert(7u64.to_be_bytes(), newer.clone()).unwrap();
        drop(store);
        let error = SledLog::open(dir.path()).map(drop).unwrap_err();
        assert!(matches!(error, LogError::NewerFormat { seq: 7, .. }), "{error}");
        let db = sled::open(dir.path()).unwrap();
        let kept = db.open_tree(EVENTS).unwrap().get(7u64.to_be_bytes()).unwrap().unwrap();
        assert_eq!(kept.as_ref(), newer);
    }

    /// Every byte of every file below a folder.
    fn bytes_below(folder: &Path) -> Vec<u8> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .flat_map(|path| match path.is_dir() {
                true => bytes_below(&path),
                false => std::fs::read(&path).unwrap(),
            })
            .collect()
    }

    fn holds(folder: &Path, text: &str) -> bool {
        bytes_below(folder).windows(text.len()).any(|window| window == text.as_bytes())
    }

    #[test]
    fn what_is_forgotten_is_gone_from_the_disk_and_its_numbers_are_not_given_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.sled");
        let log = SledLog::open(&path).unwrap();
        let long = "keep-".repeat(2_000);
        for i in 0..200 {
            let id = if i % 3 == 2 { format!("canary-{i}") } else { format!("{long}{i}") };
            log.append(i, accepted(&id)).unwrap();
        }
        log.flush().unwrap();
        assert!(holds(dir.path(), "canary-"), "or this test tells nothing");
        let kept: Vec<_> = all(&log)
            .into_iter()
            .filter(|event| !event.kind.offer_id().starts_with("canary"))
            .collect();

        log.retain(&|event| !event.kind.offer_id().starts_with("canary")).unwrap();
        assert!(!holds(dir.path(), "canary-"));
        assert_eq!(all(&log), kept);
        log.retain(&|event| event.seq < 100).unwrap();
        drop(log);
        let log = SledLog::open(&path).unwrap();
        assert_eq!(all(&log), kept[..67]);
        assert_eq!(log.append(0, accepted("next")).unwrap().seq, 200);
    }

    #[test]
    fn events_appended_during_a_rewrite_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.sled");
        let log = SledLog::open(&path).unwrap();
        for i in 0..500 {
            log.append(i, accepted("early")).unwrap();
        }
        std::thread::scope(|scope| {
            let appending = scope.spawn(|| {
                for i in 0..500 {
                    log.append(i, accepted("late")).unwrap();
                }
            });
            log.retain(&|event| event.kind.offer_id() != "early").unwrap();
            appending.join().unwrap();
        });
        let late = all(&log);
        assert!(late.len() == 500 && late.iter().all(|event| event.kind.offer_id() == "late"));
        assert!(late.is_sorted_by_key(|event| event.seq));
    }

    fn kept(log: &SledLog, next_seq: u64) -> Checkpoint {
        let checkpoint =
            Checkpoint { generation: log.generation(), next_seq, content: b"canary".to_vec() };
        assert!(log.save_checkpoint(&checkpoint).unwrap());
        checkpoint
    }

    #[test]
    fn a_checkpoint_comes_back_until_something_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.sled");
        let log = SledLog::open(&path).unwrap();
        for i in 0..10 {
            log.append(i, accepted("a")).unwrap();
        }
        let checkpoint = kept(&log, 10);
        drop(log);
        let log = SledLog::open(&path).unwrap();
        assert_eq!(log.checkpoint().unwrap(), Some(checkpoint.clone()));
        log.retain(&|event| event.seq > 3).unwrap();
        assert!(!log.save_checkpoint(&checkpoint).unwrap(), "of what was forgotten meanwhile");
        assert!(log.checkpoint().unwrap().is_none() && !holds(dir.path(), "canary"));
    }

    /// A death in the middle of forgetting, a log that was put back or begun anew, or
    /// that a disk cut: the checkpoint knows what the log does not.
    #[test]
    fn a_checkpoint_of_another_log_is_removed_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.sled");
        let file = checkpoint::path_of(&path);
        let first = SledLog::open(&path).unwrap();
        first.append(0, accepted("a")).unwrap();
        let checkpoint = kept(&first, 1);
        first.retain(&|_| true).unwrap();
        checkpoint::write(&file, &checkpoint).unwrap();
        drop(first);
        let log = SledLog::open(&path).unwrap();
        assert!(log.checkpoint().unwrap().is_none() && !file.exists(), "of another generation");
        checkpoint::write(
            &file,
            &Checkpoint { generation: log.generation(), next_seq: 9, ..checkpoint },
        )
        .unwrap();
        drop(log);
        let log = SledLog::open(&path).unwrap();
        assert!(log.checkpoint().unwrap().is_none(), "of events that are not there");
        kept(&log, 1);
        drop(log);
        std::fs::write(beside(&file, ".tmp"), "canary").unwrap();
        Mark::open(mark_of(&path)).note(5).unwrap();
        let log = SledLog::open(&path).unwrap();
        assert!(log.damage().is_some() && log.checkpoint().unwrap().is_none());
        assert!(!holds(dir.path(), "canary"));
    }

    #[test]
    fn a_log_that_is_opened_again_goes_on_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let log = SledLog::open(&dir.path().join("events.sled")).unwrap();
        let before: Vec<Event> = (0..10).map(|i| log.append(i, accepted("a")).unwrap()).collect();
        log.flush().unwrap();
        log.reopen().unwrap();
        assert_eq!(all(&log), before);
        assert_eq!(log.append(0, accepted("b")).unwrap().seq, 10);
    }

    /// The states of the table at the top, as a death at any point leaves them.
    #[test]
    fn a_rewrite_that_was_cut_short_is_ended_or_undone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.sled");
        let written = |at: &Path, id: &str| {
            SledLog::open(at).unwrap().append(0, accepted(id)).unwrap();
        };
        let only = |id: &str| {
            let events = all(&SledLog::open(&path).unwrap());
            assert_eq!(events.len(), 1);
            assert_eq!(events[0].kind.offer_id(), id);
            assert!(!rewrite_of(&path).exists() && !forgotten_of(&path).exists());
        };
        written(&path, "old");
        written(&rewrite_of(&path), "half");
        only("old");

        written(&rewrite_of(&path), "new");
        std::fs::rename(&path, forgotten_of(&path)).unwrap();
        only("new");

        written(&forgotten_of(&path), "old");
        only("new");
    }
}
