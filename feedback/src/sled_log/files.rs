//! The files and folders beside the log.

use crate::limits::LOG_ROOM_BYTES_MIN;
use models::file::{beside, publish, sync_folder_of};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub fn rewrite_of(path: &Path) -> PathBuf {
    beside(path, ".rewrite")
}

pub fn forgotten_of(path: &Path) -> PathBuf {
    beside(path, ".forgotten")
}

pub fn mark_of(path: &Path) -> PathBuf {
    beside(path, ".mark")
}

pub fn probe_of(path: &Path) -> PathBuf {
    beside(path, ".room")
}

/// Writes a file beside the log and removes it, to see whether there is room.
pub fn check_room(path: &Path) -> io::Result<()> {
    let probe = probe_of(path);
    // Windows syncs only files that are open for writing.
    let written = File::create(&probe).and_then(|mut file| {
        file.write_all(&vec![0; LOG_ROOM_BYTES_MIN])?;
        file.sync_all()
    });
    let removed = std::fs::remove_file(&probe);
    written.and(removed)
}

/// Logs that could not be opened, oldest first.
pub fn set_aside_so_far(path: &Path) -> Vec<PathBuf> {
    let numbered = (1..).map(|number| beside(path, &format!(".damaged-{number}")));
    numbered.take_while(|aside| aside.exists()).collect()
}

/// Gives a log that cannot be opened another name, and returns that.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let number = set_aside_so_far(path).len() + 1;
    let aside = beside(path, &format!(".damaged-{number}"));
    publish(path, &aside)?;
    Ok(aside)
}

/// Renames the rewrite to the log, and removes the old log. If the second rename fails,
/// the old log gets its name back.
pub fn take_rewrite(path: &Path) -> io::Result<()> {
    let (rewrite, forgotten) = (rewrite_of(path), forgotten_of(path));
    publish(path, &forgotten)?;
    if let Err(error) = publish(&rewrite, path) {
        publish(&forgotten, path)?;
        return Err(error);
    }
    remove(&forgotten)
}

/// Removes a folder. It is no error if there is none.
pub fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| sync_folder_of(folder)),
    }
}
