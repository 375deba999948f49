//! One folder and its state, which its thread (`indexer.rs`) brings about.

use crate::privacy::forget_scope::Scope;
use crate::workspace::access::Access;
use crate::workspace::contents::{Contents, Snapshot};
use crate::workspace::inbox::Inbox;
use crate::workspace::limits::STALLED_AFTER;
use crate::workspace::status::{FolderState, FolderStatus};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub struct Folder {
    root: PathBuf,
    pub(super) inbox: Arc<Inbox>,
    pub(super) contents: Contents,
    pub(super) progress: Mutex<Progress>,
    /// Since when the thread waits for the disk.
    waits_since: Mutex<Option<Instant>>,
}

#[derive(Clone, Default)]
pub(super) struct Progress {
    pub(super) state: FolderState,
    pub(super) listed: usize,
    pub(super) left_out: usize,
    pub(super) build_ms: Option<u64>,
    pub(super) limit: Option<String>,
}

impl Folder {
    pub fn new(root: PathBuf, access: Arc<Access>) -> Folder {
        Folder {
            root,
            inbox: Arc::default(),
            contents: Contents::new(access),
            progress: Mutex::default(),
            waits_since: Mutex::new(None),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.contents.snapshot()
    }

    /// Whether the whole folder has been read once.
    pub fn is_read(&self) -> bool {
        self.progress.lock().build_ms.is_some()
    }

    /// Removes what is to be forgotten. After everything was forgotten, the index is made anew: it
    /// is a copy of the files, not of what was recorded.
    pub fn forget(&self, scope: &Scope) {
        self.contents.forget(scope);
        if *scope == Scope::All {
            self.inbox.list_again();
        }
    }

    pub fn status(&self) -> FolderStatus {
        let progress = self.progress.lock().clone();
        let snapshot = self.snapshot();
        let (code, lines) = (snapshot.retrieval.stats(), snapshot.memory.stats());
        let waits = *self.waits_since.lock();
        let is_stalled = waits.is_some_and(|since| since.elapsed() > STALLED_AFTER);
        FolderStatus {
            folder: self.root.clone(),
            state: if is_stalled { FolderState::Stalled } else { progress.state },
            files: code.files,
            listed: progress.listed,
            left_out: progress.left_out,
            chunks: code.chunks,
            text_bytes: code.text_bytes,
            index_bytes: code.index_bytes + lines.index_bytes,
            build_ms: progress.build_ms,
            limit: progress.limit,
        }
    }

    /// Asks the disk for something, which may never answer.
    pub(super) fn ask_disk<T>(&self, ask: impl FnOnce() -> T) -> T {
        *self.waits_since.lock() = Some(Instant::now());
        let answer = ask();
        *self.waits_since.lock() = None;
        answer
    }
}
