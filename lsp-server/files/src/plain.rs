//! Reads plain files, whatever lies at a path: a pipe is not waited for, a device is not opened,
//! and no more is read than asked for, whatever the size says.

use crate::platform;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::SystemTime;

/// What is done with a path that is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Follow,
    Refuse,
}

/// How a file looks. A file that looks the same has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    changed: Option<SystemTime>,
    bytes: u64,
    identity: [i64; 4],
}

/// Why a file has no content.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    #[error("it is not there")]
    Missing,
    #[error("it is no plain file")]
    NoFile,
    #[error("it is longer than {0} bytes")]
    TooLong(u64),
    #[error("it holds bytes that are no text")]
    NoText,
    #[error("{0}")]
    Failed(std::io::Error),
}

/// Returns how the file at a path looks.
///
/// # Errors
/// There is none, or it is something else.
pub fn stamp(path: &Path, links: Links) -> Result<Stamp, Unread> {
    if platform::is_remote(path) {
        return Err(Unread::NoFile);
    }
    let found = match links {
        Links::Follow => path.metadata(),
        Links::Refuse => path.symlink_metadata(),
    };
    stamp_of(&found.map_err(|error| unread(error, path))?)
}

/// Reads a file of at most so many bytes.
///
/// # Errors
/// There is none, or it cannot or must not be read.
pub fn read(path: &Path, links: Links, bytes_max: u64) -> Result<(Vec<u8>, Stamp), Unread> {
    // A look at it first, because to open a device may already do something.
    stamp(path, links)?;
    let opened = platform::open(path, links == Links::Follow);
    read_opened(opened.map_err(|error| unread(error, path))?, bytes_max)
}

/// Reads what was opened without waiting, if it is a plain file.
pub(crate) fn read_opened(file: File, bytes_max: u64) -> Result<(Vec<u8>, Stamp), Unread> {
    let stamp = stamp_of(&file.metadata().map_err(Unread::Failed)?)?;
    let mut bytes = vec![];
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(Unread::Failed)?;
    if bytes.len() as u64 > bytes_max {
        return Err(Unread::TooLong(bytes_max));
    }
    Ok((bytes, stamp))
}

/// Returns bytes as a text.
///
/// # Errors
/// They are no UTF-8, or have zeros.
pub fn text(bytes: Vec<u8>) -> Result<String, Unread> {
    if bytes.contains(&0) {
        return Err(Unread::NoText);
    }
    String::from_utf8(bytes).map_err(|_| Unread::NoText)
}

fn stamp_of(found: &Metadata) -> Result<Stamp, Unread> {
    if !found.is_file() {
        return Err(Unread::NoFile);
    }
    let identity = platform::identity(found);
    Ok(Stamp { changed: found.modified().ok(), bytes: found.len(), identity })
}

fn unread(error: std::io::Error, path: &Path) -> Unread {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Unread::Missing,
        // The folder belongs to somebody else, so the user has no file in it.
        ErrorKind::PermissionDenied
            if path.parent().is_some_and(|folder| folder.read_dir().is_err()) =>
        {
            Unread::Missing
        }
        // A circle of links, or one that was refused.
        _ if path.symlink_metadata().is_ok_and(|found| found.is_symlink()) => Unread::NoFile,
        _ => Unread::Failed(error),
    }
}
