//! A folder of keys and values (KV) that prompts were computed to, shared by daemons
//! and learners that meet the same prompts. Only the arms of a rehearsal use it.
//!
//! Only what the base model computes is kept, never what an adapter changes. A file's
//! content therefore depends on the program, on the model and on the tokens, and on
//! nothing else. The engine keeps the base model's answers in a second cache of the same
//! kind, in a folder of its own.
//!
//! The files hold data that is derived from code, unencrypted. The rehearsal that asks
//! for the cache removes it when it ends.

use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Computing fewer tokens than this takes less time than reading and writing their file.
const WORTH_TOKENS_MIN: usize = 64;

/// A cache that holds this much accepts no further file.
const DISK_CACHE_BYTES_MAX: u64 = 16 << 30;

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

    /// Whether it saves time to look a prompt up that has this many tokens to compute.
    pub fn is_worth(&self, missing_tokens: usize) -> bool {
        missing_tokens >= WORTH_TOKENS_MIN
    }

    pub fn get(&self, prompt: &[u32]) -> Option<Vec<u8>> {
        fs::read(self.path(prompt)).ok()
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
    fn a_full_cache_accepts_nothing_more() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut cache = DiskCache::new(folder.path(), "a").unwrap();
        cache.bytes = DISK_CACHE_BYTES_MAX;
        cache.put(&[3], b"more").unwrap();
        assert_eq!(cache.get(&[3]), None);
    }
}
