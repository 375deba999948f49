use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf, Prefix};

/// True if the file system of most machines ignores the case of names.
pub const IGNORES_CASE: bool = true;

/// Opens a link itself instead of what it leads to (`FILE_FLAG_OPEN_REPARSE_POINT`).
const OPEN_LINK: u32 = 0x0020_0000;

/// The attribute of links, junctions and mounts (`FILE_ATTRIBUTE_REPARSE_POINT`).
const LINK: u32 = 0x0400;

/// Names that stand for a device in every folder, whatever ending they have.
const DEVICES: &[&str] = &["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"];

/// Opens a file for reading. A path of another machine is refused.
pub fn open(path: &Path, follow: bool) -> io::Result<File> {
    if is_remote(path) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = if follow { 0 } else { OPEN_LINK };
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Opens a plain file below a folder for reading. No part of its name is a link.
pub fn open_below(root: &Path, name: &Path) -> io::Result<File> {
    let mut path = root.to_owned();
    for part in name.components() {
        let Component::Normal(part) = part else { return Err(io::ErrorKind::InvalidInput.into()) };
        path.push(part);
        if path.symlink_metadata()?.file_attributes() & LINK != 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
    }
    OpenOptions::new().read(true).custom_flags(OPEN_LINK).open(path)
}

/// Numbers that change with the file that lies at a path and with what is in it.
pub fn identity(file: &Metadata) -> [i64; 4] {
    [file.creation_time() as i64, file.last_write_time() as i64, file.file_attributes().into(), 0]
}

/// Returns true if a path lies on another machine by its form.
pub fn is_remote(path: &Path) -> bool {
    let Some(Component::Prefix(prefix)) = path.components().next() else { return false };
    matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..) | Prefix::DeviceNS(_))
}

/// Returns true if a name that is written in a file can be one of a file below a folder. It names
/// no device, no stream of another file, and nothing that Windows reads as another name.
pub fn is_plain_name(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_uppercase();
    let is_port = stem.len() == 4
        && (stem.starts_with("COM") || stem.starts_with("LPT"))
        && stem.ends_with(|last: char| last.is_ascii_digit());
    !name.contains([':', '<', '>', '"', '|', '?', '*'])
        && !name.ends_with(['.', ' '])
        && !DEVICES.contains(&&*stem)
        && !is_port
}

/// Returns the path that git writes as these bytes: UTF-8, with slashes.
pub fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}

/// Returns the bytes by which git knows a part of a path.
pub fn bytes_of(part: &OsStr) -> Cow<'_, [u8]> {
    match part.to_string_lossy() {
        Cow::Borrowed(name) => name.as_bytes().into(),
        Cow::Owned(name) => name.into_bytes().into(),
    }
}

/// Returns the files of git's settings for all users of this machine.
pub fn system_settings() -> Vec<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let below = |folder: Option<PathBuf>, name: &str| folder.map(|folder| folder.join(name));
    [
        below(folder("ProgramData"), r"Git\config"),
        below(folder("ProgramFiles"), r"Git\etc\gitconfig"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
