//! Folders and what is in them. An error names the path.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

pub fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Makes a folder that is empty, whatever was there.
pub fn make_empty_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    make_folder(folder)
}

/// Returns the paths of what a folder holds, sorted, because its own order differs from machine to
/// machine. A folder that is missing holds nothing.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(vec![]);
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Returns the files in a folder and in those below it, sorted. Links are left out.
pub fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![];
    for path in list(folder)? {
        if path.is_symlink() {
            continue;
        } else if path.is_dir() {
            files.extend(below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

pub fn copy_into(file: &Path, folder: &Path) -> Result<()> {
    let name = file.file_name().context("no file name")?;
    fs::copy(file, folder.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    Ok(())
}

/// Returns the name of a file, as a text.
pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
