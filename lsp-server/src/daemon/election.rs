//! One daemon a user: who holds the lock on `daemon.lock` is the daemon.

use crate::paths::Home;
use anyhow::{Context, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// Exit status of a daemon that is one too many.
pub const ALREADY_RUNNING: u8 = 3;

#[derive(Debug, thiserror::Error)]
#[error(
    "{}: a daemon is already running; use it (`hone status`) or stop it (`hone stop`)",
    lock.display()
)]
pub struct AlreadyRunning {
    lock: PathBuf,
}

/// How long the lock must be held to be a daemon's: who only looks whether one
/// runs (`hone status`) holds it for an instant.
const GLANCE: Duration = Duration::from_millis(200);
const GLANCE_POLL: Duration = Duration::from_millis(10);

/// One daemon a user: the lock on `daemon.lock` is held as long as it lives.
pub fn elect(home: &Home) -> Result<File> {
    let path = home.daemon_lock();
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&path)
        .with_context(|| path.display().to_string())?;
    let began = std::time::Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < GLANCE => {
                std::thread::sleep(GLANCE_POLL);
            }
            Err(TryLockError::WouldBlock) => return Err(AlreadyRunning { lock: path }.into()),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| path.display().to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_looks_at_the_lock_keeps_no_daemon_from_starting() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().into());
        home.create().unwrap();
        let looking = File::create(home.daemon_lock()).unwrap();
        looking.lock().unwrap();
        let looks = std::thread::spawn(move || {
            std::thread::sleep(2 * GLANCE_POLL);
            drop(looking);
        });
        let elected = elect(&home).unwrap();
        looks.join().unwrap();
        let other = elect(&home).unwrap_err();
        assert!(other.is::<AlreadyRunning>(), "{other:#}");
        drop(elected);
    }
}
