//! The files of git that libgit2 reads whole as soon as it opens a repository. It opens whatever
//! lies there: a pipe would be waited for, and a device has no end.

use anyhow::{Result, ensure};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Their names in the folder of a repository.
const NAMES: &[&str] = &[
    "HEAD",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "info/grafts",
    "objects/info/alternates",
    "packed-refs",
    "shallow",
];

/// The largest of them that is read, in bytes. `packed-refs` has a line for each branch and tag.
const BYTES_MAX: u64 = 64 << 20;

/// The longest file that names a folder, in bytes.
const POINTER_BYTES_MAX: u64 = 4_096;

/// Checks every repository that may be found from a folder upwards.
///
/// # Errors
/// Names a file that is no plain one, or too long.
pub fn check(folder: &Path) -> Result<()> {
    for above in real(folder).ancestors() {
        let git = above.join(".git");
        let named = pointer(&git, "gitdir:").map(|named| above.join(named));
        let own = if git.is_dir() { Some(git) } else { named };
        // A folder may be a bare repository itself.
        let bare = Some(above.to_owned()).filter(|above| above.join("objects").is_dir());
        for folder in [own, bare].into_iter().flatten() {
            check_names(&folder)?;
            if let Some(shared) = pointer(&folder.join("commondir"), "") {
                check_names(&folder.join(shared))?;
            }
        }
    }
    Ok(())
}

fn check_names(folder: &Path) -> Result<()> {
    NAMES.iter().try_for_each(|name| {
        let path = folder.join(name);
        let Ok(found) = path.metadata() else { return Ok(()) };
        ensure!(
            found.is_file() && found.len() <= BYTES_MAX,
            "{}: it is no plain file of at most {} MiB, as git has it: remove it",
            path.display(),
            BYTES_MAX >> 20
        );
        Ok(())
    })
}

/// Reads a file that was checked.
///
/// # Errors
/// It cannot be read, or is no UTF-8.
pub fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    File::open(path)?.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns a path without links, if it is there.
pub fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the path that a file names behind a mark.
pub fn pointer(file: &Path, mark: &str) -> Option<PathBuf> {
    let is_plain = file.symlink_metadata().is_ok_and(|found| found.is_file());
    let mut text = String::new();
    let opened = is_plain.then(|| File::open(file).ok()).flatten()?;
    opened.take(POINTER_BYTES_MAX).read_to_string(&mut text).ok()?;
    let named = text.strip_prefix(mark)?.trim();
    (!named.is_empty()).then(|| PathBuf::from(named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::developer::repository;
    use git2::Repository;
    use std::fs;

    /// Opening a pipe, or reading a device to its end, hangs this test.
    #[cfg(unix)]
    #[test]
    fn a_pipe_and_a_device_are_refused_before_they_are_opened() {
        for name in NAMES {
            for bare in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                if bare {
                    Repository::init_bare(folder.path()).unwrap();
                } else {
                    Repository::init(folder.path()).unwrap();
                }
                let git = if bare { folder.path().to_owned() } else { folder.path().join(".git") };
                let file = git.join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                let _ = fs::remove_file(&file);
                std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
                let error = repository::open(folder.path()).err().unwrap().to_string();
                assert!(error.contains(name) && error.contains("no plain file"), "{error}");
                fs::remove_file(&file).unwrap();
                let made = std::process::Command::new("mkfifo").arg(&file).status();
                assert!(made.unwrap().success());
                assert!(repository::open(folder.path()).is_err(), "{name}");
            }
        }
    }

    #[test]
    fn folders_of_such_names_beside_a_repository_are_no_files_of_it() {
        let folder = tempfile::tempdir().unwrap();
        Repository::init(folder.path()).unwrap();
        for name in ["config", "shallow", "src/config"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        assert!(repository::open(&folder.path().join("src")).is_ok());
    }
}
