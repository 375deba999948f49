//! Removes files that the registry does not need: those of interrupted jobs, those that are too old
//! to roll back to, and all of them if everything is forgotten.

use super::index::{Index, REGISTRY_FILE};
use super::{Entry, IMPORT_PREFIX, JOB_PREFIX, KEPT_FILES, Registry};
use crate::platform::files::is_one_file;
use anyhow::{Context, Result};
use feedback::event::AdapterVersion;
use models::file::sync_folder_of;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

impl Registry {
    /// Removes the files of a job or an import that was interrupted. The caller must hold the lock
    /// that keeps jobs and imports from running.
    pub fn remove_leftovers(&self) {
        if self.read_only_reason.is_some() || self.is_from_copy {
            return;
        }
        let Ok(files) = std::fs::read_dir(&self.folder) else { return };
        let (leftovers, others): (Vec<PathBuf>, Vec<PathBuf>) =
            files.flatten().map(|file| file.path()).partition(|path| has_no_number(path));
        let named =
            |entry: &Entry| [self.adapter_file(entry.version), self.optimizer_file(entry.version)];
        let named: HashSet<PathBuf> = self.index.adapters.iter().flat_map(named).collect();
        // A file has two names if Hone was interrupted after it got its number and before it was
        // registered.
        let second_names = others.iter().filter(|&path| {
            !named.contains(path) && leftovers.iter().any(|leftover| is_one_file(leftover, path))
        });
        remove(second_names.chain(&leftovers));
    }

    /// Removes every file beside the registry, also those that an interrupted update left.
    pub fn clear_folder(&self) -> Result<()> {
        let cannot = |path: &Path| format!("{}: cannot be removed", path.display());
        let entries = std::fs::read_dir(&self.folder)
            .with_context(|| format!("{}: cannot be read", self.folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.file_name() != Some(OsStr::new(REGISTRY_FILE)) {
                let removed = if path.is_dir() {
                    std::fs::remove_dir_all(&path)
                } else {
                    std::fs::remove_file(&path)
                };
                removed.with_context(|| cannot(&path))?;
            }
        }
        sync_folder_of(&self.folder.join(REGISTRY_FILE))
            .with_context(|| self.folder.display().to_string())
    }

    /// Removes files that nobody loads again. A file that cannot be removed only costs space.
    pub(super) fn prune(&self) {
        let in_use: HashSet<AdapterVersion> = self.index.in_use().collect();
        let unused = self.index.adapters.iter().filter(|entry| !in_use.contains(&entry.version));
        for entry in unused {
            let _ = std::fs::remove_file(self.optimizer_file(entry.version));
        }
        for at in without_file(&self.index) {
            let _ = std::fs::remove_file(self.adapter_file(self.index.adapters[at].version));
        }
    }
}

/// Which adapters are too old to roll back to: neither in use nor among the newest of their base
/// model.
pub(super) fn without_file(index: &Index) -> impl Iterator<Item = usize> {
    let in_use: HashSet<AdapterVersion> = index.in_use().collect();
    let mut newer: HashMap<&str, usize> = HashMap::new();
    let newest_first = index.adapters.iter().enumerate().rev();
    newest_first.filter_map(move |(at, entry)| {
        let newer = newer.entry(&entry.base_sha256).or_default();
        *newer += 1;
        (*newer > KEPT_FILES && !in_use.contains(&entry.version)).then_some(at)
    })
}

fn has_no_number(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [JOB_PREFIX, IMPORT_PREFIX].iter().any(|prefix| name.starts_with(prefix))
}

/// Removes files. A file that cannot be removed only costs space.
pub(super) fn remove<'a>(files: impl IntoIterator<Item = &'a PathBuf>) {
    for file in files {
        let _ = std::fs::remove_file(file);
    }
}
