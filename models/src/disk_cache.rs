//! Prompts' keys and values in a folder, shared by daemons and learners that
//! will meet the same prompts: the arms of a rehearsal. What is in a file is a
//! function of who computed it, of the model and of the prompt, for the base
//! alone computes prompts. What the base answers is kept the same way, in a folder
//! of its own, the tokens being all that the answer depends on.
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
const SHELF_BYTES: u64 = 16 << 30;

pub struct Shelf {
    folder: PathBuf,
    /// The program, whose way of writing them they have, and the model.
    whose: String,
    bytes: u64,
}

impl Shelf {
    pub fn new(folder: &Path, whose: &str) -> Result<Shelf, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(failed)?;
        let bytes = fs::read_dir(folder)
            .map_err(failed)?
            .filter_map(|entry| entry.and_then(|entry| entry.metadata()).ok())
            .map(|metadata| metadata.len())
            .sum();
        Ok(Shelf { folder: folder.to_owned(), whose: whose.to_owned(), bytes })
    }

    /// Whether it is worth asking for a prompt of which so many tokens are missing.
    pub fn is_worth(&self, missing: usize) -> bool {
        missing >= WORTH_TOKENS
    }

    /// What was put there for this prompt.
    pub fn take(&self, prompt: &[u32]) -> Option<Vec<u8>> {
        fs::read(self.path(prompt)).ok()
    }

    /// Puts it there, unless the shelf is full.
    pub fn put(&mut self, prompt: &[u32], state: &[u8]) -> std::io::Result<()> {
        if self.bytes + state.len() as u64 > SHELF_BYTES {
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
        hash.update(&self.whose);
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
        shelf.put(&[1, 2], b"state").unwrap();
        assert_eq!(
            Shelf::new(folder.path(), "a").unwrap().take(&[1, 2]).as_deref(),
            Some(&b"state"[..])
        );
        assert_eq!(shelf.take(&[1, 2, 3]), None);
        assert_eq!(Shelf::new(folder.path(), "b").unwrap().take(&[1, 2]), None);
        shelf.bytes = SHELF_BYTES;
        shelf.put(&[3], b"more").unwrap();
        assert_eq!(shelf.take(&[3]), None, "it is full");
    }
}
