//! Removes files that the registry does not need: those of interrupted jobs, those that are too old
//! to roll back to, and all of them if everything is forgotten.

use super::index::{REGISTRY_COPY, REGISTRY_FILE};
use super::{IMPORT_PREFIX, JOB_PREFIX, Registry};
use anyhow::{Context, Result};
use feedback::event::AdapterVersion;
use host::platform::files::is_one_file;
use models::file::{is_temporary, remove_any, sync_folder_of};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file in the registry's folder, by its name.
enum Named {
    /// An adapter, or the state of the optimizer that made it.
    Adapter(AdapterVersion),
    Optimizer(AdapterVersion),
    /// It has no number yet: it belongs to a job or to an import, or was not written to its end.
    Unfinished,
    Other,
}

impl Named {
    fn of(path: &Path) -> Named {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_unfinished = [JOB_PREFIX, IMPORT_PREFIX].iter().any(|start| name.starts_with(start));
        if is_unfinished || is_temporary(path) {
            return Named::Unfinished;
        }
        let numbered = name.strip_prefix('v').and_then(|rest| rest.split_once('.'));
        match numbered.and_then(|(number, ending)| Some((number.parse().ok()?, ending))) {
            Some((version, "gguf")) => Named::Adapter(version),
            Some((version, "optimizer")) => Named::Optimizer(version),
            _ => Named::Other,
        }
    }
}

impl Registry {
    /// Removes the files of a job or an import that was interrupted, and those that could not be
    /// removed earlier. The caller must hold the lock that keeps jobs and imports from running.
    pub fn remove_leftovers(&self) {
        if self.read_only_reason.is_some() || self.is_from_copy {
            return;
        }
        let Ok(files) = self.files() else { return };
        let is_leftover = |path: &&PathBuf| matches!(Named::of(path), Named::Unfinished);
        let (leftovers, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
            files.iter().partition(is_leftover);
        // A file has two names if Hone was interrupted after it got its number and before it was
        // registered.
        let second_names = others.into_iter().filter(|path| {
            self.is_unnamed(path) && leftovers.iter().any(|leftover| is_one_file(leftover, path))
        });
        remove(second_names.chain(leftovers.iter().copied()));
        self.prune();
    }

    /// Removes the files that the registry does not name and that may have learned from anything:
    /// those of jobs and imports, unfinished writes, and adapters of a registry that was lost.
    ///
    /// # Errors
    /// A file cannot be removed. The others are.
    pub fn remove_unnamed(&self) -> Result<()> {
        if self.read_only_reason.is_some() {
            return Ok(());
        }
        let is_removed =
            |path: &&PathBuf| matches!(Named::of(path), Named::Unfinished) || self.is_unnamed(path);
        remove_all(self.files()?.iter().filter(is_removed))
    }

    /// Removes the files of forgotten adapters, and those that nobody loads again. Which ones those
    /// are is known by the registry and the folder alone, so that what cannot be removed now is
    /// removed by a later call.
    ///
    /// # Errors
    /// A file cannot be removed. The others are.
    pub fn remove_unused(&self) -> Result<()> {
        if self.read_only_reason.is_some() {
            return Ok(());
        }
        let in_use: HashSet<AdapterVersion> = self.index.in_use().collect();
        let without_file: HashSet<AdapterVersion> =
            self.index.without_file().map(|at| self.index.adapters[at].version).collect();
        let is_unused = |path: &&PathBuf| match Named::of(path) {
            Named::Adapter(version) => {
                without_file.contains(&version)
                    || self.entry(version).is_some_and(|entry| entry.forgotten)
            }
            Named::Optimizer(version) => {
                self.entry(version).is_some_and(|entry| entry.forgotten)
                    || (!in_use.contains(&version) && self.entry(version).is_some())
            }
            Named::Unfinished | Named::Other => false,
        };
        remove_all(self.files()?.iter().filter(is_unused))
    }

    /// Removes every file next to the registry, also those that an interrupted update left.
    pub fn clear_folder(&self) -> Result<()> {
        let files = self.files()?;
        let registry = [REGISTRY_FILE, REGISTRY_COPY].map(OsStr::new);
        let is_other = |path: &&PathBuf| !path.file_name().is_some_and(|it| registry.contains(&it));
        remove_all(files.iter().filter(is_other))
    }

    /// Removes files that nobody loads again. A file that cannot be removed only costs space, and
    /// the next change tries again.
    pub(super) fn prune(&self) {
        if let Err(error) = self.remove_unused() {
            tracing::warn!("{error:#}");
        }
    }

    /// Returns true for an adapter or optimizer that the registry does not name.
    fn is_unnamed(&self, path: &Path) -> bool {
        match Named::of(path) {
            Named::Adapter(version) | Named::Optimizer(version) => self.entry(version).is_none(),
            Named::Unfinished | Named::Other => false,
        }
    }

    /// Lists the registry's folder. A folder that is not there has no file.
    fn files(&self) -> Result<Vec<PathBuf>> {
        let cannot = || format!("{}: cannot be read", self.folder.display());
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
            entries => entries.with_context(cannot)?,
        };
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.collect::<std::io::Result<_>>().with_context(cannot)
    }
}

/// Removes files, all that can be, for good.
///
/// # Errors
/// The first one that cannot be removed.
fn remove_all<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Result<()> {
    let (mut result, mut any) = (Ok(()), None);
    for file in files {
        let removed = remove_any(file).with_context(|| {
            format!("{}: cannot be removed; close whatever has it open", file.display())
        });
        result = result.and(removed);
        any = Some(file);
    }
    if let Some(file) = any {
        let folder = || format!("{}: its folder cannot be written", file.display());
        result = result.and(sync_folder_of(file).with_context(folder));
    }
    result
}

/// Removes files. A file that cannot be removed only costs space.
pub(super) fn remove<'a>(files: impl IntoIterator<Item = &'a PathBuf>) {
    for file in files {
        let _ = remove_any(file);
    }
}
