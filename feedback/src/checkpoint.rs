//! A checkpoint: the state that was folded from the log so far, kept in a file next to it,
//! so that the next start need not read all of the log. It is a copy and nothing more.
//! If anything is wrong with it, the log is read instead.
//!
//! | bytes | content                                                           |
//! |-------|-------------------------------------------------------------------|
//! | 0–7   | [`MAGIC`]; its last byte is the version of this layout            |
//! | 8–15  | the generation of the log that it was folded from, u64 big-endian |
//! | 16–23 | the number of the first event that is not in it, u64 big-endian   |
//! | 24–55 | SHA-256 of bytes 8–23 and of the content                          |
//! | 56–   | the content, which carries a version of its own                   |

use crate::limits::CHECKPOINT_BYTES_MAX;
use models::file::{private, publish, with_suffix};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"HoneFld\x01";
const POSITION_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// [`crate::log::EventLog::generation`] of the log that it was folded from.
    pub generation: u64,
    /// The number of the first event that is not in it.
    pub next_seq: u64,
    pub content: Vec<u8>,
}

/// Returns where the checkpoint of a log lies.
pub fn path_of(log: &Path) -> PathBuf {
    with_suffix(log, ".folded")
}

fn unfinished(path: &Path) -> PathBuf {
    with_suffix(path, ".tmp")
}

/// Reads the whole file. `None` if there is none.
///
/// # Errors
/// The file is damaged, or has the layout of another version of Hone.
pub fn read(path: &Path) -> io::Result<Option<Checkpoint>> {
    let mut bytes = vec![];
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?.take(CHECKPOINT_BYTES_MAX).read_to_end(&mut bytes)?,
    };
    parse(bytes).map(Some).ok_or_else(|| {
        io::Error::other("the checkpoint is damaged, or another version of Hone wrote it")
    })
}

/// The generation and the next event's number, as the file states them. Nothing is
/// checked: the numbers mean nothing if the file is cut or has another layout.
pub fn read_position(path: &Path) -> io::Result<Option<(u64, u64)>> {
    let mut head = [0; MAGIC.len() + POSITION_BYTES];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    let number = |at: usize| head[at..].iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte));
    Ok(Some((number(MAGIC.len()), number(MAGIC.len() + 8))))
}

fn parse(mut bytes: Vec<u8>) -> Option<Checkpoint> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (position, rest) = rest.split_at_checked(POSITION_BYTES)?;
    let (check, content) = rest.split_at_checked(CHECKSUM_BYTES)?;
    if check != checksum(position, content).as_slice() {
        return None;
    }
    let (generation, next_seq) = position.split_at(8);
    let generation = u64::from_be_bytes(generation.try_into().ok()?);
    let next_seq = u64::from_be_bytes(next_seq.try_into().ok()?);
    let content = bytes.split_off(MAGIC.len() + POSITION_BYTES + CHECKSUM_BYTES);
    Some(Checkpoint { generation, next_seq, content })
}

/// Replaces the file. If that fails, the file stays as it was.
pub fn write(path: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    let position =
        [checkpoint.generation.to_be_bytes(), checkpoint.next_seq.to_be_bytes()].concat();
    let check = checksum(&position, &checkpoint.content);
    // The temporary file always has the same name, so that `remove` also finds the one
    // that a crash left behind.
    let temporary = unfinished(path);
    let written = create(&temporary).and_then(|mut file| {
        for part in [MAGIC.as_slice(), &position, &check, &checkpoint.content] {
            file.write_all(part)?;
        }
        file.sync_all()
    });
    written.and_then(|()| publish(&temporary, path)).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

/// Removes the file, and an unfinished one that a crash left behind.
pub fn remove(path: &Path) -> io::Result<()> {
    remove_unfinished(path)?;
    remove_file(path)
}

pub fn remove_unfinished(path: &Path) -> io::Result<()> {
    remove_file(&unfinished(path))
}

fn remove_file(path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    models::file::remove_file(path)?;
    models::file::sync_folder_of(path)
}

fn create(path: &Path) -> io::Result<File> {
    private().create(true).truncate(true).write(true).open(path)
}

fn checksum(position: &[u8], content: &[u8]) -> Vec<u8> {
    Sha256::new().chain_update(position).chain_update(content).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folded");
        assert!(read(&path).unwrap().is_none());
        let checkpoint = Checkpoint { generation: 7, next_seq: 9, content: b"folded".to_vec() };
        write(&path, &checkpoint).unwrap();
        assert_eq!(read(&path).unwrap(), Some(checkpoint));
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, damaged).unwrap();
            assert!(read(&path).is_err(), "bit {bit}");
        }
        for end in 0..whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            assert!(read(&path).is_err(), "cut at {end}");
        }
        std::fs::write(unfinished(&path), "half").unwrap();
        remove(&path).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    /// Checks the bytes, so that a later version reads what this one writes.
    #[test]
    fn the_layout_is_the_documented_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folded");
        write(&path, &Checkpoint { generation: 7, next_seq: 9, content: b"x".to_vec() }).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes[..24], *b"HoneFld\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x09");
        assert_eq!((bytes.len(), bytes[56]), (57, b'x'));
        assert_eq!(read_position(&path).unwrap(), Some((7, 9)));
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folded");
        write(&path, &Checkpoint { generation: 0, next_seq: 0, content: vec![] }).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
