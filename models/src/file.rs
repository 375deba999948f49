//! Files that are either whole or absent, and their checksums.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read at a time when hashing or copying; large enough that system calls do not show.
pub const CHUNK_BYTES: usize = 1 << 18;

/// SHA-256 of a file's content, lower-case hex.
pub fn sha256(path: &Path) -> io::Result<String> {
    sha256_with(path, |_| {})
}

/// As [`sha256`], telling `advance` how many bytes each step hashed.
pub fn sha256_with(path: &Path, mut advance: impl FnMut(u64)) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hex(&hasher.finalize())),
            n => {
                hasher.update(&chunk[..n]);
                advance(n as u64);
            }
        }
    }
}

/// SHA-256 of bytes in memory, lower-case hex.
pub fn sha256_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes `bytes` so that a crash at any point leaves the old file or the new
/// one: temporary file in the same folder, fsync, rename, fsync of the folder.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Two writers of one file, in one process or several, must not share a temporary.
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let write = WRITES.fetch_add(1, Ordering::Relaxed);
    let temporary = beside(path, &format!(".{}-{write}.tmp", std::process::id()));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| publish(&temporary, path)).inspect_err(|_| {
        // The error being returned says more than a failed clean-up would.
        let _ = fs::remove_file(&temporary);
    })
}

/// Renames a finished, synced file to its final name and makes the name durable.
pub fn publish(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder_of(to)
}

/// `path` with `suffix` after its whole name: `m.gguf` → `m.gguf.part`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(unix)]
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// A folder cannot be opened for syncing here; the rename is journalled by the file system.
#[cfg(not(unix))]
pub fn sync_folder_of(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_the_standard_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        write_atomic(&path, b"abc").unwrap();
        // FIPS 180-4, example B.1.
        assert_eq!(
            sha256(&path).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_write_replaces_the_file_and_leaves_nothing_else_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        write_atomic(&path, b"old").unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let occupied = folder.path().join("a-folder");
        fs::create_dir(&occupied).unwrap();
        assert!(write_atomic(&occupied, b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
