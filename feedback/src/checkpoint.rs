//! What somebody made of the log so far, kept in a file beside it so that the next
//! start need not read all of it. It is never more than that: whatever is wrong with
//! it, the log is read instead.
//!
//! | bytes | what                                                            |
//! |-------|-----------------------------------------------------------------|
//! | 0–7   | [`MAGIC`]; the last byte is this layout's version               |
//! | 8–15  | which generation of the log it was made of, u64 big-endian         |
//! | 16–23 | the number of the first event that is not in it, u64 big-endian |
//! | 24–55 | SHA-256 of bytes 8–23 and of what follows                       |
//! | 56–   | what was made; whoever made it gives that a version             |

use models::file::{beside, publish};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"HoneFld\x01";
const PLACE_BYTES: usize = 16;
const CHECK_BYTES: usize = 32;

/// Nothing that is made of bounded folds comes near it.
const LIMIT_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// [`crate::log::EventLog::generation`] of the log it was made of.
    pub generation: u64,
    /// Events from this number on are not in it.
    pub next_seq: u64,
    pub content: Vec<u8>,
}

pub fn path_of(log: &Path) -> PathBuf {
    beside(log, ".folded")
}

fn unfinished(path: &Path) -> PathBuf {
    beside(path, ".tmp")
}

/// What is there, if it is whole.
pub fn read(path: &Path) -> io::Result<Option<Checkpoint>> {
    let mut bytes = vec![];
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?.take(LIMIT_BYTES).read_to_end(&mut bytes)?,
    };
    parse(bytes).map(Some).ok_or_else(|| io::Error::other("damaged, or of another Hone"))
}

/// Which generation of the log it says it is of, and how far it goes. Not checked;
/// nonsense where it is cut or of another layout.
pub fn place(path: &Path) -> io::Result<Option<(u64, u64)>> {
    let mut head = [0; MAGIC.len() + PLACE_BYTES];
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
    let (place, rest) = rest.split_at_checked(PLACE_BYTES)?;
    let (check, content) = rest.split_at_checked(CHECK_BYTES)?;
    if check != checksum(place, content).as_slice() {
        return None;
    }
    let (generation, next_seq) = place.split_at(8);
    let generation = u64::from_be_bytes(generation.try_into().ok()?);
    let next_seq = u64::from_be_bytes(next_seq.try_into().ok()?);
    let content = bytes.split_off(MAGIC.len() + PLACE_BYTES + CHECK_BYTES);
    Some(Checkpoint { generation, next_seq, content })
}

/// Takes the place of what is there, or leaves it as it is.
pub fn write(path: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    let place = [checkpoint.generation.to_be_bytes(), checkpoint.next_seq.to_be_bytes()].concat();
    let check = checksum(&place, &checkpoint.content);
    // One name, so that nothing of what a death left is ever overlooked.
    let temporary = unfinished(path);
    let written = create(&temporary).and_then(|mut file| {
        for part in [MAGIC.as_slice(), &place, &check, &checkpoint.content] {
            file.write_all(part)?;
        }
        file.sync_all()
    });
    written.and_then(|()| publish(&temporary, path)).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

/// Leaves no byte of it, finished or not.
pub fn remove(path: &Path) -> io::Result<()> {
    remove_unfinished(path)?;
    remove_file(path)
}

pub fn remove_unfinished(path: &Path) -> io::Result<()> {
    remove_file(&unfinished(path))
}

fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| models::file::sync_folder_of(path)),
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.create(true).truncate(true).write(true).open(path)
}

fn checksum(place: &[u8], content: &[u8]) -> Vec<u8> {
    Sha256::new().chain_update(place).chain_update(content).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folded");
        assert!(read(&path).unwrap().is_none());
        let checkpoint =
            Checkpoint { generation: 7, next_seq: 9, content: b"what was made".to_vec() };
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

    #[cfg(unix)]
    #[test]
    fn it_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("folded");
        write(&path, &Checkpoint { generation: 0, next_seq: 0, content: vec![] }).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
