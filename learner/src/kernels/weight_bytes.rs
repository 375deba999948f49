//! The bytes of a frozen matrix: a part of the model's file as it lies in the page cache.
//!
//! The server maps the same file, so that both share the pages that it has not copied, and the
//! system can take them back when memory runs short. A copy of ours would be hundreds of megabytes
//! that it cannot take back. Once a layer is computed, its pages leave this process and stay in the
//! page cache, from which the next pass maps them again, sixteen with one page fault.
//!
//! `unsafe` because a mapped file must not become shorter. Hone replaces a model's file by another
//! one under the same name and never writes into it. If somebody else cuts it off, this process
//! ends with a bus error, which costs an update and no completion.
#![allow(unsafe_code)]

use crate::machine::platform;
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// A mapped file.
#[derive(Debug, Clone)]
pub struct MappedFile(Arc<Mmap>);

impl MappedFile {
    pub fn new(file: &File) -> io::Result<MappedFile> {
        // SAFETY: nobody makes the file shorter, as said above.
        let map = unsafe { Mmap::map(file)? };
        Ok(MappedFile(Arc::new(map)))
    }

    /// Some bytes of the file; `None` if it ends before.
    pub fn part(&self, range: Range<usize>) -> Option<WeightBytes> {
        self.0.get(range.clone())?;
        Some(WeightBytes::Mapped(self.clone(), range))
    }
}

#[derive(Debug)]
pub enum WeightBytes {
    /// For tests.
    Own(Vec<u8>),
    Mapped(MappedFile, Range<usize>),
}

impl WeightBytes {
    #[inline(always)]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            WeightBytes::Own(bytes) => bytes,
            WeightBytes::Mapped(file, range) => &file.0[range.clone()],
        }
    }

    /// Takes the pages of these bytes out of this process until they are read again.
    pub fn release(&self) {
        if let WeightBytes::Mapped(file, range) = self {
            platform::release_pages(&file.0, range.clone());
        }
    }
}

impl From<Vec<u8>> for WeightBytes {
    fn from(bytes: Vec<u8>) -> WeightBytes {
        WeightBytes::Own(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_part_has_the_bytes_of_the_file_and_ends_where_it_ends() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let mapped = MappedFile::new(&file).unwrap();
        assert_eq!(mapped.part(3..10).unwrap().as_slice(), b"3456789");
        assert!(mapped.part(3..11).is_none());
        assert!(mapped.part(20..21).is_none());
    }

    #[test]
    fn bytes_that_were_released_are_the_same_when_they_are_read_again() {
        let mut file = tempfile::tempfile().unwrap();
        let written: Vec<u8> = (0..100_000u32).map(|at| (at % 251) as u8).collect();
        file.write_all(&written).unwrap();
        let part = MappedFile::new(&file).unwrap().part(4_000..90_000).unwrap();
        for _ in 0..2 {
            assert_eq!(part.as_slice(), &written[4_000..90_000]);
            part.release();
        }
    }
}
