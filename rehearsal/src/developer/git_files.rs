//! The files of git: those that libgit2 reads whole as soon as it opens a repository, and those of
//! its refs and objects. It opens whatever lies there: a pipe would be waited for, and a device has
//! no end.

use anyhow::{Context, Result, bail, ensure};
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

/// Files and folders of the refs of a repository, or of its objects, and how deep they may lie.
const ENTRIES_MAX: u32 = 1_000_000;
const DEPTH_MAX: u32 = 32;

/// How far libgit2 follows a ref that names another.
const NAMED_DEPTH_MAX: u32 = 10;

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
        let is_bare = ["objects", "refs"].iter().all(|name| above.join(name).is_dir())
            || pointer(&above.join("commondir"), "").is_some();
        let bare = is_bare.then(|| above.to_owned());
        for folder in [own, bare].into_iter().flatten() {
            check_names(&folder)?;
            let shared = pointer(&folder.join("commondir"), "").map(|shared| folder.join(shared));
            shared.iter().try_for_each(|shared| check_names(shared))?;
            check_head(&folder, shared.as_ref().unwrap_or(&folder))?;
        }
    }
    Ok(())
}

fn check_names(folder: &Path) -> Result<()> {
    NAMES.iter().try_for_each(|name| check_file(&folder.join(name)))?;
    check_folder(&folder.join("refs"))?;
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

/// Follows what is checked out from name to name. Each must be one of the refs, which are checked:
/// libgit2 would open any other file too.
fn check_head(own: &Path, shared: &Path) -> Result<()> {
    let mut file = own.join("HEAD");
    for _ in 0..NAMED_DEPTH_MAX {
        check_file(&file)?;
        if !file.is_file() {
            break;
        }
        let text = read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        // To libgit2 a name ends there.
        let text = text.split('\0').next().unwrap_or_default();
        let Some(named) = text.strip_prefix("ref:").map(str::trim) else { break };
        ensure!(
            named.starts_with("refs/"),
            "{}: it names {named}, which is no branch: run `git switch` with the name of one",
            file.display()
        );
        // Some refs are a worktree's own.
        let of_own = own.join(named);
        file = if of_own.is_file() { of_own } else { shared.join(named) };
    }
    Ok(())
}

/// Checks that nothing but plain files and folders lies in a folder, or where its links lead.
fn check_folder(folder: &Path) -> Result<()> {
    let mut left = ENTRIES_MAX;
    check_below(folder, DEPTH_MAX, &mut left)
}

fn check_below(folder: &Path, depth: u32, left: &mut u32) -> Result<()> {
    let Ok(entries) = folder.read_dir() else { return Ok(()) };
    for entry in entries {
        let entry = entry.with_context(|| format!("{} cannot be read", folder.display()))?;
        let path = entry.path();
        let (Some(deeper), Some(fewer)) = (depth.checked_sub(1), left.checked_sub(1)) else {
            bail!("{}: git's files there are too many or too deep: run `git gc`", folder.display());
        };
        *left = fewer;
        let own = entry.file_type().ok().filter(|found| !found.is_symlink());
        match own.or_else(|| path.metadata().ok().map(|found| found.file_type())) {
            Some(found) if found.is_dir() => check_below(&path, deeper, left)?,
            Some(found) if !found.is_file() => {
                bail!("{}: it is no plain file, as git has it: remove it", path.display());
            }
            // A link may lead nowhere.
            _ => {}
        }
    }
    Ok(())
}

/// Checks a folder of objects, and those from which it borrows. libgit2 opens what they name: a
/// share of the network would be asked for, and told who the user is.
fn check_borrowed(objects: &Path, depth: u32, left: &mut u32) -> Result<()> {
    check_folder(objects)?;
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

    /// Opening one of the pipes hangs this test.
    #[cfg(unix)]
    #[test]
    fn a_pipe_among_refs_and_objects_is_refused_before_it_is_opened() {
        let object = format!("objects/ab/{}", "0".repeat(38));
        for name in [
            "refs/heads/main",
            "refs/remotes/origin/deep/er",
            object.as_str(),
            "objects/pack/pack-1.pack",
            "objects/pack/pack-1.idx",
            "objects/pack/multi-pack-index",
            "objects/info/commit-graph",
            "objects/info/commit-graphs/commit-graph-chain",
        ] {
            let folder = tempfile::tempdir().unwrap();
            Repository::init(folder.path()).unwrap();
            let file = folder.path().join(".git").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            assert!(check(folder.path()).is_ok(), "{name}");
            fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
            let error = repository::open(folder.path()).err().unwrap().to_string();
            assert!(error.contains(name) && error.contains("no plain file"), "{error}");
            fs::remove_file(&file).unwrap();
            let made = std::process::Command::new("mkfifo").arg(&file).status();
            assert!(made.unwrap().success());
            let error = repository::open(folder.path()).err().unwrap().to_string();
            assert!(error.contains(name) && error.contains("no plain file"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_among_refs_lead_to_plain_files_and_end() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        Repository::init(folder.path()).unwrap();
        let refs = folder.path().join(".git/refs");
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("main"), "").unwrap();
        symlink(elsewhere.path(), refs.join("remotes")).unwrap();
        symlink("nothing", refs.join("heads/nowhere")).unwrap();
        assert!(check(folder.path()).is_ok());
        symlink("..", refs.join("heads/circle")).unwrap();
        let error = check(folder.path()).unwrap_err().to_string();
        assert!(error.contains("too many or too deep"), "{error}");
    }

    /// Opening one of the pipes hangs this test.
    #[cfg(unix)]
    #[test]
    fn what_is_checked_out_is_one_of_the_refs() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap().path().to_owned();
        fs::create_dir_all(git.join("hooks")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(git.join("hooks/pipe")).status();
        assert!(made.unwrap().success());
        assert!(repository::open(folder.path()).is_ok());
        for head in ["ref: hooks/pipe\n", "ref: refs/heads/link\n", "ref: refs/../hooks/pipe\n"] {
            fs::write(git.join("refs/heads/link"), "ref: hooks/pipe\n").unwrap();
            fs::write(git.join("HEAD"), head).unwrap();
            let error = check(folder.path()).unwrap_err().to_string();
            assert!(error.contains("hooks/pipe"), "{error}");
        }
    }

    /// Opening the pipe hangs this test.
    #[cfg(unix)]
    #[test]
    fn a_pipe_of_a_repository_that_a_folder_names_as_its_own_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let shared = folder.path().join("shared");
        Repository::init_bare(&shared).unwrap();
        fs::remove_file(shared.join("config")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(shared.join("config")).status();
        assert!(made.unwrap().success());
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(own.join("commondir"), "../shared\n").unwrap();
        assert!(repository::open(&own).is_err());
    }

    #[test]
    fn folders_of_such_names_next_to_a_repository_are_no_files_of_it() {
        let folder = tempfile::tempdir().unwrap();
        Repository::init(folder.path()).unwrap();
        for name in ["config", "shallow", "src/config"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        assert!(repository::open(&folder.path().join("src")).is_ok());
    }
}
