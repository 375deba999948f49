//! Follows what changes on the disk, as the system reports it.
//!
//! Only folders that hold indexed files are watched, each by itself. So a folder of a hundred
//! thousand build products costs nothing. On macOS and Windows the system reports whole
//! trees at no more cost.

use crate::platform::files::WATCHES_TREES;
use crate::workspace::inbox::Inbox;
use crate::workspace::limits::WATCHED_MAX;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Weak;

/// Files that decide which others are ignored.
const IGNORE_FILES: &[&str] = &[".gitignore", ".honeignore"];

pub struct Watch {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
}

impl Watch {
    /// `None` if the system cannot watch. Then saved documents are all that is noticed.
    pub fn start(inbox: Weak<Inbox>) -> Option<Watch> {
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let Some(inbox) = inbox.upgrade() else { return };
            match event {
                Ok(event) if event.need_rescan() => inbox.list_again(),
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
                Ok(event) => event.paths.into_iter().for_each(|path| note(&inbox, path)),
                Err(_) => inbox.list_again(),
            }
        });
        Some(Watch { watcher: watcher.ok()?, watched: BTreeSet::new() })
    }

    /// Watches the folders of these files from now on, and no other ones; answers whether all of
    /// them are watched.
    pub fn follow<'a>(&mut self, root: &Path, files: impl Iterator<Item = &'a Path>) -> bool {
        let mut wanted = BTreeSet::from([root.to_owned()]);
        if !WATCHES_TREES {
            for file in files {
                let above = file.ancestors().skip(1).take_while(|folder| *folder != root);
                for folder in above.filter(|folder| folder.starts_with(root)) {
                    if wanted.len() >= WATCHED_MAX || !wanted.insert(folder.to_owned()) {
                        break;
                    }
                }
            }
        }
        for folder in self.watched.difference(&wanted) {
            // It may not exist any more.
            let _ = self.watcher.unwatch(folder);
        }
        let mode =
            if WATCHES_TREES { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        // A folder that was removed and made again has lost its watch, and is known all the same.
        // Single folders are therefore all watched again, which changes nothing for the others.
        let needs_watch = |folder: &&PathBuf| !WATCHES_TREES || !self.watched.contains(*folder);
        let mut is_whole = wanted.len() < WATCHED_MAX;
        for folder in wanted.iter().filter(needs_watch) {
            is_whole &= self.watcher.watch(folder, mode).is_ok();
        }
        self.watched = wanted;
        is_whole
    }
}

fn note(inbox: &Inbox, path: PathBuf) {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if path.components().any(|part| part.as_os_str() == ".git") {
        return;
    }
    if IGNORE_FILES.contains(&name) {
        inbox.list_again();
    } else {
        inbox.touched(path);
    }
}
