//! The rules that speak about what lies in one folder.

use super::chain::{Layer, Parts, excludes};
use super::folder::Folder;
use super::rules::Rules;
use super::source::{Content, Source};
use crate::limits::{MATCH_STEPS_MAX, PATTERNS_MAX};
use crate::platform;
use gix_glob::pattern::Case;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

/// What lies directly in a folder is held against it.
pub struct View {
    folder: Parts,
    above: Vec<Arc<Folder>>,
    /// True if the folder itself is ignored, so that everything in it is.
    is_ignored: bool,
}

/// Rules that are read together: among them, and only there, `!` takes in again.
struct Together<'a> {
    layers: Vec<Layer<'a>>,
    case: Case,
}

impl View {
    /// `above` are the folders from the root of the file system to the folder itself.
    pub(super) fn new(folder: &Path, above: Vec<Arc<Folder>>, is_ignored: bool) -> View {
        View { folder: Parts::of(folder), above, is_ignored }
    }

    /// Returns the view of a folder whose rules cannot be known.
    pub(super) fn of_everything() -> View {
        View { folder: Parts::of(Path::new("")), above: vec![], is_ignored: true }
    }

    /// Returns true if something that lies in the folder is ignored.
    pub fn ignores(&self, name: &OsStr, is_folder: bool) -> bool {
        self.is_ignored
            || Above(&self.above).excludes(&self.folder.with(name), is_folder, self.folder.count())
    }
}

/// Returns true if a folder is ignored. `above` are the folders down to this one. If it is known
/// that its parent is not ignored, only the folder's own name is matched.
pub(super) fn is_ignored(folder: &Path, above: &[Arc<Folder>], is_parent_known: bool) -> bool {
    let (above, folder) = (Above(above), Parts::of(folder));
    let known = if is_parent_known { folder.count() - 1 } else { 0 };
    above.must_ignore() || above.excludes(&folder, true, known)
}

/// The folders from the root of the file system to one whose rules are asked for.
struct Above<'a>(&'a [Arc<Folder>]);

impl<'a> Above<'a> {
    /// Returns true if some rules cannot be read, or it takes too long to match all of them.
    fn must_ignore(&self) -> bool {
        let is_unreadable = |source: &Source| matches!(source.rules, Content::Everything);
        let groups = self.groups();
        let layers = groups.iter().flat_map(|group| &group.layers);
        let patterns: usize = layers.clone().map(|layer| layer.rules.len()).sum();
        let depth = self.0.len() - 1;
        let steps = layers.map(|layer| layer.rules.steps(depth - layer.folder));
        let in_reach = self.0.iter().skip(self.begin());
        patterns > PATTERNS_MAX
            || steps.fold(0, u64::saturating_add) > MATCH_STEPS_MAX
            || self.0.iter().any(|folder| is_unreadable(&folder.hone))
            || in_reach.clone().any(|folder| is_unreadable(&folder.git))
            || in_reach.filter_map(|folder| folder.repository.as_ref()).any(|repository| {
                repository.settings.is_unreadable
                    || is_unreadable(&repository.info)
                    || repository.excludes.as_deref().is_some_and(is_unreadable)
            })
    }

    fn excludes(&self, path: &Parts, is_folder: bool, known: usize) -> bool {
        self.groups()
            .iter()
            .any(|group| excludes(path, is_folder, &group.layers, known, group.case))
    }

    /// Returns the number of the innermost folder that is the root of a repository.
    fn innermost(&self) -> Option<usize> {
        self.0.iter().rposition(|folder| folder.is_repository())
    }

    /// Returns the number of the first folder whose rules of git count for the innermost one.
    fn begin(&self) -> usize {
        let Some(number) = self.innermost() else { return 0 };
        self.0[number].repository.as_ref().map_or(number, |repository| repository.begin(number))
    }

    fn groups(&self) -> Vec<Together<'a>> {
        let mut groups = self.groups_of_git();
        let (mut is_in_repository, mut is_continued) = (false, false);
        for (number, folder) in self.0.iter().enumerate() {
            if folder.is_repository() {
                (is_in_repository, is_continued) = (true, false);
            }
            let Some(layer) = layer(number, &folder.hone) else { continue };
            match groups.last_mut().filter(|_| is_continued) {
                Some(group) => group.layers.push(layer),
                None => groups.push(Together { layers: vec![layer], case: usual_case() }),
            }
            is_continued = is_in_repository;
        }
        groups
    }

    fn groups_of_git(&self) -> Vec<Together<'a>> {
        let begin = self.innermost().unwrap_or(0);
        let mut groups = vec![];
        let within = self.0.iter().enumerate().skip(begin);
        // A folder `.git` that is no repository to git may still have rules, and its root may lie
        // below the one of the repository.
        let roots = within.clone().filter_map(|(number, folder)| {
            folder.repository.as_ref().map(|repository| (number, repository))
        });
        let starts: Vec<_> = roots.collect();
        let files = |from: usize| {
            self.0
                .iter()
                .enumerate()
                .skip(from)
                .filter_map(|(number, folder)| layer(number, &folder.git))
        };
        for (number, repository) in &starts {
            let root = repository.begin(*number);
            let excludes = repository.excludes.as_ref().and_then(|file| layer(root, file));
            let info = layer(root, &repository.info);
            let layers = excludes.into_iter().chain(info).chain(files(root)).collect();
            let folds = repository.settings.ignores_case;
            groups
                .push(Together { layers, case: if folds { Case::Fold } else { Case::Sensitive } });
        }
        if !starts.iter().any(|(number, _)| *number == begin) {
            groups.push(Together { layers: files(begin).collect(), case: usual_case() });
        }
        groups
    }
}

fn layer(folder: usize, source: &Source) -> Option<Layer<'_>> {
    match &source.rules {
        Content::Rules(rules) if !Rules::is_empty(rules) => Some(Layer { folder, rules }),
        _ => None,
    }
}

fn usual_case() -> Case {
    if platform::IGNORES_CASE { Case::Fold } else { Case::Sensitive }
}
