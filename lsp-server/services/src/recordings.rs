//! Recorded sessions of the user (`hone record`), in the folder `recordings` of the home.

use anyhow::{Context, Result};
use std::io::ErrorKind;
use std::path::Path;

/// Removes all of them. They do not say which file what was typed came from, so none outlives what
/// the user wants forgotten.
///
/// # Errors
/// Some cannot be removed. The others are.
pub fn remove(folder: &Path) -> Result<()> {
    let removed = std::fs::remove_dir_all(folder);
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).with_context(|| {
            format!("{}: recorded sessions cannot be deleted; delete this folder", folder.display())
        }),
        _ => Ok(()),
    }
}
