//! Saves a rehearsal while it runs, so that it can be continued, and when it is done, so that it
//! need not be done again.
//!
//! The folder of a run holds `state.json` and the home of each arm as it was at that moment. A save
//! is written to a new folder, which then replaces the old one.

use crate::run::record::ArmRecord;
use crate::run::{ArmResult, StreamEnd};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of `state.json`. A run that was saved in another version starts again.
const FORMAT: u32 = 1;

/// The parts of an arm's home that it needs in order to continue.
const SAVED_PARTS: [&str; 2] = ["data", "adapters"];

/// A run as far as it has got.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SavedRun {
    format: u32,
    /// File changes of the stream so far.
    pub files: usize,
    /// How many of these were left out because their commit had enough places.
    pub left_out: usize,
    /// The current commit and its places so far.
    pub commit: (String, usize),
    /// Places and lines of the stream so far.
    pub places: usize,
    pub lines: usize,
    pub elapsed: Duration,
    pub arms: Vec<ArmRecord>,
    /// The results, once the run is done.
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
    /// `identity` is everything that the results of the run depend on.
    pub fn new(parent: &Path, identity: &str) -> Result<WorkFolder> {
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
        let hash = Sha256::digest(format!("{FORMAT}\n{identity}"));
        let name: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(WorkFolder { folder: parent.join(name) })
    }

    /// A folder next to this one for the prompts that the arms share.
    pub fn prompts(&self) -> PathBuf {
        self.folder.with_extension("prompts")
    }

    /// Returns where the last save lies while the next one replaces it.
    fn old(&self) -> PathBuf {
        self.folder.with_extension("old")
    }

    /// The run as it was last saved, if it ever was.
    pub fn load(&self) -> Result<Option<SavedRun>> {
        // If the process died between the two renames of a save, the old save is still there.
        if !self.folder.exists() && self.old().exists() {
            fs::rename(self.old(), &self.folder)
                .with_context(|| format!("cannot restore {}", self.old().display()))?;
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

    /// Copies the saved home of an arm into `home`.
    pub fn restore(&self, arm: usize, home: &Path) -> Result<()> {
        let saved = self.folder.join(arm.to_string());
        copy(&saved, home).with_context(|| format!("cannot copy {}", saved.display()))
    }

    /// Saves a run whose daemons are stopped. A finished run needs no homes.
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

/// Copies a folder with everything in it. A missing folder counts as empty.
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
    fn a_saved_run_is_loaded_under_its_own_identity_only() {
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
        assert_eq!(
            work.load().unwrap().unwrap().files,
            4,
            "the process died in the middle of a save"
        );
        work.restore(0, back.path()).unwrap();
        assert_eq!(fs::read(back.path().join("data/events.sled/db")).unwrap(), b"events");
        assert!(!back.path().join("config.toml").exists(), "an arm writes its own settings");
        assert!(WorkFolder::new(parent.path(), "two").unwrap().load().unwrap().is_none());
    }
}
