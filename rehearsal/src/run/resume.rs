//! Where a rehearsal is kept while it runs, so that it can be gone on with, and
//! once it is done, so that it need not be done again.
//!
//! A folder holds one run: `state.json`, and each arm's home as it was when that
//! was written. It is written whole and then moved to its place.

use crate::run::record::ArmRecord;
use crate::run::{ArmResult, StreamEnd};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of `state.json`; a run of another one is begun anew.
const FORMAT: u32 = 1;

/// Of an arm's home, what it needs to go on.
const SAVED_PARTS: [&str; 2] = ["data", "adapters"];

/// A run as far as it got.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SavedRun {
    format: u32,
    /// File changes that are typed.
    pub files: usize,
    /// Of these, the ones that were left out because their commit had enough places.
    #[serde(default)]
    pub left_out: usize,
    /// The commit at hand, and its places so far.
    #[serde(default)]
    pub commit: (String, usize),
    /// Places of the stream so far, and lines.
    pub places: usize,
    pub lines: usize,
    pub elapsed: Duration,
    pub arms: Vec<ArmRecord>,
    /// Set once it is done.
    pub done: Option<(StreamEnd, Vec<ArmResult>)>,
}

impl SavedRun {
    pub fn new(arms: usize) -> SavedRun {
        SavedRun { arms: vec![ArmRecord::default(); arms], ..SavedRun::default() }
    }
}

/// The folder of one run.
#[derive(Debug, Clone)]
pub struct WorkFolder {
    folder: PathBuf,
}

impl WorkFolder {
    /// `identity`: everything the run's results depend on.
    pub fn new(parent: &Path, identity: &str) -> Result<WorkFolder> {
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
        let hash = Sha256::digest(format!("{FORMAT}\n{identity}"));
        let name: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(WorkFolder { folder: parent.join(name) })
    }

    /// A folder beside it, for the prompts that its arms have in common.
    pub fn prompts(&self) -> PathBuf {
        self.folder.with_extension("prompts")
    }

    /// What was saved before, while the next takes its place.
    fn old(&self) -> PathBuf {
        self.folder.with_extension("old")
    }

    /// The run as it was last saved, if it ever was.
    pub fn load(&self) -> Result<Option<SavedRun>> {
        // A death between the two renames of a save left the one before.
        if !self.folder.exists() && self.old().exists() {
            fs::rename(self.old(), &self.folder)
                .with_context(|| format!("cannot go back to {}", self.old().display()))?;
        }
        let path = self.folder.join("state.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let progress: SavedRun = serde_json::from_slice(&text)
            .with_context(|| format!("{} is damaged: delete its folder", path.display()))?;
        Ok((progress.format == FORMAT).then_some(progress))
    }

    /// Brings an arm's home back to where it was saved.
    pub fn restore(&self, arm: usize, home: &Path) -> Result<()> {
        let saved = self.folder.join(arm.to_string());
        copy(&saved, home).with_context(|| format!("cannot copy {}", saved.display()))
    }

    /// Saves a run whose daemons stand still; a finished one needs no homes.
    pub fn save(&self, progress: &mut SavedRun, homes: &[&Path]) -> Result<()> {
        progress.format = FORMAT;
        let new = self.folder.with_extension("new");
        let saved = || -> Result<()> {
            remove(&new)?;
            for (arm, home) in homes.iter().enumerate() {
                for part in SAVED_PARTS {
                    copy(&home.join(part), &new.join(arm.to_string()).join(part))?;
                }
            }
            fs::create_dir_all(&new)?;
            fs::write(new.join("state.json"), serde_json::to_vec(progress)?)?;
            let old = self.old();
            remove(&old)?;
            if self.folder.exists() {
                fs::rename(&self.folder, &old)?;
            }
            fs::rename(&new, &self.folder)?;
            Ok(remove(&old)?)
        };
        saved().with_context(|| format!("cannot save the rehearsal in {}", self.folder.display()))
    }
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies a folder with all in it; one that is not there is empty.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn what_was_saved_is_there_again_and_of_another_identity_there_is_nothing() {
        let (parent, home, back) =
            (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
        let inside = home.path().join("data/events.sled");
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("db"), "events").unwrap();
        fs::write(home.path().join("config.toml"), "").unwrap();

        let work = WorkFolder::new(parent.path(), "one").unwrap();
        assert!(work.load().unwrap().is_none());
        let mut progress = SavedRun { files: 3, places: 7, ..SavedRun::new(1) };
        work.save(&mut progress, &[home.path()]).unwrap();
        progress.files = 4;
        work.save(&mut progress, &[home.path()]).unwrap();
        let loaded = work.load().unwrap().unwrap();
        assert_eq!((loaded.files, loaded.places, loaded.arms.len()), (4, 7, 1));
        assert!(!work.old().exists());
        fs::rename(&work.folder, work.old()).unwrap();
        assert_eq!(work.load().unwrap().unwrap().files, 4, "a death in the middle of a save");
        work.restore(0, back.path()).unwrap();
        assert_eq!(fs::read(back.path().join("data/events.sled/db")).unwrap(), b"events");
        assert!(!back.path().join("config.toml").exists(), "the arm writes its own");
        assert!(WorkFolder::new(parent.path(), "two").unwrap().load().unwrap().is_none());
    }
}
