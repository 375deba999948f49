use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// True if the file system of most machines ignores the case of names.
pub const IGNORES_CASE: bool = cfg!(target_os = "macos");

/// Reads without waiting for whoever writes into a pipe, and takes no terminal.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a file for reading. A pipe is not waited for.
pub fn open(path: &Path, follow: bool) -> io::Result<File> {
    let flags = if follow { READ } else { READ | OFlags::NOFOLLOW };
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Opens a plain file below a folder for reading. No link leads out of the folder, and the file
/// itself is no link. Anything but a plain file is an error, and is not opened.
pub fn open_below(root: &Path, name: &Path) -> io::Result<File> {
    let root = rustix::fs::open(root, FOLDER, Mode::empty())?;
    match beneath::open(root.as_fd(), name) {
        // The kernel is too old, or keeps this call from this process.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(root, name),
        opened => opened,
    }
    .map(File::from)
    .map_err(io::Error::from)
}

fn check_plain(mode: rustix::fs::RawMode) -> Result<(), Errno> {
    if FileType::from_raw_mode(mode).is_file() { Ok(()) } else { Err(Errno::INVAL) }
}

#[cfg(target_os = "linux")]
mod beneath {
    use super::*;
    use rustix::fs::{ResolveFlags, openat2};

    /// The kernel asks to try again if something was renamed meanwhile.
    const ATTEMPTS: usize = 8;

    pub fn open(root: BorrowedFd, name: &Path) -> Result<OwnedFd, Errno> {
        // A look at it first, because to open a device may already do something.
        let there = resolve(root, name, OFlags::PATH | OFlags::CLOEXEC)?;
        check_plain(fstat(there)?.st_mode)?;
        resolve(root, name, READ)
    }

    fn resolve(root: BorrowedFd, name: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let attempts = (0..ATTEMPTS).map(|_| openat2(root, name, flags, Mode::empty(), how));
        let mut decided = attempts.filter(|opened| !matches!(opened, Err(Errno::AGAIN)));
        decided.next().unwrap_or(Err(Errno::AGAIN))
    }
}

#[cfg(not(target_os = "linux"))]
mod beneath {
    use super::*;

    pub fn open(_: BorrowedFd, _: &Path) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }
}

/// The same, one part of the name after the other. No part may be a link.
fn step_by_step(root: OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
    let mut folder = root;
    let mut parts = name.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(part) = part else { return Err(Errno::INVAL) };
        if parts.peek().is_some() {
            folder = openat(folder, part, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
            continue;
        }
        check_plain(statat(&folder, part, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)?;
        return openat(folder, part, READ | OFlags::NOFOLLOW, Mode::empty());
    }
    Err(Errno::INVAL)
}

/// Numbers that change with the file that lies at a path and with what is in it.
pub fn identity(file: &Metadata) -> [i64; 4] {
    [file.dev() as i64, file.ino() as i64, file.ctime(), file.ctime_nsec()]
}

/// Returns true if a path lies on another machine by its form.
pub fn is_remote(_: &Path) -> bool {
    false
}

/// Returns true if a name that is written in a file can be one of a file below a folder.
pub fn is_plain_name(_: &std::ffi::OsStr) -> bool {
    true
}

/// Returns the path that git writes as these bytes.
pub fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    Some(std::ffi::OsStr::from_bytes(bytes).into())
}

/// Returns the bytes by which git knows a part of a path.
pub fn bytes_of(part: &std::ffi::OsStr) -> std::borrow::Cow<'_, [u8]> {
    part.as_bytes().into()
}

/// Returns the files of git's settings for all users of this machine.
pub fn system_settings() -> Vec<PathBuf> {
    let places: &[&str] = if cfg!(target_os = "macos") {
        &[
            "/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
            "/opt/homebrew/etc/gitconfig",
            "/usr/local/etc/gitconfig",
            "/etc/gitconfig",
        ]
    } else {
        &["/etc/gitconfig"]
    };
    places.iter().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_call_resolves_no_link_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/c"), "text").unwrap();
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        std::os::unix::fs::symlink("a/b/c", root.join("file")).unwrap();
        let open = |name: &str| {
            let root = rustix::fs::open(root, FOLDER, Mode::empty()).unwrap();
            step_by_step(root, Path::new(name)).is_ok()
        };
        assert!(open("a/b/c"));
        for name in ["link/b/c", "file", "a/b", "a/../a/b/c", "/etc/passwd", "", "a/none"] {
            assert!(!open(name), "{name}");
        }
    }
}
