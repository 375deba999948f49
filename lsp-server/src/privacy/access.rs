//! The files that may be read although nobody opened them: none that privacy keeps out, and none that
//! the user has removed with `hone forget`.

use super::Privacy;
use super::forgotten::ForgottenFiles;
use super::names::real_name;
use crate::config::patterns::Patterns;
use arc_swap::ArcSwap;
use std::path::{Path, PathBuf};

pub struct Access {
    /// An instance of its own, so that the many files of a folder do not clear the cache of the
    /// sessions.
    privacy: Privacy,
    /// The setting `privacy.ignore`.
    ignored: ArcSwap<Patterns>,
    pub forgotten: ForgottenFiles,
}

impl Access {
    /// `forgotten` is the file with the list of what `hone forget` has removed, and `ignored` the
    /// setting `privacy.ignore`.
    pub fn new(forgotten: PathBuf, ignored: Patterns) -> Access {
        Access {
            privacy: Privacy::default(),
            ignored: ArcSwap::from_pointee(ignored),
            forgotten: ForgottenFiles::open(forgotten),
        }
    }

    /// Follows a change of the setting `privacy.ignore`.
    pub fn use_ignored(&self, ignored: Patterns) {
        self.ignored.store(ignored.into());
    }

    /// Returns true if a file may be read, by its name. This reads ignore files from the disk.
    pub fn may_read(&self, path: &str, language: &str) -> bool {
        let is_forgotten = |path: &Path| self.forgotten.holds(path);
        !self.privacy.ignores(path, language, &self.ignored.load())
            && !is_forgotten(Path::new(path))
            && !real_name(path).is_some_and(|real| is_forgotten(Path::new(&real)))
    }
}
