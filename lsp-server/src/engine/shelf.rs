//! Prompts' keys and values in a folder, shared by daemons that will meet the
//! same prompts: the arms of a rehearsal. What is in a file is a function of the
//! model and of the prompt, for the base alone computes prompts.
//!
//! It holds what was derived from code, unencrypted: nobody but a rehearsal asks
//! for it, and that removes it.

use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Fewer tokens are computed sooner than their file is read and written.
const WORTH_TOKENS: usize = 64;

/// Nothing more is put on a shelf that holds this much, in bytes.
const SHELF_BYTES: u64 = 8 << 30;

pub struct Shelf {
    folder: PathBuf,
    /// Of the model whose prompts these are.
    model: String,
    bytes: u64,
}

impl Shelf {
    pub fn new(folder: &Path, model: &str) -> Result<Shelf, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(failed)?;
        let bytes = fs::read_dir(folder)
            .map_err(failed)?
            .filter_map(|entry| entry.and_then(|entry| entry.metadata()).ok())
            .map(|metadata| metadata.len())
            .sum();
        Ok(Shelf { folder: folder.to_owned(), model: model.to_owned(), bytes })
    }

    /// Whether it is worth asking for a prompt of which so many tokens are missing.
    pub fn is_worth(&self, missing: usize) -> bool {
        missing >= WORTH_TOKENS
    }

    /// What was put there for this prompt.
    pub fn take(&self, prompt: &[u32]) -> Option<Vec<u8>> {
        fs::read(self.path(prompt)).ok()
    }

    /// Whether that could be done is no concern of a completion.
    pub fn put(&mut self, prompt: &[u32], state: &[u8]) {
        if self.bytes + state.len() as u64 > SHELF_BYTES {
            return;
        }
        let path = self.path(prompt);
        let put = || -> std::io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(state)?;
            file.persist(path)?;
            Ok(())
        };
        match put() {
            Ok(()) => self.bytes += state.len() as u64,
            Err(error) => tracing::warn!("a prompt could not be kept: {error}"),
        }
    }

    fn path(&self, prompt: &[u32]) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(&self.model);
        prompt.iter().for_each(|token| hash.update(token.to_le_bytes()));
        let name: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_found_by_its_model_and_tokens() {
        let folder = tempfile::TempDir::new().unwrap();
        let mut shelf = Shelf::new(folder.path(), "a").unwrap();
        shelf.put(&[1, 2], b"state");
        assert_eq!(
            Shelf::new(folder.path(), "a").unwrap().take(&[1, 2]).as_deref(),
            Some(&b"state"[..])
        );
        assert_eq!(shelf.take(&[1, 2, 3]), None);
        assert_eq!(Shelf::new(folder.path(), "b").unwrap().take(&[1, 2]), None);
        shelf.bytes = SHELF_BYTES;
        shelf.put(&[3], b"more");
        assert_eq!(shelf.take(&[3]), None, "it is full");
    }
}
