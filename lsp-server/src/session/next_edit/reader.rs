//! Reads one file of a folder, whatever lies there.

use crate::platform::files;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::SystemTime;

/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Names of files that a package manager writes. They are text, and nobody writes such code.
const LOCK_FILES: &[&str] = &[
    "Cargo.lock",
    "Gemfile.lock",
    "composer.lock",
    "flake.lock",
    "go.sum",
    "package-lock.json",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "yarn.lock",
];

/// Endings of files that a tool writes.
const GENERATED_ENDINGS: &[&str] = &[".map", ".min.css", ".min.js", ".svg"];

/// How a file looked when it was read. A file that looks the same has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    changed: Option<SystemTime>,
    bytes: u64,
}

impl Stamp {
    fn of(file: &Metadata) -> Stamp {
        Stamp { changed: file.modified().ok(), bytes: file.len() }
    }
}

/// Why a file has no text to look through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    Gone,
    /// A link, a folder, a pipe or a device.
    NoFile,
    TooLong,
    /// It has bytes that are no UTF-8, or zeros.
    NoText,
    /// Somebody writes it at the moment.
    Changing,
    /// The disk or the system refuses.
    Failed,
}

/// How a file looks now.
fn stamp(path: &Path) -> Result<Stamp, Unread> {
    let found = path.symlink_metadata().map_err(unread)?;
    if !found.is_file() {
        return Err(Unread::NoFile);
    }
    if found.len() > FILE_BYTES_MAX as u64 {
        return Err(Unread::TooLong);
    }
    Ok(Stamp::of(&found))
}

/// Returns the text of a file.
pub fn read(path: &Path) -> Result<String, Unread> {
    let before = stamp(path)?;
    // A link or a pipe may have taken the file's place meanwhile. It must not be followed or waited
    // for.
    let mut file = files::open_without_waiting(path).map_err(unread)?;
    let opened = file.metadata().map_err(unread)?;
    if !opened.is_file() {
        return Err(Unread::NoFile);
    }
    let text = text_of(&mut file)?;
    let after = Stamp::of(&file.metadata().map_err(unread)?);
    if before != after || after.bytes != text.len() as u64 {
        return Err(Unread::Changing);
    }
    Ok(text)
}

fn text_of(file: &mut File) -> Result<String, Unread> {
    let mut bytes = vec![];
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(Unread::TooLong);
    }
    if bytes.contains(&0) {
        return Err(Unread::NoText);
    }
    String::from_utf8(bytes).map_err(|_| Unread::NoText)
}

fn unread(error: std::io::Error) -> Unread {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Unread::Gone,
        _ => Unread::Failed,
    }
}

/// Whether a tool wrote the file, by its name.
pub fn is_generated(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    LOCK_FILES.contains(&name) || GENERATED_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_with_text_of_some_length_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("text"), "fn a() {}\n").unwrap();
        std::fs::write(at("latin"), b"caf\xe9").unwrap();
        std::fs::write(at("zeros"), "a\0b").unwrap();
        // It takes no room on the disk.
        File::create(at("huge")).unwrap().set_len(2 << 30).unwrap();
        std::os::unix::fs::symlink(at("text"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status();
        assert_eq!(read(&at("text")).unwrap(), "fn a() {}\n");
        for (name, reason) in [
            ("latin", Unread::NoText),
            ("zeros", Unread::NoText),
            ("huge", Unread::TooLong),
            ("link", Unread::NoFile),
            ("loop", Unread::NoFile),
            ("missing", Unread::Gone),
            ("text/below", Unread::Gone),
        ] {
            assert_eq!(read(&at(name)).unwrap_err(), reason, "{name}");
        }
        if made.is_ok_and(|made| made.success()) {
            assert_eq!(read(&at("pipe")).unwrap_err(), Unread::NoFile, "nobody writes into it");
        }
    }
}
