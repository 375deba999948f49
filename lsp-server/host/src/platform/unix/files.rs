//! Files and folders: who may read them, and what lies at a path.

use super::user;
use rustix::fs::Access;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The access of others than the owner, in a file's mode.
const OTHERS: u32 = 0o077;

/// What lets everybody make files in a folder, and keeps them from removing those of others.
const EVERYBODY_WRITES: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// True if a path begins with the letter of a drive or the name of a server, and `\\` parts it.
pub const HAS_DRIVES: bool = false;

/// True if the system takes names for the same that differ in the case of letters.
pub const IGNORES_CASE: bool = cfg!(target_os = "macos");

/// True if the system takes the composed and the decomposed form of a letter such as `é` for the
/// same.
pub const IGNORES_FORM: bool = cfg!(target_os = "macos");

/// Options for a file that only this user can read. A link in its place is not followed.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

/// Returns the program's output without the buffer of the standard library, which ends at the last
/// line break and so sends a message in two writes.
pub fn stdout() -> io::Result<File> {
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Makes a folder, and those above it, that only this user can read.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns whether this user owns what lies at the path, and what it links to.
pub fn is_own(path: &Path) -> io::Result<bool> {
    Ok(path.symlink_metadata()?.uid() == user() && path.metadata()?.uid() == user())
}

/// Returns true if only this user can reach what lies in the folder.
pub fn keeps_others_out(folder: &Path) -> io::Result<bool> {
    Ok(folder.metadata()?.mode() & OTHERS == 0)
}

/// Returns true if the folder is one for everybody, such as the system's for temporary files.
pub fn is_shared(folder: &Path) -> io::Result<bool> {
    Ok(folder.metadata()?.mode() & (EVERYBODY_WRITES | STICKY) != 0)
}

/// Keeps others out of a folder.
pub fn close_to_others(folder: &Path) -> io::Result<()> {
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// # Errors
/// Files cannot be made in the folder.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Returns whether only this user can open the file, and how that is written.
pub fn is_private(path: &Path) -> io::Result<(bool, String)> {
    let mode = path.symlink_metadata()?.mode();
    Ok((mode & OTHERS == 0, format!("mode {:o}", mode & 0o777)))
}

pub fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

/// The bytes that this user may still write in a folder.
pub fn free_room(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(system.f_bavail * system.f_frsize)
}

/// What tells a file from every other that exists.
pub type FileId = (u64, u64);

/// Returns the identity of what lies at the path. A link is not followed.
pub fn identity(path: &Path) -> Option<FileId> {
    path.symlink_metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// Returns the identity of an open file.
pub fn identity_of(file: &File) -> Option<FileId> {
    file.metadata().ok().map(|file| (file.dev(), file.ino()))
}

/// Returns whether both paths are names of the same file.
pub fn is_one_file(one: &Path, other: &Path) -> bool {
    identity(one).is_some() && identity(one) == identity(other)
}
