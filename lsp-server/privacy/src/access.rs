//! The files that may be read although nobody opened them: none that privacy keeps out, and none
//! that the user has removed with `hone forget`.

use super::Privacy;
use super::forgotten::ForgottenFiles;
use super::names::real_name;
use arc_swap::ArcSwap;
use files::ignored::IgnoreRules;
use settings::patterns::Patterns;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Access {
    privacy: Arc<Privacy>,
    /// The setting `privacy.ignore`.
    ignored: ArcSwap<Patterns>,
    pub forgotten: ForgottenFiles,
}

impl Access {
    /// `forgotten` is the file with the list of what `hone forget` has removed, and `ignored` the
    /// setting `privacy.ignore`.
    pub fn new(privacy: Arc<Privacy>, forgotten: PathBuf, ignored: Patterns) -> Access {
        Access {
            privacy,
            ignored: ArcSwap::from_pointee(ignored),
            forgotten: ForgottenFiles::open(forgotten),
        }
    }

    /// Follows a change of the setting `privacy.ignore`.
    pub fn use_ignored(&self, ignored: Patterns) {
        self.ignored.store(ignored.into());
    }

    /// Returns the rules of ignore files alone, for walks through folders.
    pub fn ignore_rules(&self) -> Arc<IgnoreRules> {
        self.privacy.ignore_rules()
    }

    /// Returns true if a file may be read, by its name. This reads ignore files from the disk, and
    /// waits for it as long as it takes.
    pub fn may_read(&self, path: &str, language: &str) -> bool {
        let is_forgotten = |path: &Path| self.forgotten.holds(path);
        !self.privacy.ignores_on_disk(path, language, &self.ignored.load())
            && !is_forgotten(Path::new(path))
            && !real_name(path).is_some_and(|real| is_forgotten(Path::new(&real)))
    }
}
