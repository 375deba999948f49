//! Windows.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The time for which a file that another program holds is tried again. A virus scanner opens each
/// new file for some milliseconds.
const HELD_LIMIT: Duration = Duration::from_secs(2);

const HELD_POLL: Duration = Duration::from_millis(20);

/// A folder cannot be synced here. NTFS keeps the order of renames in its journal.
pub fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Options for a file that only this user can read. It inherits the access of its folder.
pub fn private() -> OpenOptions {
    OpenOptions::new()
}

/// Returns what differs between two files of the same size and date.
pub fn identity(metadata: &fs::Metadata) -> u64 {
    metadata.creation_time()
}

/// Gives a file another name. What has that name already is replaced, also while one of our own
/// programs has it open.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match fs::rename(from, to) {
            Err(error) if is_held(&error) && began.elapsed() < HELD_LIMIT => {
                std::thread::sleep(HELD_POLL);
            }
            renamed => return renamed,
        }
    }
}

/// Returns true if another program has the file open in a way that keeps its name:
/// `ERROR_ACCESS_DENIED`, `ERROR_SHARING_VIOLATION` or `ERROR_LOCK_VIOLATION`.
fn is_held(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(5 | 32 | 33))
}

/// Writes from a place of the file on, from whatever thread.
pub fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                at += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
