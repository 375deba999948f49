//! The files and folders next to the log.

use crate::limits::LOG_ROOM_BYTES_MIN;
use models::file::{publish, remove_folder, sync_folder_of, with_suffix};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub fn rewrite_of(path: &Path) -> PathBuf {
    with_suffix(path, ".rewrite")
}

pub fn forgotten_of(path: &Path) -> PathBuf {
    with_suffix(path, ".forgotten")
}

pub fn mark_of(path: &Path) -> PathBuf {
    with_suffix(path, ".mark")
}

pub fn probe_of(path: &Path) -> PathBuf {
    with_suffix(path, ".room")
}

/// Writes a file next to the log and removes it, to see whether there is room.
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

/// The text between the name of a log and the number of one that was set aside.
const ASIDE: &str = ".damaged-";

/// Finds the logs that could not be opened, with their numbers. The folder is read, because a
/// number may be missing between two others, after the user moved that log away.
pub fn set_aside_so_far(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(OsStr::to_str))
    else {
        return Ok(vec![]);
    };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        entries => entries?,
    };
    let mut found = vec![];
    for entry in entries {
        let aside = entry?.path();
        let rest = aside.file_name().and_then(OsStr::to_str);
        let number = rest.and_then(|rest| rest.strip_prefix(name)?.strip_prefix(ASIDE));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            found.push((number, aside));
        }
    }
    found.sort();
    Ok(found)
}

/// Gives a log that cannot be opened another name, and returns that.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let newest = set_aside_so_far(path)?.last().map_or(0, |(number, _)| *number);
    let aside = with_suffix(path, &format!("{ASIDE}{}", newest + 1));
    publish(path, &aside)?;
    Ok(aside)
}

/// Does the second rename of a rewrite if only the first one was done.
pub fn finish_rewrite(path: &Path) -> io::Result<()> {
    let (rewrite, forgotten) = (rewrite_of(path), forgotten_of(path));
    if !path.exists() && forgotten.exists() && rewrite.exists() {
        publish(&rewrite, path)?;
    }
    Ok(())
}

/// Removes the logs next to this one: an unfinished rewrite, the one that a rewrite replaced, and
/// those that could not be opened. The log must be there, because a finished rewrite may be all
/// that is left of it.
pub fn remove_others(path: &Path) -> io::Result<()> {
    let asides = set_aside_so_far(path)?.into_iter().map(|(_, aside)| aside);
    for other in [rewrite_of(path), forgotten_of(path)].into_iter().chain(asides) {
        remove(&other)?;
    }
    Ok(())
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

/// Removes a folder for good. It is no error if there is none.
pub fn remove(folder: &Path) -> io::Result<()> {
    if folder.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    remove_folder(folder)?;
    sync_folder_of(folder)
}
