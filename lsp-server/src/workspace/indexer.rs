//! The thread of a folder: it lists, reads and follows the files, and puts them into the index.

use crate::addresses::name_of_file;
use crate::platform::files::WATCHES_TREES;
use crate::platform::process::lower_thread_priority;
use crate::workspace::access::Access;
use crate::workspace::contents::TypedPiece;
use crate::workspace::folder::{Folder, Progress};
use crate::workspace::limits::{
    BATCH_FILES, BATCH_REST, BUILD_TIME_MAX, CHECK_EVERY, LIST_AGAIN_AFTER, PUBLISH_EVERY,
    START_DELAY,
};
use crate::workspace::listing::{self, Listing};
use crate::workspace::reader::{self, Stamp, Unread};
use crate::workspace::status::FolderState;
use crate::workspace::typed::typed_piece;
use crate::workspace::watch::Watch;
use feedback::clock::Clock;
use ropey::Rope;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What became of a file.
#[derive(PartialEq, Eq)]
enum Indexed {
    Yes,
    /// It is left out, or not there.
    No,
    /// The indexes are full.
    NoRoom,
}

/// What the folder's thread knows.
pub struct Indexer {
    folder: Arc<Folder>,
    access: Arc<Access>,
    clock: Arc<dyn Clock>,
    /// How the indexed files looked.
    stamps: HashMap<PathBuf, Stamp>,
    /// The folders of the listed files.
    folders: HashSet<PathBuf>,
    watch: Option<Watch>,
    published: Instant,
}

impl Indexer {
    /// Begins to index a folder. `None` if the system gives no thread.
    pub fn start(root: PathBuf, access: Arc<Access>, clock: Arc<dyn Clock>) -> Option<Arc<Folder>> {
        let folder = Arc::new(Folder::new(root, access.clone()));
        let indexer = Indexer {
            folder: folder.clone(),
            access,
            clock,
            stamps: HashMap::new(),
            folders: HashSet::new(),
            watch: None,
            published: Instant::now(),
        };
        let thread = std::thread::Builder::new().name("hone-index".into());
        let started = thread.spawn(move || indexer.run());
        started.is_ok().then_some(folder)
    }

    /// Runs until the folder is closed.
    fn run(mut self) {
        lower_thread_priority();
        self.folder.inbox.rest(START_DELAY);
        if is_refused(self.folder.root()) {
            self.folder.progress.lock().state = FolderState::Refused;
            return;
        }
        self.watch = Watch::start(Arc::downgrade(&self.folder.inbox));
        self.build();
        let (mut listed, mut checked) = (Instant::now(), Instant::now());
        let mut lists_again = false;
        loop {
            let inbox = self.folder.inbox.clone();
            inbox.wait();
            if inbox.stops() {
                return;
            }
            lists_again |= inbox.takes_listing();
            if checked.elapsed() >= CHECK_EVERY {
                checked = Instant::now();
                lists_again |= self.has_come_or_gone();
            }
            if lists_again && listed.elapsed() >= LIST_AGAIN_AFTER {
                self.build();
                (listed, lists_again) = (Instant::now(), false);
            }
            if self.follow_changes() {
                self.publish();
            }
        }
    }

    fn publish(&mut self) {
        self.folder.contents.publish();
        self.published = Instant::now();
    }

    fn has_come_or_gone(&self) -> bool {
        let exists = self.folder.ask_disk(|| self.folder.root().is_dir());
        exists == (self.folder.progress.lock().state == FolderState::Gone)
    }

    /// Lists the folder, reads what has changed, and removes what is not there any more.
    fn build(&mut self) {
        let started = Instant::now();
        let folder = self.folder.clone();
        if !folder.ask_disk(|| folder.root().is_dir()) {
            folder.contents.clear();
            *folder.progress.lock() = Progress { state: FolderState::Gone, ..Progress::default() };
            return;
        }
        folder.progress.lock().state = FolderState::Building;
        let center = folder.inbox.center().unwrap_or_else(|| folder.root().to_owned());
        let Listing { files, mut limit } =
            folder.ask_disk(|| listing::list(folder.root(), &center));
        folder.progress.lock().listed = files.len();
        let files: Vec<PathBuf> = files.iter().map(|file| folder.root().join(file)).collect();
        self.folders =
            files.iter().flat_map(|file| file.ancestors().skip(1)).map(Path::to_owned).collect();
        // It begins before the files are read, so that no change is missed meanwhile.
        let is_watched = self.watch(&files);
        let (mut tried, mut indexed) = (0, 0);
        for batch in files.chunks(BATCH_FILES) {
            if folder.inbox.stops() {
                return;
            }
            let found = batch.iter().map(|file| self.index(file));
            let found: Vec<Indexed> = found.take_while(|found| *found != Indexed::NoRoom).collect();
            tried += found.len();
            indexed += found.iter().filter(|found| **found == Indexed::Yes).count();
            self.rest_between_batches();
            if found.len() < batch.len() {
                limit = Some(format!("the nearest {indexed} files fill the index"));
                break;
            }
            if started.elapsed() > BUILD_TIME_MAX {
                limit = Some(format!("read for {} s only", BUILD_TIME_MAX.as_secs()));
                break;
            }
        }
        self.remove_unlisted(&files);
        self.publish();
        if !is_watched && limit.is_none() {
            limit = Some("changes outside the editor are noticed late".into());
        }
        let mut progress = folder.progress.lock();
        progress.left_out = tried - indexed;
        progress.build_ms = Some(started.elapsed().as_millis() as u64);
        progress.limit = limit;
        progress.state = FolderState::Ready;
    }

    fn rest_between_batches(&mut self) {
        self.folder.inbox.rest(BATCH_REST);
        self.follow_changes();
        if self.published.elapsed() >= PUBLISH_EVERY {
            self.publish();
        }
    }

    /// Removes the files that the new listing has not. A document that is open and may still be
    /// indexed stays.
    fn remove_unlisted(&mut self, files: &[PathBuf]) {
        let listed: HashSet<&Path> = files.iter().map(PathBuf::as_path).collect();
        let contents = &self.folder.contents;
        for name in contents.names() {
            let is_open = || self.folder.inbox.is_open(&name) && self.access.may_read(&name, "");
            if !listed.contains(Path::new(&name)) && !is_open() {
                contents.remove(&name);
            }
        }
        self.stamps.retain(|path, _| listed.contains(path.as_path()));
    }

    fn watch(&mut self, files: &[PathBuf]) -> bool {
        let folder = self.folder.clone();
        let Some(watch) = &mut self.watch else { return false };
        folder.ask_disk(|| watch.follow(folder.root(), files.iter().map(PathBuf::as_path)))
    }

    /// Indexes the documents and files that have changed; answers whether there were any.
    fn follow_changes(&mut self) -> bool {
        let work = self.folder.inbox.take();
        let is_any = !work.documents.is_empty() || !work.changed.is_empty();
        for (path, language, text) in work.documents {
            self.index_document(&path, &language, &text);
        }
        for path in work.changed {
            if self.needs_listing(&path) {
                self.folder.inbox.list_again();
            } else if path.starts_with(self.folder.root()) {
                self.index(&path);
            }
        }
        is_any
    }

    /// Whether a folder has appeared, or one with indexed files has gone. One that is there and
    /// known may have been made again, and then has no watch of its own any more. Where whole trees
    /// are watched that does no harm, and folders may be reported whenever a file in them changes.
    fn needs_listing(&self, path: &Path) -> bool {
        let found = self.folder.ask_disk(|| path.symlink_metadata());
        let is_folder = found.is_ok_and(|found| found.is_dir());
        is_folder != self.folders.contains(path) || (is_folder && !WATCHES_TREES)
    }

    /// Indexes a file as it lies on the disk, unless it is open or has not changed.
    fn index(&mut self, path: &Path) -> Indexed {
        // A name that is no UTF-8 has no URI that an editor could open it by.
        if path.to_str().is_none() {
            return Indexed::No;
        }
        let name = &*name_of_file(path);
        let folder = self.folder.clone();
        let may_read =
            !reader::is_generated(path) && folder.ask_disk(|| self.access.may_read(name, ""));
        if !may_read {
            self.leave_out(path, name);
            return Indexed::No;
        }
        let is_known = folder.contents.contains(name);
        if is_known && folder.inbox.is_open(name) {
            return Indexed::Yes;
        }
        let stamp = folder.ask_disk(|| reader::stamp(path));
        if is_known && stamp.is_ok_and(|now| self.stamps.get(path) == Some(&now)) {
            return Indexed::Yes;
        }
        match folder.ask_disk(|| reader::read(path)) {
            Ok((text, stamp)) if self.access.may_index(&text) => {
                let real = folder.ask_disk(|| path.canonicalize()).ok();
                if !folder.contents.put(name, real.as_deref(), text.into(), None) {
                    return Indexed::NoRoom;
                }
                self.stamps.insert(path.to_owned(), stamp);
                Indexed::Yes
            }
            Err(Unread::Changing) if is_known => Indexed::Yes,
            _ => {
                self.leave_out(path, name);
                Indexed::No
            }
        }
    }

    fn leave_out(&mut self, path: &Path, name: &str) {
        self.stamps.remove(path);
        self.folder.contents.remove(name);
    }

    /// Indexes a document as it stands in the editor.
    fn index_document(&mut self, name: &str, language: &str, text: &Rope) {
        let folder = self.folder.clone();
        let path = Path::new(name);
        let may_read =
            !reader::is_generated(path) && folder.ask_disk(|| self.access.may_read(name, language));
        let text = text.to_string();
        if !may_read || !self.access.may_index(&text) {
            self.leave_out(path, name);
            return;
        }
        let typed = folder.contents.text(name).and_then(|before| typed_piece(&before, &text));
        let typed = typed.map(|text| TypedPiece { text, at_ms: self.clock.unix_ms() });
        let real = folder.ask_disk(|| path.canonicalize()).ok();
        folder.contents.put(name, real.as_deref(), text.into(), typed);
        // The file on the disk is another one.
        self.stamps.remove(path);
    }
}

/// Whether a folder is no workspace: the whole file system, or the user's home.
fn is_refused(root: &Path) -> bool {
    root.parent().is_none() || std::env::home_dir().is_some_and(|home| home == root)
}
