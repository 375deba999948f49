//! Locks that hold between processes: on a file that nobody else writes, so that one process at a
//! time reads, changes and writes what the lock stands for.

use super::cannot_open;
use crate::platform::files;
use anyhow::{Context, Result};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

/// The time between two attempts to take a lock.
pub const POLL: Duration = Duration::from_millis(10);

/// Takes the lock, and waits for it up to `limit`. Returns nothing if somebody else has it for that
/// long. The lock is held until the file is dropped. `pause` is called between two attempts.
pub fn take(path: &Path, limit: Duration, mut pause: impl FnMut()) -> Result<Option<File>> {
    let file = files::private()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|error| cannot_open(path, &error))?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if began.elapsed() < limit => pause(),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| path.display().to_string());
            }
        }
    }
}

/// Pauses the thread between two attempts.
pub fn pause() {
    std::thread::sleep(POLL);
}
