//! The rules that lie in one folder.

use super::repository::Places;
use super::settings::{Settings, User};
use super::source::{Otherwise, Source};
use crate::plain::Links;
use std::path::Path;
use std::sync::Arc;

const HONEIGNORE: &str = ".honeignore";
const GITIGNORE: &str = ".gitignore";

/// The ignore files of a folder, as they were at the last look.
#[derive(Debug)]
pub struct Folder {
    /// True if a folder above is the root of a repository.
    is_in_repository: bool,
    pub hone: Arc<Source>,
    pub git: Arc<Source>,
    pub repository: Option<Repository>,
}

/// A repository whose root the folder is.
#[derive(Debug)]
pub struct Repository {
    pub places: Places,
    pub settings: Settings,
    /// The rules of `info/exclude`.
    pub info: Arc<Source>,
    /// The rules of the file that `core.excludesFile` names.
    pub excludes: Option<Arc<Source>>,
}

impl Folder {
    pub fn is_repository(&self) -> bool {
        self.repository.as_ref().is_some_and(|repository| repository.places.is_sound)
    }

    /// Reads what has changed. Without a change it returns what is known.
    pub fn refresh(
        known: Option<&Arc<Folder>>,
        path: &Path,
        is_in_repository: bool,
        user: &User,
        note: &dyn Fn(),
    ) -> Arc<Folder> {
        let repository = Repository::refresh(
            known.and_then(|known| known.repository.as_ref()),
            path,
            user,
            note,
        );
        let is_within = |repository: &Option<Repository>| {
            is_in_repository || repository.as_ref().is_some_and(|found| found.places.is_sound)
        };
        // The user may keep a link to their own file in their folders. One in a repository is a
        // stranger's, and git does not follow it either.
        let links = if is_within(&repository) { Links::Refuse } else { Links::Follow };
        let known_sources = known.filter(|known| {
            (known.is_in_repository || known.is_repository()) == is_within(&repository)
        });
        let hone = Source::refresh(
            known_sources.map(|known| &known.hone),
            &path.join(HONEIGNORE),
            links,
            Otherwise::Everything,
            note,
        );
        let git = Source::refresh(
            known_sources.map(|known| &known.git),
            &path.join(GITIGNORE),
            links,
            Otherwise::NoRules,
            note,
        );
        let folder = Folder { is_in_repository, hone, git, repository };
        match known {
            Some(known) if folder.is_same(known) => known.clone(),
            _ => Arc::new(folder),
        }
    }

    fn is_same(&self, other: &Folder) -> bool {
        let is_same_repository = match (&self.repository, &other.repository) {
            (None, None) => true,
            (Some(one), Some(other)) => one.is_same(other),
            _ => false,
        };
        self.is_in_repository == other.is_in_repository
            && Arc::ptr_eq(&self.hone, &other.hone)
            && Arc::ptr_eq(&self.git, &other.git)
            && is_same_repository
    }
}

impl Repository {
    /// Returns the number of the folder in which its files begin, if it lies in the one with this
    /// number.
    pub fn begin(&self, number: usize) -> usize {
        number.saturating_sub(self.settings.folders_above)
    }

    fn refresh(
        known: Option<&Repository>,
        root: &Path,
        user: &User,
        note: &dyn Fn(),
    ) -> Option<Repository> {
        let places = Places::at(root)?;
        let known = known.filter(|known| known.places == places);
        let settings = known.map(|known| &known.settings).filter(|known| known.are_current());
        let settings = settings.cloned().unwrap_or_else(|| Settings::read(user, &places));
        let info = Source::refresh(
            known.map(|known| &known.info),
            &places.shared.join("info/exclude"),
            Links::Follow,
            Otherwise::NoRules,
            note,
        );
        let known_excludes = known.filter(|known| known.settings.excludes == settings.excludes);
        let excludes = settings.excludes.as_ref().map(|path| {
            let known = known_excludes.and_then(|known| known.excludes.as_ref());
            Source::refresh(known, path, Links::Follow, Otherwise::NoRules, note)
        });
        Some(Repository { places, settings, info, excludes })
    }

    fn is_same(&self, other: &Repository) -> bool {
        let is_same_file = match (&self.excludes, &other.excludes) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        self.places == other.places
            && self.settings == other.settings
            && Arc::ptr_eq(&self.info, &other.info)
            && is_same_file
    }
}
