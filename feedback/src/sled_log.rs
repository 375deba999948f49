//! The event log on disk: one sled tree, the only module that knows sled.
//!
//! | part  | bytes                                              |
//! |-------|----------------------------------------------------|
//! | key   | sequence number, u64 big-endian (so keys sort)     |
//! | value | one byte [`EVENT_FORMAT`], then the event as JSON  |

use crate::event::{EVENT_FORMAT, Event, EventKind};
use crate::log::{EventLog, LogError};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const TREE: &str = "events";

/// sled's page cache. The log is written in order and read once at start.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// What an unclean death may lose of events nobody was told were saved.
const BACKGROUND_FLUSH_MS: u64 = 200;

/// A daemon that is ending lets go of the log last, when its process is gone;
/// whoever comes right after it waits this long.
const HANDOVER: Duration = Duration::from_secs(3);
const HANDOVER_POLL: Duration = Duration::from_millis(20);

pub struct SledLog {
    path: PathBuf,
    db: sled::Db,
    events: sled::Tree,
    /// The next sequence number; the lock also keeps numbers in append order.
    next_seq: Mutex<u64>,
}

impl SledLog {
    pub fn open(path: &Path) -> Result<SledLog, LogError> {
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
        let events = db.open_tree(TREE).map_err(|error| open_error(path, &error))?;
        let last = events.last().map_err(|error| open_error(path, &error))?;
        let next_seq = match last {
            None => 0,
            Some((key, value)) => decode(path, &key, &value)?.seq + 1,
        };
        Ok(SledLog { path: path.to_owned(), db, events, next_seq: Mutex::new(next_seq) })
    }

    fn write_error(&self, error: impl ToString) -> LogError {
        LogError::Write { path: self.path.clone(), reason: error.to_string() }
    }
}

impl EventLog for SledLog {
    fn append(&self, at_ms: u64, kind: EventKind) -> Result<Event, LogError> {
        let mut next_seq = self.next_seq.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let event = Event { seq: *next_seq, at_ms, kind };
        let mut value = vec![EVENT_FORMAT];
        serde_json::to_writer(&mut value, &event).map_err(|error| self.write_error(error))?;
        self.events
            .insert(event.seq.to_be_bytes(), value)
            .map_err(|error| self.write_error(error))?;
        *next_seq += 1;
        Ok(event)
    }

    fn flush(&self) -> Result<(), LogError> {
        self.db.flush().map(drop).map_err(|error| self.write_error(error))
    }

    fn scan(
        &self,
        from_seq: u64,
        visit: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        for item in self.events.range(from_seq.to_be_bytes()..) {
            let (key, value) = item.map_err(|error| LogError::Read {
                path: self.path.clone(),
                seq: from_seq,
                reason: error.to_string(),
            })?;
            if visit(decode(&self.path, &key, &value)?).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn open_error(path: &Path, error: &sled::Error) -> LogError {
    let reason = error.to_string();
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
        Some((&EVENT_FORMAT, json)) => {
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
        let log = SledLog::open(dir.path()).unwrap();
        let newer = vec![EVENT_FORMAT + 1, b'?'];
        log.events.insert(7u64.to_be_bytes(), newer.clone()).unwrap();
        drop(log);
        let error = SledLog::open(dir.path()).map(drop).unwrap_err();
        assert!(matches!(error, LogError::NewerFormat { seq: 7, .. }), "{error}");
        let db = sled::open(dir.path()).unwrap();
        let kept = db.open_tree(TREE).unwrap().get(7u64.to_be_bytes()).unwrap().unwrap();
        assert_eq!(kept.as_ref(), newer);
    }
}
