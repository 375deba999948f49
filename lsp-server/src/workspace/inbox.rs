//! What a folder's thread has to do. Sessions and the system put it here, and wait for nothing.

use crate::addresses::name_of_file;
use crate::workspace::limits::{
    CHANGED_MAX, CHECK_EVERY, DOCUMENT_BYTES_MAX, DOCUMENTS_MAX, QUIET,
};
use parking_lot::{Condvar, Mutex};
use ropey::Rope;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Inbox {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    documents: HashMap<String, OpenDocument>,
    /// The folder of the document that was edited last.
    center: Option<PathBuf>,
    changed: HashSet<PathBuf>,
    lists_again: bool,
    stops: bool,
}

struct OpenDocument {
    language: String,
    /// A text that is not indexed yet.
    text: Option<Rope>,
    edited: Instant,
}

/// What there is to do.
#[derive(Default)]
pub struct Work {
    /// Documents that have a new text: path, language, text.
    pub documents: Vec<(String, String, Rope)>,
    pub changed: Vec<PathBuf>,
}

impl Inbox {
    pub fn edited(&self, path: &str, language: &str, text: &Rope) {
        let mut state = self.state.lock();
        if text.len_bytes() > DOCUMENT_BYTES_MAX {
            // It counts as it lies on the disk.
            state.documents.remove(path);
            return;
        }
        if state.documents.len() >= DOCUMENTS_MAX && !state.documents.contains_key(path) {
            return;
        }
        state.center = Path::new(path).parent().map(Path::to_owned);
        let open = OpenDocument {
            language: language.to_owned(),
            text: Some(text.clone()),
            edited: Instant::now(),
        };
        state.documents.insert(path.to_owned(), open);
        self.news.notify_all();
    }

    pub fn closed(&self, path: &str) {
        let mut state = self.state.lock();
        if state.documents.remove(path).is_some() {
            state.changed.insert(PathBuf::from(path));
            self.news.notify_all();
        }
    }

    /// A file may have changed on the disk.
    pub fn touched(&self, path: PathBuf) {
        let mut state = self.state.lock();
        if state.changed.len() >= CHANGED_MAX {
            state.lists_again = true;
        } else {
            state.changed.insert(path);
        }
        self.news.notify_all();
    }

    pub fn list_again(&self) {
        self.state.lock().lists_again = true;
        self.news.notify_all();
    }

    /// Whether the folder is to be listed again. It is told once.
    pub fn takes_listing(&self) -> bool {
        std::mem::take(&mut self.state.lock().lists_again)
    }

    pub fn stop(&self) {
        self.state.lock().stops = true;
        self.news.notify_all();
    }

    pub fn stops(&self) -> bool {
        self.state.lock().stops
    }

    /// Waits for some time, or until the folder is closed.
    pub fn rest(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state.lock();
        while !state.stops && !self.news.wait_until(&mut state, until).timed_out() {}
    }

    pub fn center(&self) -> Option<PathBuf> {
        self.state.lock().center.clone()
    }

    pub fn is_open(&self, path: &str) -> bool {
        self.state.lock().documents.contains_key(path)
    }

    /// Waits until there is something to do, but no longer than [`CHECK_EVERY`]. What comes within
    /// a moment is then done together.
    pub fn wait(&self) {
        let mut state = self.state.lock();
        let is_idle = !state.stops
            && !state.lists_again
            && state.changed.is_empty()
            && state.documents.values().all(|open| open.text.is_none());
        if is_idle {
            self.news.wait_for(&mut state, CHECK_EVERY);
        }
        drop(state);
        self.rest(QUIET / 2);
    }

    /// Takes what is to be done now: documents in which nobody types at the moment, and changed
    /// files that are not open.
    pub fn take(&self) -> Work {
        let mut state = self.state.lock();
        let changed = std::mem::take(&mut state.changed);
        let documents = &mut state.documents;
        let mut work = Work::default();
        for (path, open) in documents.iter_mut() {
            if open.edited.elapsed() >= QUIET
                && let Some(text) = open.text.take()
            {
                work.documents.push((path.clone(), open.language.clone(), text));
            }
        }
        let is_on_disk = |path: &PathBuf| !documents.contains_key(&*name_of_file(path));
        work.changed = changed.into_iter().filter(is_on_disk).collect();
        work
    }
}
