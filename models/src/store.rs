//! The models folder: which files are there, and whether they are the right ones.

use crate::file;
use crate::manifest::Manifest;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

/// The state of a model's file, found without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelStatus {
    /// The file is not there, or not pinned yet: a pull does both.
    Missing,
    /// A pull was interrupted after this many bytes. The next pull resumes it.
    Partial { bytes: u64 },
    /// The file has the right size. Its checksum was not taken since it last changed.
    Present,
    /// The file has the right checksum.
    Verified,
    /// The file has another size or checksum than the manifest says.
    Wrong,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{} is missing; run `hone model pull {name}`", path.display())]
    Missing { path: PathBuf, name: String },
    #[error(
        "{} is truncated or another file ({found} bytes, {name} has {expected}); \
         run `hone model pull {name}`",
        path.display()
    )]
    WrongSize { path: PathBuf, name: String, found: u64, expected: u64 },
    #[error(
        "{} is damaged or another file (sha256 {found}, {name} has {expected}); \
         run `hone model pull {name}`",
        path.display()
    )]
    WrongHash { path: PathBuf, name: String, found: String, expected: String },
}

/// The checksum of a file, noted next to it. It counts as long as the file has the same
/// size and time of change.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ChecksumNote {
    sha256: String,
    bytes: u64,
    modified_ns: u128,
}

impl Store {
    pub fn new(dir: impl Into<PathBuf>) -> Store {
        Store { dir: dir.into() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns where the model's file lies, or will lie.
    pub fn path(&self, manifest: &Manifest) -> PathBuf {
        self.dir.join(&manifest.file)
    }

    pub fn status(&self, manifest: &Manifest) -> ModelStatus {
        let path = self.path(manifest);
        // Of a file that is not pinned nobody can tell whether it is the right one.
        let metadata = fs::metadata(&path).ok().filter(|_| manifest.is_pinned());
        let Some(metadata) = metadata else {
            return match fs::metadata(part_path(&path)) {
                Ok(part) => ModelStatus::Partial { bytes: part.len() },
                Err(_) => ModelStatus::Missing,
            };
        };
        match known_sha256(&path, &metadata) {
            _ if metadata.len() != manifest.bytes => ModelStatus::Wrong,
            None => ModelStatus::Present,
            Some(sha256) if sha256 == manifest.sha256 => ModelStatus::Verified,
            Some(_) => ModelStatus::Wrong,
        }
    }

    /// Returns true if the model's file is here, as far as can be told without reading it.
    pub fn has(&self, manifest: &Manifest) -> bool {
        matches!(self.status(manifest), ModelStatus::Present | ModelStatus::Verified)
    }

    /// Checks that the model's file is the manifest's, and returns its path. The checksum
    /// is noted in a small file next to it, so that only the first call after a change reads
    /// the whole model.
    pub fn verified(&self, manifest: &Manifest) -> Result<PathBuf, StoreError> {
        let path = self.path(manifest);
        let name = manifest.name.clone();
        let io = |error| StoreError::Io { path: path.clone(), error };
        if !manifest.is_pinned() {
            return Err(StoreError::Missing { path, name });
        }
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::Missing { path, name });
            }
            Err(error) => return Err(io(error)),
        };
        let (found, expected) = (metadata.len(), manifest.bytes);
        if found != expected {
            return Err(StoreError::WrongSize { path, name, found, expected });
        }
        let found = match known_sha256(&path, &metadata) {
            Some(sha256) => sha256,
            None => {
                let sha256 = file::sha256(&path).map_err(io)?;
                // If the folder cannot be written, every start takes the checksum anew.
                let _ = remember(&path, &metadata, &sha256);
                sha256
            }
        };
        if found != manifest.sha256 {
            let expected = manifest.sha256.clone();
            return Err(StoreError::WrongHash { path, name, found, expected });
        }
        Ok(path)
    }
}

/// Returns where the bytes of an unfinished download lie.
pub fn part_path(model: &Path) -> PathBuf {
    file::with_suffix(model, ".part")
}

fn note_path(model: &Path) -> PathBuf {
    file::with_suffix(model, ".sha256.json")
}

/// Notes that `model` has this checksum in its present state.
pub fn remember(model: &Path, metadata: &fs::Metadata, sha256: &str) -> io::Result<()> {
    let note = ChecksumNote {
        sha256: sha256.to_owned(),
        bytes: metadata.len(),
        modified_ns: modified_ns(metadata)?,
    };
    file::write_atomic(&note_path(model), &serde_json::to_vec(&note)?)
}

/// The checksum that was noted. If the note is missing, unreadable or stale, the checksum
/// has to be taken again.
fn known_sha256(model: &Path, metadata: &fs::Metadata) -> Option<String> {
    let note: ChecksumNote = serde_json::from_slice(&fs::read(note_path(model)).ok()?).ok()?;
    let current = note.bytes == metadata.len() && note.modified_ns == modified_ns(metadata).ok()?;
    current.then_some(note.sha256)
}

/// A time before 1970 counts as 1970. The number only has to change when the file does.
fn modified_ns(metadata: &fs::Metadata) -> io::Result<u128> {
    let since = metadata.modified()?.duration_since(UNIX_EPOCH);
    Ok(since.map_or(0, |since| since.as_nanos()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    /// A manifest for a file of this content, without sources.
    pub(crate) fn manifest(content: &[u8]) -> Manifest {
        Manifest {
            name: "tiny".into(),
            architecture: "llama".into(),
            template: crate::fim::template("prefix-only").unwrap(),
            context: 64,
            licence: "MIT".into(),
            file: "tiny.gguf".into(),
            bytes: content.len() as u64,
            sha256: file::sha256_of(content),
            notice: None,
            next_edits: false,
            default: false,
            sources: Vec::new(),
        }
    }

    fn touch(path: &Path) {
        let later = SystemTime::now() + Duration::from_secs(5);
        fs::File::options().write(true).open(path).unwrap().set_modified(later).unwrap();
    }

    #[test]
    fn a_file_that_is_not_pinned_has_to_be_pulled() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let unpinned = Manifest { sha256: String::new(), ..manifest(b"weights") };
        fs::write(store.path(&unpinned), b"weights").unwrap();
        assert_eq!(store.status(&unpinned), ModelStatus::Missing);
        assert!(matches!(store.verified(&unpinned), Err(StoreError::Missing { .. })));
        let pinned = unpinned.pinned(7, file::sha256_of(b"weights"));
        assert_eq!(store.status(&pinned), ModelStatus::Present);
        assert!(store.verified(&pinned).is_ok());
    }

    #[test]
    fn a_missing_model_names_the_command_that_fetches_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let manifest = manifest(b"weights");
        assert_eq!(store.status(&manifest), ModelStatus::Missing);
        let error = store.verified(&manifest).unwrap_err().to_string();
        assert!(error.contains("tiny.gguf is missing; run `hone model pull tiny`"), "{error}");
        assert!(!store.has(&manifest));

        fs::write(part_path(&store.path(&manifest)), b"wei").unwrap();
        assert_eq!(store.status(&manifest), ModelStatus::Partial { bytes: 3 });
    }

    #[test]
    fn a_checksum_is_taken_once_per_change() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let manifest = manifest(b"weights");
        let path = store.path(&manifest);
        fs::write(&path, b"weights").unwrap();
        assert_eq!(store.status(&manifest), ModelStatus::Present);
        assert_eq!(store.verified(&manifest).unwrap(), path);
        assert_eq!(store.status(&manifest), ModelStatus::Verified);
        assert!(store.has(&manifest));

        // With the same size and time the note is believed. That makes a start quick.
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, b"WEIGHTS").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        assert!(store.verified(&manifest).is_ok());

        touch(&path);
        assert_eq!(store.status(&manifest), ModelStatus::Present);
        let error = store.verified(&manifest).unwrap_err();
        assert!(matches!(error, StoreError::WrongHash { .. }), "{error}");
        assert_eq!(store.status(&manifest), ModelStatus::Wrong);
    }

    #[test]
    fn a_truncated_model_is_an_error_with_the_fix() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let manifest = manifest(b"weights");
        fs::write(store.path(&manifest), b"weig").unwrap();
        assert_eq!(store.status(&manifest), ModelStatus::Wrong);
        let error = store.verified(&manifest).unwrap_err().to_string();
        assert!(error.contains("4 bytes, tiny has 7") && error.contains("hone model pull tiny"));
    }

    #[test]
    fn with_a_damaged_note_the_checksum_is_taken_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let manifest = manifest(b"weights");
        let path = store.path(&manifest);
        fs::write(&path, b"weights").unwrap();
        fs::write(note_path(&path), b"{").unwrap();
        assert!(store.verified(&manifest).is_ok());
        assert_eq!(store.status(&manifest), ModelStatus::Verified);
    }
}
