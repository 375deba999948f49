//! The code of the folders that are open in editors: indexed in the background, and searched by
//! sessions without a lock.
//!
//! Each folder has a thread of its own ([`indexer`]), so that a disk that does not answer stops
//! nothing else. The thread lists the folder's files ([`listing`]), reads them ([`reader`]) unless
//! [`access`] forbids it, and keeps a `retrieval::Index` and a `memory::Memory` of them
//! ([`contents`]). It then follows what changes: in the editor's documents, and on the disk.

mod access;
mod contents;
mod folder;
pub mod forgotten;
mod inbox;
mod indexer;
pub mod limits;
mod listing;
mod reader;
mod scan;
pub mod status;
#[cfg(test)]
mod tests;
mod typed;
mod watch;

use crate::config::patterns::Patterns;
use crate::privacy::forget_scope::Scope;
pub use access::Access;
pub use contents::Snapshot;
use feedback::clock::Clock;
use folder::Folder;
use indexer::Indexer;
use limits::FOLDERS_MAX;
use parking_lot::Mutex;
use ropey::Rope;
pub use scan::Scan;
use status::FolderStatus;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// The open folders of all editors.
pub struct Workspaces {
    access: Arc<Access>,
    clock: Arc<dyn Clock>,
    folders: Mutex<Vec<Weak<OpenFolder>>>,
}

/// A folder that an editor has open. It is indexed as long as this lives.
pub struct OpenFolder(Arc<Folder>);

impl OpenFolder {
    pub fn root(&self) -> &Path {
        self.0.root()
    }

    /// Whether the whole folder has been read once.
    pub fn is_read(&self) -> bool {
        self.0.is_read()
    }

    /// What is indexed. It does not change, so it can be searched for as long as one likes. This
    /// waits for nothing.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.snapshot()
    }
}

impl Drop for OpenFolder {
    fn drop(&mut self) {
        self.0.inbox().stop();
    }
}

impl Workspaces {
    /// `forgotten` is the file that keeps what the user has forgotten, and `ignored` the setting
    /// `privacy.ignore`.
    pub fn new(forgotten: PathBuf, ignored: Patterns, clock: Arc<dyn Clock>) -> Workspaces {
        Workspaces {
            clock,
            access: Arc::new(Access::new(forgotten, ignored)),
            folders: Mutex::new(vec![]),
        }
    }

    /// Opens a folder, and begins to index it. `None` if it is no folder's absolute path, or if
    /// [`FOLDERS_MAX`] are open.
    pub fn open(&self, root: &Path) -> Option<Arc<OpenFolder>> {
        let mut folders = self.folders.lock();
        folders.retain(|folder| folder.strong_count() > 0);
        let known = folders.iter().filter_map(Weak::upgrade).find(|open| open.0.root() == root);
        if known.is_some() {
            return known;
        }
        if !root.is_absolute() || folders.len() >= FOLDERS_MAX {
            return None;
        }
        let folder = Indexer::start(root.to_owned(), self.access.clone(), self.clock.clone())?;
        let open = Arc::new(OpenFolder(folder));
        folders.push(Arc::downgrade(&open));
        Some(open)
    }

    fn all(&self) -> Vec<Arc<OpenFolder>> {
        self.folders.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// The folder that a file lies in. Of several, it is the innermost.
    pub fn holding(&self, path: &str) -> Option<Arc<OpenFolder>> {
        let path = Path::new(path);
        let holding = self.all().into_iter().filter(|open| path.starts_with(open.0.root()));
        holding.max_by_key(|open| open.0.root().components().count())
    }

    /// A document is open and has this text. The text on the disk does not count any more.
    pub fn edited(&self, path: &str, language: &str, text: &Rope) {
        if let Some(open) = self.holding(path) {
            open.0.inbox().edited(path, language, text);
        }
    }

    /// A document is not open any more. The text on the disk counts again.
    pub fn closed(&self, path: &str) {
        if let Some(open) = self.holding(path) {
            open.0.inbox().closed(path);
        }
    }

    /// A file has changed on the disk.
    pub fn touched(&self, path: &str) {
        if let Some(open) = self.holding(path) {
            open.0.inbox().touched(PathBuf::from(path));
        }
    }

    /// Follows a change of the setting `privacy.ignore`.
    pub fn use_ignored(&self, ignored: Patterns) {
        self.access.use_ignored(ignored);
        self.all().iter().for_each(|open| open.0.inbox().list_again());
    }

    /// Removes what the user wants to be forgotten. When this returns, no snapshot has it.
    ///
    /// # Errors
    /// It is removed, but the list of what is forgotten cannot be written.
    pub fn forget(&self, scope: &Scope) -> anyhow::Result<()> {
        let remembered = self.access.forgotten.add(scope);
        self.all().iter().for_each(|open| open.0.forget(scope));
        remembered
    }

    pub fn status(&self) -> Vec<FolderStatus> {
        self.all().iter().map(|open| open.0.status()).collect()
    }
}
