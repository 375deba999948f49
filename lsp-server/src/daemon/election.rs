//! The election of the daemon. A user has one daemon: the process that holds the lock on
//! `daemon.lock`.

use anyhow::Result;
use host::paths::{Paths, lock};
use models::file::remove_unfinished;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// The exit status of a daemon that finds another one running.
pub const ALREADY_RUNNING: u8 = 3;

#[derive(Debug, thiserror::Error)]
#[error(
    "{}: a daemon is already running; use it (`hone status`) or stop it (`hone stop`)",
    lock.display()
)]
pub struct AlreadyRunning {
    lock: PathBuf,
}

/// The time after which a held lock belongs to a daemon. `hone status` holds it only for an
/// instant, to check whether a daemon runs.
const CHECK_LIMIT: Duration = Duration::from_millis(200);

/// Becomes the daemon by locking `daemon.lock`. The lock is held for the life of the process, which
/// alone writes the home's data. So files that an interrupted daemon did not finish go here.
pub fn elect(home: &Paths) -> Result<File> {
    elect_with(home, lock::pause)
}

/// `pause` is called between two attempts to take the lock.
fn elect_with(home: &Paths, pause: impl FnMut()) -> Result<File> {
    let path = home.daemon_lock();
    let elected = lock::take(&path, CHECK_LIMIT, pause)?;
    let elected = elected.ok_or(AlreadyRunning { lock: path })?;
    if let Err(error) = remove_unfinished(&home.data()) {
        tracing::warn!("{}: unfinished files are left: {error}", home.data().display());
    }
    Ok(elected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_of_the_lock_keeps_no_daemon_from_starting() {
        let folder = tempfile::tempdir().unwrap();
        let home = Paths::at(folder.path().into());
        home.create().unwrap();
        let looking = File::create(home.daemon_lock()).unwrap();
        looking.lock().unwrap();
        let mut looking = Some(looking);
        let unfinished = home.clock_history().with_extension("json.7-0.tmp");
        std::fs::write(&unfinished, "half").unwrap();
        let elected = elect_with(&home, || drop(looking.take())).unwrap();
        assert!(looking.is_none(), "the lock was held at first");
        assert!(!unfinished.exists());
        let other = elect(&home).unwrap_err();
        assert!(other.is::<AlreadyRunning>(), "{other:#}");
        drop(elected);
    }
}
