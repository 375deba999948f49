//! A file whose checksum was taken, and that has to be the same one whenever it is read again.

use crate::file::sha256;
use crate::platform;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

/// What shows that a file is another one without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// It differs where another file was put in place, whatever date that file was given.
    identity: u64,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Stamp> {
        let metadata = fs::metadata(path)?;
        let (modified, identity) = (metadata.modified().ok(), platform::identity(&metadata));
        Ok(Stamp { bytes: metadata.len(), modified, identity })
    }
}

/// A file as it was at some time.
#[derive(Debug)]
pub struct CheckedFile {
    path: PathBuf,
    stamp: Option<Stamp>,
}

impl CheckedFile {
    /// Notes the state of a file. Its checksum is taken after that.
    pub fn before_checksum(path: &Path) -> CheckedFile {
        CheckedFile { path: path.to_owned(), stamp: Stamp::of(path).ok() }
    }

    /// Returns true if the file has still this checksum. It is read only if its state has changed.
    pub fn still_has(&mut self, checksum: &str) -> io::Result<bool> {
        let stamp = Some(Stamp::of(&self.path)?);
        if stamp == self.stamp {
            return Ok(true);
        }
        let is_same = sha256(&self.path)? == checksum;
        if is_same {
            self.stamp = stamp;
        }
        Ok(is_same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::sha256_of;

    #[test]
    fn a_file_that_was_replaced_or_written_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gguf");
        let other = folder.path().join("other");
        fs::write(&path, "weights").unwrap();
        let date = fs::metadata(&path).unwrap().modified().unwrap();
        let checksum = sha256_of(b"weights");
        let mut file = CheckedFile::before_checksum(&path);
        assert!(file.still_has(&checksum).unwrap());

        for (text, is_same) in [("WEIGHTS", false), ("weights", true)] {
            fs::write(&other, text).unwrap();
            let as_old = fs::File::options().write(true).open(&other).unwrap();
            as_old.set_modified(date).unwrap();
            fs::rename(&other, &path).unwrap();
            assert_eq!(file.still_has(&checksum).unwrap(), is_same, "{text}");
        }
        fs::write(&path, "longer weights").unwrap();
        assert!(!file.still_has(&checksum).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(file.still_has(&checksum).is_err());
    }
}
