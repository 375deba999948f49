//! Reads the files of a folder that the user opened. A name that leads out of it is no file of it,
//! wherever the name stands: in an import, in a setting, in a list of a repository.

use crate::limits::DEPTH_MAX;
use crate::plain::{self, Stamp, Unread};
use crate::platform;
use std::path::{Component, Path, PathBuf};

/// A folder that the user opened, by its absolute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(PathBuf);

/// A name of a file below a folder: not empty, and without `..`, root, drive or server. Where its
/// links lead is seen when it is opened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(PathBuf);

impl Name {
    /// Returns a name that is given from its folder on, if it can be one.
    pub fn of(path: &Path) -> Option<Name> {
        let mut name = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(part) if is_plain_name(part) => name.push(part),
                _ => return None,
            }
        }
        (!name.as_os_str().is_empty()).then_some(Name(name))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

fn is_plain_name(part: &std::ffi::OsStr) -> bool {
    !part.as_encoded_bytes().contains(&0) && platform::is_plain_name(part)
}

impl Folder {
    /// Returns a folder, if its path is absolute.
    pub fn at(path: PathBuf) -> Option<Folder> {
        path.is_absolute().then_some(Folder(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the name of a file, if it can lie below this folder. The path is given from the
    /// folder on, or is absolute.
    pub fn name(&self, path: &Path) -> Option<Name> {
        let below = if path.is_absolute() { path.strip_prefix(&self.0).ok()? } else { path };
        Name::of(below)
    }

    /// Returns the folder of the repository that holds a file, by its absolute path.
    pub fn of_repository(file: &Path) -> Option<Folder> {
        let above = file.ancestors().skip(1).take(DEPTH_MAX);
        let mut roots = above.filter(|folder| folder.join(".git").symlink_metadata().is_ok());
        Folder::at(roots.next()?.to_owned())
    }

    /// Returns true if there is a plain file with this name.
    pub fn holds(&self, name: &Name) -> bool {
        platform::open_below(&self.0, &name.0).is_ok()
    }

    /// Reads a file of at most so many bytes.
    ///
    /// # Errors
    /// There is none below the folder, or it cannot or must not be read.
    pub fn read(&self, name: &Name, bytes_max: u64) -> Result<(Vec<u8>, Stamp), Unread> {
        let opened = platform::open_below(&self.0, &name.0).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Unread::Missing,
            _ => Unread::NoFile,
        });
        plain::read_opened(opened?, bytes_max)
    }

    /// Reads a text of at most so many bytes.
    ///
    /// # Errors
    /// There is none below the folder, or it cannot or must not be read, or is no text.
    pub fn text(&self, name: &Name, bytes_max: u64) -> Result<String, Unread> {
        plain::text(self.read(name, bytes_max)?.0)
    }
}

/// Returns where a file really lies. One that is not there yet lies in its folder.
pub fn real(file: &Path) -> Option<PathBuf> {
    file.ancestors().find_map(|there| {
        let real = there.canonicalize().ok()?;
        let rest = file.strip_prefix(there).ok()?;
        // With nothing to add, a slash would be added.
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const BYTES_MAX: u64 = 100;

    #[test]
    fn names_that_lead_out_are_none() {
        for name in
            ["", ".", "..", "../a", "a/..", "a/../../b", "./..", "/a", "/", "//host/share/a"]
        {
            assert_eq!(Name::of(Path::new(name)), None, "{name:?}");
        }
        for (name, plain) in
            [("a", "a"), ("./a/./b", "a/b"), ("a//b/", "a/b"), ("..a/b..", "..a/b..")]
        {
            assert_eq!(Name::of(Path::new(name)).unwrap().path(), Path::new(plain), "{name:?}");
        }
        let folder = Folder::at("/home/u/repo".into()).unwrap();
        assert_eq!(folder.name(Path::new("/home/u/repo/a")), Name::of(Path::new("a")));
        for path in ["/home/u/repository/a", "/home/u/repo", "/home/u/repo/../a", "/etc/passwd"] {
            assert_eq!(folder.name(Path::new(path)), None, "{path}");
        }
        assert_eq!(Folder::at("repo".into()), None);
    }

    #[cfg(windows)]
    #[test]
    fn drives_devices_and_streams_are_no_names() {
        for name in [r"C:\a", r"C:a", r"\\host\share\a", r"\\.\pipe\a", r"\\?\C:\a", r"\a"] {
            assert_eq!(Name::of(Path::new(name)), None, "{name:?}");
        }
        for name in ["NUL", "nul.txt", "a/CON", "com1", "LPT9.py", "a:b", "a.", "a ", "CONIN$"] {
            assert_eq!(Name::of(Path::new(name)), None, "{name:?}");
        }
    }

    /// Whatever lies at a name, only a plain file below the folder is read, and nothing is waited
    /// for: a pipe that is opened hangs this test.
    #[cfg(unix)]
    #[test]
    fn only_plain_files_below_the_folder_are_read() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("repo");
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("src")).unwrap();
        fs::write(place.path().join("outside"), "outside").unwrap();
        fs::create_dir(place.path().join("other")).unwrap();
        fs::write(place.path().join("other/a"), "other").unwrap();
        fs::write(at("src/a"), "text").unwrap();
        fs::write(at("long"), "x".repeat(BYTES_MAX as usize + 1)).unwrap();
        fs::File::create(at("huge")).unwrap().set_len(8 << 40).unwrap_or_default();
        symlink("src", at("inside")).unwrap();
        symlink("src/a", at("link")).unwrap();
        symlink("../outside", at("out")).unwrap();
        symlink("../other", at("other")).unwrap();
        symlink(place.path().join("other"), at("absolute")).unwrap();
        symlink("/proc", at("proc")).unwrap();
        symlink("loop", at("loop")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let folder = Folder::at(root.clone()).unwrap();
        let read = |name: &str| folder.text(&Name::of(Path::new(name)).unwrap(), BYTES_MAX);
        assert_eq!(read("src/a").unwrap(), "text");
        if cfg!(target_os = "linux") {
            assert_eq!(read("inside/a").unwrap(), "text", "a link that stays in the folder");
        }
        for name in [
            "link",
            "out",
            "other/a",
            "absolute/a",
            "proc/self/environ",
            "proc/self/pagemap",
            "loop",
            "loop/a",
            "pipe",
            "socket",
            "src",
        ] {
            assert!(matches!(read(name), Err(Unread::NoFile)), "{name}: {:?}", read(name));
        }
        for name in ["long", "huge"] {
            assert!(matches!(read(name), Err(Unread::TooLong(BYTES_MAX))), "{name}");
        }
        for name in ["none", "src/a/b", "none/a"] {
            assert!(matches!(read(name), Err(Unread::Missing)), "{name}: {:?}", read(name));
        }
    }

    /// A file of `/proc` says that it has no bytes, and some have no end.
    #[cfg(target_os = "linux")]
    #[test]
    fn no_more_is_read_than_asked_for() {
        let folder = Folder::at("/proc/self".into()).unwrap();
        let name = Name::of(Path::new("maps")).unwrap();
        assert!(matches!(folder.read(&name, BYTES_MAX), Err(Unread::TooLong(_))));
        let folder = Folder::at("/dev".into()).unwrap();
        let name = Name::of(Path::new("zero")).unwrap();
        assert!(matches!(folder.read(&name, BYTES_MAX), Err(Unread::NoFile)));
    }
}
