//! The folder in which arms that run one after the other share prompts.

use super::arguments::Arguments;
use crate::run::resume::WorkFolder;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The folder with the computed prompts that the arms have in common. It holds gigabytes and is
/// removed when all arms are done.
///
/// With `--work` the prompts outlast an interruption. A prompt that is computed again, in other
/// pieces, would be rounded differently.
pub enum PromptCache {
    Temporary(TempDir),
    /// Lies in the `--work` folder until all arms are done.
    UntilDone(PathBuf),
    /// Stays in the `--work` folder because of `--keep-prompts`.
    ForLaterArms(PathBuf),
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
            Ok(PromptCache::ForLaterArms(parent.join("prompts")))
        } else {
            Ok(PromptCache::UntilDone(WorkFolder::new(parent, identity)?.prompts()))
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            PromptCache::Temporary(folder) => folder.path(),
            PromptCache::UntilDone(folder) | PromptCache::ForLaterArms(folder) => folder,
        }
    }

    /// Removes the prompts after the last arm, unless they are for later arms.
    pub fn clear(self) -> Result<()> {
        if matches!(self, PromptCache::ForLaterArms(_)) {
            return Ok(());
        }
        let path = self.path();
        let cleared = if path.exists() { std::fs::remove_dir_all(path) } else { Ok(()) };
        cleared.with_context(|| format!("cannot remove {}", path.display()))
    }
}
