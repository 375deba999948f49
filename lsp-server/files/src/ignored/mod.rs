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
mod kept;
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

use crate::limits::{DEPTH_MAX, FOLDERS_MAX, FRESH};
use folder::Folder;
use kept::Kept;
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
    /// The number of paths that were matched against rules.
    matched: AtomicU64,
}

#[derive(Default)]
struct Known {
    /// The folders, and when their files were looked at.
    folders: HashMap<PathBuf, (Instant, Arc<Folder>)>,
    files_ignored: Kept,
    folders_ignored: Kept,
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
        IgnoreRules {
            user,
            known: Mutex::default(),
            compiled: AtomicU64::new(0),
            matched: AtomicU64::new(0),
        }
    }

    /// Returns true if a file is ignored. Its path is absolute and has no `..`. This reads the
    /// disk.
    pub fn is_ignored(&self, file: &Path) -> bool {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
        let generation = self.generation();
        let Some(above) = self.folders_above(folder) else { return true };
        let kept = self.kept(file, |known| &known.files_ignored);
        kept.unwrap_or_else(|| {
            let verdict = self.view_of(folder, above, generation).ignores(name, false);
            self.known.lock().files_ignored.insert(file, generation, verdict);
            verdict
        })
    }

    /// Returns the rules for what lies directly in a folder, whose path is absolute. This reads the
    /// disk.
    pub fn view(&self, folder: &Path) -> View {
        let generation = self.generation();
        let Some(above) = self.folders_above(folder) else { return View::of_everything() };
        self.view_of(folder, above, generation)
    }

    fn view_of(&self, folder: &Path, above: Vec<Arc<Folder>>, generation: u64) -> View {
        let is_ignored = self.is_folder_ignored(folder, &above, generation);
        self.matched.fetch_add(1, Ordering::Relaxed);
        View::new(folder, above, is_ignored)
    }

    /// Returns true if a folder is ignored, so that everything in it is. `above` are the folders
    /// down to this one.
    fn is_folder_ignored(&self, folder: &Path, above: &[Arc<Folder>], generation: u64) -> bool {
        if let Some(verdict) = self.kept(folder, |known| &known.folders_ignored) {
            return verdict;
        }
        let (own, outer) = above.split_last().expect("the folder itself is among them");
        // In a repository, no rules of git from around it count.
        let parent = folder.parent().filter(|_| !own.is_repository());
        let is_within =
            parent.is_some_and(|parent| self.is_folder_ignored(parent, outer, generation));
        let verdict = is_within || {
            self.matched.fetch_add(1, Ordering::Relaxed);
            view::is_ignored(folder, above, parent.is_some())
        };
        self.known.lock().folders_ignored.insert(folder, generation, verdict);
        verdict
    }

    /// Returns the generation of the rules. It is read before the rules are, so that no verdict by
    /// older ones is kept for it.
    fn generation(&self) -> u64 {
        self.known.lock().generation
    }

    /// Returns the verdict on a path that is kept, if no rule has changed since.
    fn kept(&self, path: &Path, among: impl Fn(&Known) -> &Kept) -> Option<bool> {
        let known = self.known.lock();
        among(&known).get(path, known.generation)
    }

    /// Returns the rules of all folders from the root of the file system to this one, or nothing
    /// if they cannot be known. This reads the disk.
    fn folders_above(&self, folder: &Path) -> Option<Vec<Arc<Folder>>> {
        let above: Vec<&Path> = folder.ancestors().collect();
        if above.len() > DEPTH_MAX || !has_plain_parts(folder) {
            return None;
        }
        let mut is_in_repository = false;
        let folders = above.into_iter().rev().map(|folder| {
            let read = self.folder(folder, is_in_repository);
            is_in_repository |= read.is_repository();
            read
        });
        Some(folders.collect())
    }

    /// Returns the number of files that were compiled so far.
    pub fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// Returns the number of paths that were matched against rules so far.
    pub fn matched(&self) -> u64 {
        self.matched.load(Ordering::Relaxed)
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
