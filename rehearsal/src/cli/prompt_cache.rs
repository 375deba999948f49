//! The folder in which arms that run one after the other share prompts.

use super::arguments::Arguments;
use crate::run::resume::WorkFolder;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where the prompts are that the arms have in common: gigabytes, gone with this.
/// With `--work` they outlast an interruption: a prompt computed anew, in other
/// pieces, is rounded otherwise.
pub enum PromptCache {
    Temporary(TempDir),
    Kept(PathBuf),
    /// By the user's wish.
    Left(PathBuf),
}

impl PromptCache {
    pub fn new(arguments: &Arguments, identity: &str) -> Result<PromptCache> {
        let Some(parent) = &arguments.work else {
            let folder = tempfile::Builder::new().prefix("prompts-").tempdir();
            return Ok(PromptCache::Temporary(
                folder.context("cannot create a folder for the prompts")?,
            ));
        };
        if arguments.keep_prompts {
            Ok(PromptCache::Left(parent.join("prompts")))
        } else {
            Ok(PromptCache::Kept(WorkFolder::new(parent, identity)?.prompts()))
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            PromptCache::Temporary(folder) => folder.path(),
            PromptCache::Kept(folder) | PromptCache::Left(folder) => folder,
        }
    }

    /// All arms are done: nobody else meets these prompts.
    pub fn clear(self) -> Result<()> {
        if matches!(self, PromptCache::Left(_)) {
            return Ok(());
        }
        let path = self.path();
        let cleared = if path.exists() { std::fs::remove_dir_all(path) } else { Ok(()) };
        cleared.with_context(|| format!("cannot remove {}", path.display()))
    }
}
