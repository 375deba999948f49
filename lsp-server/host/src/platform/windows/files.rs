//! Files and folders: who may read them, and what lies at a path.
#![allow(unsafe_code)]

use super::security::{
    ADMINISTRATORS, SecurityDescriptor, lets_in_nobody_but, own_user, owner_and_list,
};
use super::{check, wide};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsHandle;
use std::path::Path;
use windows_sys::Win32::Storage::FileSystem::{
    CreateDirectoryW, FILE_FLAG_OPEN_REPARSE_POINT, GetDiskFreeSpaceExW,
};

/// True if a path begins with the letter of a drive or the name of a server, and `\\` parts it.
pub const HAS_DRIVES: bool = true;

/// True if the system takes names for the same that differ in the case of letters.
pub const IGNORES_CASE: bool = true;

/// True if the system takes the composed and the decomposed form of a letter such as `é` for the
/// same.
pub const IGNORES_FORM: bool = false;

/// Returns the program's output without the buffer of the standard library, which ends at the last
/// line break and so sends a message in two writes.
pub fn stdout() -> io::Result<File> {
    Ok(io::stdout().as_handle().try_clone_to_owned()?.into())
}

/// Options for a file that only this user can read: it inherits the access list of its folder. A
/// link in its place is not followed.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    options
}

/// Makes a folder, and those above it, that only this user can read.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    let descriptor = SecurityDescriptor::of_own_folder()?;
    let attributes = descriptor.attributes();
    let wide = wide(path);
    // SAFETY: the path ends with a zero, and the descriptor outlives the call.
    match check(unsafe { CreateDirectoryW(wide.as_ptr(), &attributes) }) {
        // Another process has made it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Returns whether this user owns what lies at the path.
pub fn is_own(path: &Path) -> io::Result<bool> {
    let (owner, _) = owner_and_list(path)?;
    Ok(owner == own_user()? || owner == ADMINISTRATORS)
}

/// Returns true if only this user can reach what lies in the folder.
pub fn keeps_others_out(folder: &Path) -> io::Result<bool> {
    Ok(is_private(folder)?.0)
}

/// Returns true if the folder is one for everybody. Its owner tells such a one apart here.
pub fn is_shared(_folder: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Keeps others out of a folder.
pub fn close_to_others(folder: &Path) -> io::Result<()> {
    SecurityDescriptor::of_own_folder()?.give_to(folder)
}

/// # Errors
/// Files cannot be made in the folder.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    tempfile::tempfile_in(folder).map(drop)
}

/// Returns whether only this user can open the file, and how that is written.
pub fn is_private(path: &Path) -> io::Result<(bool, String)> {
    let (_, list) = owner_and_list(path)?;
    Ok((lets_in_nobody_but(&own_user()?, &list), "by its access list".to_owned()))
}

pub fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// The bytes that this user may still write in a folder.
pub fn free_room(folder: &Path) -> Option<u64> {
    let (folder, mut free) = (wide(folder), 0);
    // SAFETY: the path ends with a zero, and the number that is written to outlives the call.
    check(unsafe {
        GetDiskFreeSpaceExW(folder.as_ptr(), &mut free, std::ptr::null_mut(), std::ptr::null_mut())
    })
    .ok()?;
    Some(free)
}

/// What tells a file from every other that exists. The system keeps an open file, and the folders
/// above it, from being removed or renamed, so that what is there is what was there.
pub type FileId = ();

/// Returns the identity of what lies at the path.
pub fn identity(path: &Path) -> Option<FileId> {
    path.symlink_metadata().ok().map(drop)
}

/// Returns the identity of an open file.
pub fn identity_of(_file: &File) -> Option<FileId> {
    Some(())
}

/// Returns whether both paths are names of the same file.
pub fn is_one_file(one: &Path, other: &Path) -> bool {
    same_file::is_same_file(one, other).unwrap_or(false)
}
