//! Which files and texts may be indexed: none that privacy keeps out, none that holds a secret, and
//! none that the user has forgotten.

use crate::config::patterns::Patterns;
use crate::privacy::Privacy;
use crate::privacy::names::real_name;
use crate::workspace::forgotten::Forgotten;
use arc_swap::ArcSwap;
use feedback::secrets;
use std::path::{Path, PathBuf};

pub struct Access {
    /// An instance of its own, so that the many folders of a workspace do not clear the cache of
    /// the sessions.
    privacy: Privacy,
    /// The setting `privacy.ignore`.
    ignored: ArcSwap<Patterns>,
    pub forgotten: Forgotten,
}

impl Access {
    pub fn new(forgotten: PathBuf, ignored: Patterns) -> Access {
        Access {
            privacy: Privacy::default(),
            ignored: ArcSwap::from_pointee(ignored),
            forgotten: Forgotten::open(forgotten),
        }
    }

    pub fn use_ignored(&self, ignored: Patterns) {
        self.ignored.store(ignored.into());
    }

    /// Whether a file may be read, by its name. This reads ignore files from the disk.
    pub fn may_read(&self, path: &str, language: &str) -> bool {
        let is_forgotten = |path: &Path| self.forgotten.holds(path);
        !self.privacy.ignores(path, language, &self.ignored.load())
            && !is_forgotten(Path::new(path))
            && !real_name(path).is_some_and(|real| is_forgotten(Path::new(&real)))
    }

    /// Whether a text may be indexed.
    pub fn may_index(&self, text: &str) -> bool {
        !secrets::holds_secret(text)
    }
}
