//! The files of git that libgit2 reads whole as soon as it opens a repository. It opens whatever
//! lies there: a pipe would be waited for, and a device has no end.

use anyhow::{Result, bail, ensure};
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

/// How far libgit2 follows folders of objects that name others.
const BORROWED_DEPTH_MAX: u32 = 5;

/// Folders of objects that a repository borrows from, at most; libgit2 opens one again for each
/// way that leads there.
const BORROWED_MAX: u32 = 64;

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
    NAMES.iter().try_for_each(|name| check_file(&folder.join(name)))?;
    let mut left = BORROWED_MAX;
    check_borrowed(&folder.join("objects"), BORROWED_DEPTH_MAX, &mut left)
}

fn check_file(path: &Path) -> Result<()> {
    let Ok(found) = path.metadata() else { return Ok(()) };
    ensure!(
        found.is_file() && found.len() <= BYTES_MAX,
        "{}: it is no plain file of at most {} MiB, as git has it: remove it",
        path.display(),
        BYTES_MAX >> 20
    );
    Ok(())
}

/// Checks the folders from which a folder of objects borrows. libgit2 opens what they name: a share
/// of the network would be asked for, and told who the user is.
fn check_borrowed(objects: &Path, depth: u32, left: &mut u32) -> Result<()> {
    let file = objects.join("info/alternates");
    check_file(&file)?;
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    let Ok(text) = read(&file) else { return Ok(()) };
    let named = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    named.filter(|line| !line.starts_with('#')).try_for_each(|line| {
        let is_remote = ["//", "\\\\"].iter().any(|start| line.starts_with(start));
        ensure!(
            !is_remote,
            "{}: it names a share of the network: run `git repack -a -d`, and remove the file",
            file.display()
        );
        let Some(fewer) = left.checked_sub(1) else {
            bail!("{}: it leads to more than {BORROWED_MAX} folders", file.display());
        };
        *left = fewer;
        check_borrowed(&objects.join(line), depth, left)
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
    fn objects_are_borrowed_from_plain_folders_of_this_machine() {
        let (own, lender) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Repository::init(own.path()).unwrap();
        Repository::init_bare(lender.path()).unwrap();
        let borrow = |objects: &Path, named: &str| {
            fs::create_dir_all(objects.join("info")).unwrap();
            fs::write(objects.join("info/alternates"), format!("# of a clone\n{named}\n")).unwrap();
        };
        let (objects, lent) = (own.path().join(".git/objects"), lender.path().join("objects"));
        borrow(&objects, lent.to_str().unwrap());
        assert!(repository::open(own.path()).is_ok());

        for named in ["//elsewhere/share/objects", r"\\elsewhere\share\objects"] {
            borrow(&lent, named);
            let error = repository::open(own.path()).err().unwrap().to_string();
            assert!(error.contains("a share of the network"), "{error}");
        }
        // A circle ends where libgit2 ends it, and so does one of many ways.
        borrow(&lent, objects.to_str().unwrap());
        assert!(repository::open(own.path()).is_ok());
        borrow(&lent, &[objects.to_str().unwrap(); 9].join("\n"));
        borrow(&objects, &[lent.to_str().unwrap(); 9].join("\n"));
        let error = repository::open(own.path()).err().unwrap().to_string();
        assert!(error.contains("more than 64 folders"), "{error}");
    }

    /// Opening the pipe hangs this test.
    #[cfg(unix)]
    #[test]
    fn a_pipe_in_a_folder_that_lends_objects_is_refused_before_it_is_opened() {
        let (own, lender) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Repository::init(own.path()).unwrap();
        let info = lender.path().join("info");
        fs::create_dir_all(&info).unwrap();
        let made = std::process::Command::new("mkfifo").arg(info.join("alternates")).status();
        assert!(made.unwrap().success());
        let named = own.path().join(".git/objects/info/alternates");
        fs::create_dir_all(named.parent().unwrap()).unwrap();
        fs::write(named, lender.path().to_str().unwrap()).unwrap();
        assert!(repository::open(own.path()).is_err());
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
