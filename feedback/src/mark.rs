//! A file that remembers how far the log was on disk at its last flush.
//!
//! The database cuts its log at the first byte that it cannot read, and does not report
//! it: whatever follows is gone without a trace. The number in this file shows that a log
//! was longer once.
//!
//! | bytes | content                                       |
//! |-------|-----------------------------------------------|
//! | 0–7   | the next sequence number, u64 big-endian      |
//! | 8–15  | its checksum: the same with every bit flipped |

use models::file::private;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

const BYTES: usize = 16;

pub struct Mark {
    path: PathBuf,
    file: Option<File>,
    noted: u64,
}

impl Mark {
    /// A file that is missing or unreadable counts as 0.
    pub fn open(path: PathBuf) -> Mark {
        let noted = read(&path).unwrap_or(0);
        Mark { path, file: None, noted }
    }

    pub fn noted(&self) -> u64 {
        self.noted
    }

    /// Notes that every event before this number is on disk. The file is not synced: it
    /// only serves to detect damage, and a number that is too low reports none.
    pub fn note(&mut self, next_seq: u64) -> io::Result<()> {
        if next_seq <= self.noted {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(&self.path)?),
        };
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&next_seq.to_be_bytes());
        bytes[8..].copy_from_slice(&(!next_seq).to_be_bytes());
        file.rewind()?;
        file.write_all(&bytes)?;
        self.noted = next_seq;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    private().create(true).truncate(false).write(true).open(path)
}

fn read(path: &Path) -> Option<u64> {
    let bytes: [u8; BYTES] = std::fs::read(path).ok()?.try_into().ok()?;
    let (number, check) = bytes.split_at(8);
    let number = u64::from_be_bytes(number.try_into().ok()?);
    let check = u64::from_be_bytes(check.try_into().ok()?);
    (check == !number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_only_rises_and_comes_back_unless_it_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mark");
        let noted = || Mark::open(path.clone()).noted();
        assert_eq!(noted(), 0);
        let mut mark = Mark::open(path.clone());
        mark.note(7).unwrap();
        mark.note(5).unwrap();
        assert_eq!(noted(), 7);
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..BYTES * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(noted(), 0, "bit {bit}");
        }
        std::fs::write(&path, &whole[..BYTES - 1]).unwrap();
        assert_eq!(noted(), 0);
    }
}
