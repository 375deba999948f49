//! The length of the daemon's log. The log before is kept next to it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The size at which the log begins anew, in bytes.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The time between two looks at the log of a daemon that runs.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(60);

fn before(log: &Path) -> PathBuf {
    log.with_extension("log.1")
}

fn is_long(log: &Path) -> bool {
    std::fs::symlink_metadata(log).is_ok_and(|found| found.is_file() && found.len() > BYTES_MAX)
}

/// Moves a long log away, before a daemon opens it.
pub fn begin(log: &Path) {
    if is_long(log) {
        let _ = std::fs::rename(log, before(log));
    }
}

/// Empties a long log while a daemon appends to it, which a rename would not do. What is written
/// between the copy and the cut is lost.
pub fn cut(log: &Path) -> io::Result<()> {
    if !is_long(log) {
        return Ok(());
    }
    std::fs::copy(log, before(log))?;
    File::options().write(true).open(log)?.set_len(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// It began anew only when a daemon started, and an editor keeps a daemon for months.
    #[test]
    fn a_long_log_is_cut_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("daemon.log");
        let mut file = File::options().create(true).append(true).open(&log).unwrap();
        let length = || std::fs::metadata(&log).unwrap().len();
        file.write_all(&vec![b'x'; BYTES_MAX as usize]).unwrap();
        cut(&log).unwrap();
        assert_eq!(length(), BYTES_MAX);
        file.write_all(b"x").unwrap();
        cut(&log).unwrap();
        file.write_all(b"next\n").unwrap();
        assert_eq!(std::fs::read(&log).unwrap(), b"next\n");
        assert_eq!(std::fs::metadata(before(&log)).unwrap().len(), BYTES_MAX + 1);
        begin(&log);
        assert_eq!(length(), 5);
    }
}
