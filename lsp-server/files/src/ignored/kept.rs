//! Verdicts that are kept. Each counts only for the rules of which it was computed.

use crate::limits::VERDICTS_MAX;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Whether paths are ignored, each with the generation of the rules that say so.
#[derive(Debug, Default)]
pub struct Kept(HashMap<PathBuf, (u64, bool)>);

impl Kept {
    /// Returns the verdict on a path by the rules of this generation.
    pub fn get(&self, path: &Path, generation: u64) -> Option<bool> {
        self.0.get(path).filter(|(of, _)| *of == generation).map(|(_, verdict)| *verdict)
    }

    pub fn insert(&mut self, path: &Path, generation: u64, verdict: bool) {
        if self.0.len() >= VERDICTS_MAX {
            self.0.clear();
        }
        self.0.insert(path.to_owned(), (generation, verdict));
    }
}
