//! One sled database on disk: events in, events out.

use crate::event::{EVENT_FORMAT, Event};
use crate::limits::{
    LOG_CACHE_BYTES, LOG_CLEAN_INTERVAL, LOG_HANDOVER_MAX, LOG_HANDOVER_POLL, SCAN_EVENTS_MAX,
};
use crate::log::LogError;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

pub const EVENTS: &str = "events";
const META: &str = "meta";
const NEXT_SEQ: &str = "next_seq";
/// The key keeps the name that it had in the first release.
const GENERATION: &str = "writing";

/// The file in sled's folder that holds the records.
const DATABASE: &str = "db";

pub struct Store {
    pub db: sled::Db,
    pub events: sled::Tree,
    pub generation: u64,
    /// The file that sled writes to. It is open to be synced, and nothing is written by it.
    file: File,
}

impl Store {
    pub fn open(path: &Path) -> Result<Store, LogError> {
        let db = open_database(path)?;
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
        // Windows syncs only files that are open for writing.
        let file = File::options().read(true).write(true).open(path.join(DATABASE));
        let file = file.map_err(|error| cannot_open(path, &error))?;
        Ok(Store { db, events, generation, file })
    }

    /// Returns once everything that was inserted is on disk.
    ///
    /// On Linux sled only has the kernel write the bytes. Neither the file's metadata nor
    /// the disk's own cache is flushed before the next fsync, so a kernel that stops in
    /// between would lose an event that was acknowledged.
    pub fn flush(&self) -> io::Result<()> {
        self.db.flush()?;
        self.file.sync_data()
    }

    /// Refuses an event that could not be read again, such as one with a number that is not finite,
    /// which JSON does not have. No event behind it could be read either.
    pub fn insert(&self, event: &Event) -> Result<(), String> {
        let mut value = vec![EVENT_FORMAT];
        serde_json::to_writer(&mut value, event).map_err(|error| error.to_string())?;
        let read_again = serde_json::from_slice::<Event>(&value[1..]);
        read_again.map_err(|error| format!("it would not be readable: {error}"))?;
        let inserted = self.events.insert(event.seq.to_be_bytes(), value);
        inserted.map(drop).map_err(|error| error.to_string())
    }

    /// Notes the next number, for when the newest events are not in the store.
    pub fn note_next_seq(&self, next_seq: u64) -> Result<(), sled::Error> {
        self.db.open_tree(META)?.insert(NEXT_SEQ, &next_seq.to_be_bytes()).map(drop)
    }

    pub fn next_seq(&self, path: &Path) -> Result<u64, LogError> {
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

    /// The first events from a number on, at most [`SCAN_EVENTS_MAX`].
    pub fn read_some(&self, path: &Path, from_seq: u64) -> Result<Vec<Event>, LogError> {
        let items = self.events.range(from_seq.to_be_bytes()..).take(SCAN_EVENTS_MAX);
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

/// Opens sled's database, and waits a while for a process that still holds it.
fn open_database(path: &Path) -> Result<sled::Db, LogError> {
    let deadline = Instant::now() + LOG_HANDOVER_MAX;
    loop {
        let opened = sled::Config::new()
            .path(path)
            .cache_capacity(LOG_CACHE_BYTES)
            .flush_every_ms(Some(LOG_CLEAN_INTERVAL.as_millis() as u64))
            .open();
        match opened.map_err(|error| open_error(path, &error)) {
            Err(LogError::InUse { .. }) if Instant::now() < deadline => {
                std::thread::sleep(LOG_HANDOVER_POLL);
            }
            opened => return opened,
        }
    }
}

fn number(bytes: Option<sled::IVec>) -> Option<u64> {
    bytes.and_then(|bytes| bytes.as_ref().try_into().ok()).map(u64::from_be_bytes)
}

pub fn cannot_open(path: &Path, error: &io::Error) -> LogError {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let (path, reason) = (path.to_owned(), error.to_string());
    match error.kind() {
        PermissionDenied | ReadOnlyFilesystem => LogError::NotWritable { path, reason },
        StorageFull | QuotaExceeded => LogError::Write { path, reason },
        _ => LogError::Open { path, reason },
    }
}

fn open_error(path: &Path, error: &sled::Error) -> LogError {
    let reason = error.to_string();
    if matches!(error, sled::Error::Corruption { .. }) {
        return LogError::Damaged { path: path.to_owned(), reason };
    }
    // sled reports its file lock as an I/O error that only this text tells apart.
    if reason.contains("could not acquire lock") {
        return LogError::InUse { path: path.to_owned() };
    }
    match error {
        sled::Error::Io(error) => cannot_open(path, error),
        _ => LogError::Open { path: path.to_owned(), reason },
    }
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

    /// Moving the folder away, which was the advice, helps nobody who may not write there.
    #[test]
    fn the_advice_fits_the_reason() {
        let path = Path::new("/home/u/data/events.sled");
        let told = |kind: io::ErrorKind| {
            let own = cannot_open(path, &kind.into()).to_string();
            assert_eq!(own, open_error(path, &sled::Error::Io(kind.into())).to_string());
            assert!(own.starts_with("/home/u/data/events.sled: "), "{own}");
            own
        };
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            let told = told(kind);
            assert!(told.contains("give yourself the right to write"), "{told}");
            assert!(!told.contains("move"), "{told}");
        }
        assert!(told(io::ErrorKind::StorageFull).contains("free disk space"));
        assert!(told(io::ErrorKind::IsADirectory).contains("move the folder away"));
    }
}
