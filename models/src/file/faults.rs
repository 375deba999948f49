//! Writes that fail on purpose, for tests of what a failure leaves behind.
//!
//! Each write and each removal of [`super`] asks here first. While no test has armed a fault, that
//! costs one atomic load.

use parking_lot::Mutex;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of armed faults.
static ARMED: AtomicUsize = AtomicUsize::new(0);

static FAULTS: Mutex<Vec<Arc<Armed>>> = Mutex::new(vec![]);

struct Armed {
    folder: PathBuf,
    fails: Range<usize>,
    writes: AtomicUsize,
}

/// A fault: some writes below a folder fail. It is disarmed when this is dropped.
pub struct FailingWrite(Arc<Armed>);

impl FailingWrite {
    /// Makes the one write below `folder` fail that comes after `number` others.
    pub fn arm(folder: &Path, number: usize) -> FailingWrite {
        FailingWrite::of(folder, number..number + 1)
    }

    /// Makes every write below `folder` fail that comes after `number` others.
    pub fn arm_from(folder: &Path, number: usize) -> FailingWrite {
        FailingWrite::of(folder, number..usize::MAX)
    }

    fn of(folder: &Path, fails: Range<usize>) -> FailingWrite {
        let (folder, writes) = (folder.to_owned(), AtomicUsize::new(0));
        let armed = Arc::new(Armed { folder, fails, writes });
        FAULTS.lock().push(armed.clone());
        ARMED.fetch_add(1, Ordering::SeqCst);
        FailingWrite(armed)
    }

    /// Returns true if there were enough writes for one of them to fail.
    pub fn has_failed(&self) -> bool {
        self.0.writes.load(Ordering::SeqCst) > self.0.fails.start
    }
}

impl Drop for FailingWrite {
    fn drop(&mut self) {
        FAULTS.lock().retain(|armed| !Arc::ptr_eq(armed, &self.0));
        ARMED.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Counts a write of this file.
///
/// # Errors
/// A test wants this write to fail.
pub(super) fn check(path: &Path) -> io::Result<()> {
    if ARMED.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    for armed in FAULTS.lock().iter().filter(|armed| path.starts_with(&armed.folder)) {
        if armed.fails.contains(&armed.writes.fetch_add(1, Ordering::SeqCst)) {
            return Err(io::Error::other("this write fails on purpose"));
        }
    }
    Ok(())
}
