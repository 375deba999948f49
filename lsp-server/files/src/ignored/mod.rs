//! Which files git or a `.honeignore` ignores.
//!
//! Each source of rules only adds to what the others exclude. Within one source, `!` takes in again
//! what an earlier rule excluded, as gitignore(5) has it. The sources are:
//!
//! - git's rules for the repository that holds the file: `.gitignore` in its folders, its
//!   `info/exclude`, and the file that `core.excludesFile` names. Outside of a repository, the
//!   `.gitignore` of all folders above count together.
//! - the `.honeignore` files of that repository together, and those of each repository around it;
//! - each `.honeignore` in a folder outside of a repository, which is the user's own.

mod chain;
mod folder;
mod include;
mod interpolate;
mod patient;
mod repository;
mod rules;
mod settings;
mod source;
mod steps;
#[cfg(test)]
mod tests;
mod view;

pub use patient::{Verdict, Verdicts};
pub use repository::Places;
pub use settings::User;
pub use view::View;

use crate::limits::{DEPTH_MAX, FOLDERS_MAX, FRESH, VERDICTS_MAX};
use folder::Folder;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The rules of all folders that were asked about. Its lock is not held while the disk is read, so
/// nobody waits for one while a disk does not answer.
pub struct IgnoreRules {
    user: User,
    known: Mutex<Known>,
    /// The number of files that were compiled.
    compiled: AtomicU64,
}

#[derive(Default)]
struct Known {
    /// The folders, and when their files were looked at.
    folders: HashMap<PathBuf, (Instant, Arc<Folder>)>,
    /// What followed from the rules of one generation.
    verdicts: HashMap<PathBuf, (u64, bool)>,
    /// It grows with each change of a folder's rules.
    generation: u64,
}

impl Default for IgnoreRules {
    fn default() -> IgnoreRules {
        IgnoreRules::of(User::from_env())
    }
}

impl IgnoreRules {
    /// Returns rules with the settings of this user of git.
    pub fn of(user: User) -> IgnoreRules {
        IgnoreRules { user, known: Mutex::default(), compiled: AtomicU64::new(0) }
    }

    /// Returns true if a file is ignored. Its path is absolute and has no `..`. This reads the
    /// disk.
    pub fn is_ignored(&self, file: &Path) -> bool {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
        let view = self.view(folder);
        let mut known = self.known.lock();
        let generation = known.generation;
        if let Some((of, verdict)) = known.verdicts.get(file)
            && *of == generation
        {
            return *verdict;
        }
        drop(known);
        let verdict = view.ignores(name, false);
        known = self.known.lock();
        if known.verdicts.len() >= VERDICTS_MAX {
            known.verdicts.clear();
        }
        known.verdicts.insert(file.to_owned(), (generation, verdict));
        verdict
    }

    /// Returns the rules for what lies directly in a folder, whose path is absolute. This reads the
    /// disk.
    pub fn view(&self, folder: &Path) -> View {
        let above: Vec<&Path> = folder.ancestors().collect();
        if above.len() > DEPTH_MAX || !has_plain_parts(folder) {
            return View::of_everything();
        }
        let mut is_in_repository = false;
        let folders = above.into_iter().rev().map(|folder| {
            let read = self.folder(folder, is_in_repository);
            is_in_repository |= read.is_repository();
            read
        });
        View::new(folder, folders.collect())
    }

    /// Returns the number of files that were compiled so far.
    pub fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    fn folder(&self, path: &Path, is_in_repository: bool) -> Arc<Folder> {
        let known = self.known.lock().folders.get(path).cloned();
        let known = match known {
            Some((at, folder)) if at.elapsed() < FRESH => return folder,
            known => known.map(|(_, folder)| folder),
        };
        let note = || {
            self.compiled.fetch_add(1, Ordering::Relaxed);
        };
        let read = Folder::refresh(known.as_ref(), path, is_in_repository, &self.user, &note);
        let mut all = self.known.lock();
        if known.is_some_and(|known| !Arc::ptr_eq(&known, &read)) {
            all.generation += 1;
        }
        if all.folders.len() >= FOLDERS_MAX {
            all.folders.retain(|_, (at, _)| at.elapsed() < FRESH);
            if all.folders.len() >= FOLDERS_MAX {
                all.folders.clear();
            }
            // What was dropped may have changed when it is read again.
            all.generation += 1;
        }
        all.folders.insert(path.to_owned(), (Instant::now(), read.clone()));
        read
    }

    /// Looks at every file again when it is asked about next.
    #[cfg(test)]
    fn expire(&self) {
        let past = Instant::now() - FRESH;
        self.known.lock().folders.values_mut().for_each(|(at, _)| *at = past);
    }
}

fn has_plain_parts(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| part == Component::ParentDir)
}
