//! Lists the files of a folder: those that git knows or would add. Without git, a walk that heeds
//! ignore files finds them.

use crate::platform::{files, process};
use ignore::WalkBuilder;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The number of files of one folder that are listed. What comes after them is not looked at.
const LISTED_MAX: usize = 200_000;

/// The output of `git ls-files` that is read, in bytes.
const LISTING_BYTES_MAX: u64 = 64 << 20;

/// The depth to which a folder that git does not know is walked, in folders.
const DEPTH_MAX: usize = 32;

/// Lists the files of a folder, from the folder on and each once. The files nearest to `center`, a
/// folder, come first. What is not listed within `time` is missing.
pub fn list(root: &Path, center: &Path, time: Duration) -> Vec<PathBuf> {
    let mut files = by_git(root, time).unwrap_or_else(|| by_walk(root, time));
    let center = center.strip_prefix(root).unwrap_or(Path::new("")).to_owned();
    files.sort_by_cached_key(|file| (steps_between(file, &center), file.clone()));
    files
}

/// The number of folders that one goes up and down from a file to a folder.
fn steps_between(file: &Path, folder: &Path) -> usize {
    let above = || file.parent().into_iter().flat_map(Path::components);
    let shared = above().zip(folder.components()).take_while(|(a, b)| a == b).count();
    above().count() + folder.components().count() - 2 * shared
}

/// Returns nothing if there is no git, or if it does not know this folder.
fn by_git(root: &Path, time: Duration) -> Option<Vec<PathBuf>> {
    let mut git = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
        git.env_remove(name);
    }
    git.env("GIT_OPTIONAL_LOCKS", "0").arg("-C").arg(root);
    // A repository's own settings must not start a program, nor make git fetch what it lacks.
    git.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "").env("GIT_TERMINAL_PROMPT", "0");
    git.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    git.args(["-c", "safe.bareRepository=explicit"]);
    git.args(["ls-files", "-z", "--cached", "--others"]);
    git.arg("--exclude-standard").stdin(Stdio::null()).stderr(Stdio::null());
    process::hide_window(&mut git);
    let mut child = git.stdout(Stdio::piped()).spawn().ok()?;
    let output = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = vec![];
        let read = output.take(LISTING_BYTES_MAX).read_to_end(&mut bytes);
        // Nobody listens after the time limit.
        let _ = sender.send(read.map(|_| bytes));
    });
    let output = receiver.recv_timeout(time);
    if output.is_err() {
        let _ = child.kill();
    }
    let bytes = output.ok().and_then(Result::ok);
    let is_cut = bytes.as_ref().is_some_and(|bytes| bytes.len() as u64 == LISTING_BYTES_MAX);
    if is_cut {
        let _ = child.kill();
    }
    let succeeded = child.wait().is_ok_and(|status| status.success());
    let bytes = bytes.filter(|_| succeeded || is_cut)?;
    let names = bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let mut listed = BTreeSet::new();
    for name in names {
        if listed.len() == LISTED_MAX {
            break;
        }
        listed.extend(files::path_from_git(name));
    }
    Some(listed.into_iter().collect())
}

fn by_walk(root: &Path, time: Duration) -> Vec<PathBuf> {
    let started = Instant::now();
    let mut files = vec![];
    let mut walk = WalkBuilder::new(root);
    walk.require_git(false).follow_links(false).max_depth(Some(DEPTH_MAX));
    walk.add_custom_ignore_filename(".honeignore");
    for entry in walk.build().flatten() {
        if files.len() == LISTED_MAX || started.elapsed() > time {
            break;
        }
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if let Some(file) = entry.path().strip_prefix(root).ok().filter(|_| is_file) {
            files.push(file.to_owned());
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const LONG: Duration = Duration::from_secs(60);

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for file in files {
            let file = tree.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "text\n").unwrap();
        }
        tree
    }

    fn listed(tree: &tempfile::TempDir, center: &str) -> Vec<String> {
        let files = list(tree.path(), &tree.path().join(center), LONG);
        let name = |file: PathBuf| file.to_string_lossy().into_owned();
        files.into_iter().map(name).collect()
    }

    const FILES: &[&str] = &["a.rs", "src/b.rs", "src/deep/c.rs", "lib/d.rs", "target/e.rs"];

    #[test]
    fn the_nearest_files_come_first_and_ignored_ones_not_at_all() {
        let tree = tree(FILES);
        fs::write(tree.path().join(".gitignore"), "target/\n").unwrap();
        std::os::unix::fs::symlink(tree.path(), tree.path().join("src/loop")).unwrap();
        let expected = ["src/deep/c.rs", "src/b.rs", "a.rs", "lib/d.rs"];
        assert_eq!(listed(&tree, "src/deep"), expected, "without git");
        let git = Command::new("git").arg("init").arg("-q").arg(tree.path()).status();
        if git.is_ok_and(|git| git.success()) {
            let mut with_git = listed(&tree, "src/deep");
            with_git.retain(|file| !file.contains("ignore") && file != "src/loop");
            assert_eq!(with_git, expected, "with git");
        }
    }

    /// A worktree and a submodule have a file in the place of the folder `.git`.
    #[test]
    fn a_repository_whose_git_is_a_broken_file_is_walked() {
        let tree = tree(FILES);
        fs::write(tree.path().join(".git"), "gitdir: /nowhere\n").unwrap();
        assert_eq!(listed(&tree, "").len(), FILES.len());
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_files() {
        assert!(list(Path::new("/nowhere/at/all"), Path::new("/"), LONG).is_empty());
    }
}
