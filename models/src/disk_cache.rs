//! A cache on disk for the attention keys and values (KV) of prompts.
//!
//! The arms of a rehearsal share one, because they meet the same prompts. In daily use the daemon
//! puts the prompts of its offers into one of its own, from which the learner takes them instead of
//! computing them ([`DiskCache::handed`]).
//!
//! Only what the base model computes is kept, never what an adapter changes. A file's
//! content therefore depends on the program, on the model and on the tokens, and on
//! nothing else. The engine keeps the base model's answers in a second cache of the same
//! kind, in a folder of its own.
//!
//! The files hold data that is derived from code, unencrypted. Whoever makes a cache removes its
//! files: a rehearsal when it ends, and the daemon once their offers are learned or forgotten.

use crate::file::remove_any;
use crate::limits::{CACHED_TOKENS_MIN, DISK_CACHE_BYTES_MAX};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The form of what the daemon hands over: for each layer the keys of all tokens and then their
/// values, as f16 in the machine's byte order. Keys are rotated (RoPE). Another form needs another
/// name.
const HANDED_FORM: &str = "handed 1";

pub struct DiskCache {
    folder: PathBuf,
    /// The program that writes the files, in its own form, and the model. Files of
    /// another owner are never found.
    owner: String,
    bytes: u64,
}

impl DiskCache {
    pub fn new(folder: &Path, owner: &str) -> Result<DiskCache, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(failed)?;
        let bytes = fs::read_dir(folder)
            .map_err(failed)?
            .filter_map(|entry| entry.and_then(|entry| entry.metadata()).ok())
            .map(|metadata| metadata.len())
            .sum();
        Ok(DiskCache { folder: folder.to_owned(), owner: owner.to_owned(), bytes })
    }

    /// The cache through which the daemon hands prompts of this model to the learner.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn handed(folder: &Path, base_sha256: &str) -> Result<DiskCache, String> {
        DiskCache::new(folder, &format!("{HANDED_FORM} {base_sha256}"))
    }

    /// The size of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if it saves time to look a prompt up that has this many tokens to compute.
    pub fn is_worth(&self, missing_tokens: usize) -> bool {
        missing_tokens >= CACHED_TOKENS_MIN
    }

    pub fn get(&self, prompt: &[u32]) -> Option<Vec<u8>> {
        fs::read(self.path(prompt)).ok()
    }

    /// Opens the file of a prompt, for whoever reads it piece by piece.
    pub fn open(&self, prompt: &[u32]) -> Option<fs::File> {
        fs::File::open(self.path(prompt)).ok()
    }

    pub fn contains(&self, prompt: &[u32]) -> bool {
        self.path(prompt).is_file()
    }

    /// Deletes the file of a prompt, if there is one.
    pub fn remove(&mut self, prompt: &[u32]) {
        let path = self.path(prompt);
        let bytes = fs::metadata(&path).map_or(0, |file| file.len());
        if fs::remove_file(&path).is_ok() {
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }

    /// Deletes all files, also those of other owners. A folder that is not there has none.
    ///
    /// # Errors
    /// One of them cannot be deleted.
    pub fn clear(&mut self) -> std::io::Result<()> {
        DiskCache::clear_folder(&self.folder)?;
        self.bytes = 0;
        Ok(())
    }

    /// Deletes all files of a folder, whether a cache is open there or not.
    ///
    /// # Errors
    /// One of them cannot be deleted.
    pub fn clear_folder(folder: &Path) -> std::io::Result<()> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            remove_any(&entry?.path())?;
        }
        Ok(())
    }

    /// Stores the state of a prompt. Does nothing if the cache is full.
    pub fn put(&mut self, prompt: &[u32], state: &[u8]) -> std::io::Result<()> {
        if self.bytes + state.len() as u64 > DISK_CACHE_BYTES_MAX {
            return Ok(());
        }
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(state)?;
        file.persist(self.path(prompt))?;
        self.bytes += state.len() as u64;
        Ok(())
    }

    fn path(&self, prompt: &[u32]) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(&self.owner);
        prompt.iter().for_each(|token| hash.update(token.to_le_bytes()));
        let name: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_found_by_its_owner_and_tokens() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut cache = DiskCache::new(folder.path(), "a").unwrap();
        cache.put(&[1, 2], b"state").unwrap();
        let reopened = DiskCache::new(folder.path(), "a").unwrap();
        assert_eq!(reopened.get(&[1, 2]).as_deref(), Some(&b"state"[..]));
        assert_eq!(cache.get(&[1, 2, 3]), None);
        assert_eq!(DiskCache::new(folder.path(), "b").unwrap().get(&[1, 2]), None);
    }

    #[test]
    fn what_is_removed_is_not_found_and_takes_no_room() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut cache = DiskCache::handed(folder.path(), "a").unwrap();
        cache.put(&[1], b"one").unwrap();
        cache.put(&[2], b"three").unwrap();
        cache.remove(&[1]);
        cache.remove(&[9]);
        assert_eq!((cache.contains(&[1]), cache.contains(&[2]), cache.bytes()), (false, true, 5));
        DiskCache::new(folder.path(), "b").unwrap().put(&[1], b"of another").unwrap();
        cache.clear().unwrap();
        assert_eq!((cache.bytes(), fs::read_dir(folder.path()).unwrap().count()), (0, 0));
        folder.close().unwrap();
        cache.clear().expect("a folder that is gone has no file");
    }

    #[test]
    fn a_full_cache_accepts_nothing_more() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut cache = DiskCache::new(folder.path(), "a").unwrap();
        cache.bytes = DISK_CACHE_BYTES_MAX;
        cache.put(&[3], b"more").unwrap();
        assert_eq!(cache.get(&[3]), None);
    }
}
