//! The default model for the homes of tests and of the demo, if the hub cannot be reached.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// The default model's manifest with a second source: a package index.
const MANIFEST: &str = include_str!("../mirror/qwen2.5-coder-0.5b.toml");
const FILE: &str = "qwen2.5-coder-0.5b.toml";

/// Puts the manifest into a home. It takes the place of the one that ships.
pub fn prepare(home: &Path) -> Result<()> {
    let models = home.join("models");
    let write = || {
        fs::create_dir_all(&models)?;
        fs::write(models.join(FILE), MANIFEST)
    };
    write().with_context(|| format!("cannot prepare {}", models.display()))
}
