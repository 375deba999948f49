//! Files that are written whole or not at all, and their checksums.

pub mod faults;

use crate::limits::CHUNK_BYTES;
use crate::platform;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Opens a file that may come from anybody. What is no plain file (a pipe, a device) is not opened,
/// because that could wait for ever.
///
/// # Errors
/// There is no plain file at the path, or it cannot be read.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let is_plain = |found: fs::Metadata| match found.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("it is no plain file")),
    };
    is_plain(fs::metadata(path)?)?;
    let file = File::open(path)?;
    is_plain(file.metadata()?)?;
    Ok(file)
}

/// Reads a file that may come from anybody, of at most so many bytes, whatever its size says.
///
/// # Errors
/// There is no plain file at the path, or it cannot be read, or is longer.
pub fn read_plain(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    open_plain(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= bytes_max {
        true => Ok(bytes),
        false => Err(io::Error::other(format!("it is longer than {bytes_max} bytes"))),
    }
}

/// SHA-256 of a file's content, lower-case hex.
pub fn sha256(path: &Path) -> io::Result<String> {
    sha256_with(path, |_| {})
}

/// The same as [`sha256`]. It tells `advance` how many bytes each step has hashed.
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

/// Lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes `bytes` so that a crash at any point leaves the old file or the new one. It
/// writes a temporary file in the same folder, syncs it, renames it, and syncs the folder.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Two writers of one file, in one process or in several, must not share a temporary file.
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let write = WRITES.fetch_add(1, Ordering::Relaxed);
    let temporary = with_suffix(path, &format!(".{}-{write}.tmp", std::process::id()));
    let created = faults::check(path).and_then(|()| File::create(&temporary));
    let written = created.and_then(|mut file| {
        // Whoever may read the old file may read the new one, and nobody else.
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.and_then(|()| publish(&temporary, path)).inspect_err(|_| {
        // The error that is returned says more than a failed clean-up would.
        let _ = fs::remove_file(&temporary);
    })
}

/// Removes the temporary files of [`write_atomic`] in a folder. Processes that ended in the
/// middle of a write have left them. The caller must be the only process that writes there.
pub fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_temporary(&path) {
            remove_file(&path)?;
        }
    }
    Ok(())
}

/// Returns true if the name is one that [`write_atomic`] gives: `NAME.PROCESS-WRITE.tmp`.
pub fn is_temporary(path: &Path) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let name = path.file_name().and_then(OsStr::to_str);
    name.and_then(|name| name.strip_suffix(".tmp"))
        .and_then(|name| name.rsplit_once('.'))
        .and_then(|(_, writer)| writer.split_once('-'))
        .is_some_and(|(process, write)| is_number(process) && is_number(write))
}

/// Renames a finished, synced file to its final name and makes the name durable.
pub fn publish(from: &Path, to: &Path) -> io::Result<()> {
    faults::check(to)?;
    platform::rename(from, to)?;
    sync_folder_of(to)
}

/// The same, but a file that has the name already stays, and the call fails. `from` may
/// remain as a second name of the file; it is the caller's to remove.
///
/// # Errors
/// `AlreadyExists` if there is such a file.
pub fn publish_new(from: &Path, to: &Path) -> io::Result<()> {
    faults::check(to)?;
    // A link, unlike a rename, never replaces what is there.
    match fs::hard_link(from, to) {
        Ok(()) => sync_folder_of(to),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Some file systems have no hard links.
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => publish(from, to),
    }
}

/// `path` with `suffix` behind its whole name: `m.gguf` → `m.gguf.part`.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Removes a file. It is no error if there is none.
pub fn remove_file(path: &Path) -> io::Result<()> {
    faults::check(path)?;
    gone(fs::remove_file(path))
}

/// Removes a folder with all that is in it. It is no error if there is none.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    faults::check(path)?;
    gone(fs::remove_dir_all(path))
}

/// Removes a file, or a folder with all that is in it. It is no error if there is neither.
pub fn remove_any(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => remove_folder(path),
        _ => remove_file(path),
    }
}

/// Passes on the result of a removal. What is not there need not be removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes a change of the folder's entries durable.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    faults::check(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    platform::sync_folder(folder.unwrap_or(Path::new(".")))
}

/// Options for a file that only this user can read.
pub fn private() -> OpenOptions {
    platform::private()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe that is opened hangs this test.
    #[cfg(target_os = "linux")]
    #[test]
    fn only_plain_files_of_some_length_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_plain(&path, 5).unwrap(), b"12345");
        assert!(read_plain(&path, 4).is_err());
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for other in [folder.path(), Path::new("/dev/zero"), Path::new("/proc/self/maps"), &socket]
        {
            assert!(read_plain(other, 5).is_err(), "{}", other.display());
        }
    }

    /// A file of mode 0600 got the mode of the process's files when a setting was changed in it.
    #[cfg(unix)]
    #[test]
    fn a_file_that_is_replaced_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        write_atomic(&path, b"a").unwrap();
        for mode in [0o600, 0o640, 0o644] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            write_atomic(&path, b"b").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        }
    }

    #[test]
    fn checksum_is_the_standard_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        write_atomic(&path, b"abc").unwrap();
        // Example B.1 of FIPS 180-4.
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
    fn what_an_interrupted_write_left_is_removed_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str| fs::write(folder.path().join(name), "half").unwrap();
        let kept = ["clock.json", "clock.json.tmp", "clock.7-0.json", "a.x-0.tmp", "a.7-.tmp"];
        kept.into_iter().chain(["clock.json.7-0.tmp", "events.sled.mark.123-45.tmp"]).for_each(put);
        remove_unfinished(folder.path()).unwrap();
        let left = fs::read_dir(folder.path()).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        let mut kept = kept.map(std::ffi::OsString::from);
        kept.sort();
        assert_eq!(left, kept);
    }

    #[test]
    fn a_new_name_never_replaces_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, "new").unwrap();
        fs::write(&to, "old").unwrap();
        let refused = publish_new(&from, &to).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            (fs::read(&from).unwrap(), fs::read(&to).unwrap()),
            (b"new".into(), b"old".into())
        );
        fs::remove_file(&to).unwrap();
        publish_new(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"new");
        fs::remove_file(&from).unwrap();
        assert_eq!(publish_new(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_write_fails_where_a_test_wants_it_to_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        for fails_at in 0.. {
            write_atomic(&path, b"old").unwrap();
            let fault = faults::FailingWrite::arm(folder.path(), fails_at);
            let written = write_atomic(&path, b"new");
            let is_over = !fault.has_failed();
            drop(fault);
            assert_eq!(written.is_ok(), is_over, "{fails_at}");
            // The rename is done when making it durable fails.
            let expected: &[u8] = if fails_at < 2 { b"old" } else { b"new" };
            assert_eq!(fs::read(&path).unwrap(), expected, "{fails_at}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            if is_over {
                assert_eq!(fails_at, 3);
                break;
            }
        }
        remove_file(&path).unwrap();
        remove_file(&path).unwrap();
        remove_any(folder.path()).unwrap();
        remove_any(folder.path()).unwrap();
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
