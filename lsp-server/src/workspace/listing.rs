//! Lists the files of a folder: those that git knows or would add. Without git, a walk that heeds
//! ignore files finds them.

use crate::platform::{files, process};
use crate::workspace::limits::{DEPTH_MAX, LISTED_MAX, LISTING_BYTES_MAX, LISTING_TIME_MAX};
use ignore::WalkBuilder;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub struct Listing {
    /// The files from the folder on, each once.
    pub files: Vec<PathBuf>,
    /// The limit because of which files are missing.
    pub limit: Option<String>,
}

/// Lists a folder. The files nearest to `center`, a folder, come first.
pub fn list(root: &Path, center: &Path) -> Listing {
    list_within(root, center, LISTING_TIME_MAX)
}

/// The same in less time. What is not listed by then is missing.
pub fn list_within(root: &Path, center: &Path, time: Duration) -> Listing {
    let mut listing = by_git(root, time).unwrap_or_else(|| by_walk(root, time));
    let center = center.strip_prefix(root).unwrap_or(Path::new("")).to_owned();
    listing.files.sort_by_cached_key(|file| (steps_between(file, &center), file.clone()));
    listing
}

/// The number of folders that one goes up and down from a file to a folder.
fn steps_between(file: &Path, folder: &Path) -> usize {
    let above = || file.parent().into_iter().flat_map(Path::components);
    let shared = above().zip(folder.components()).take_while(|(a, b)| a == b).count();
    above().count() + folder.components().count() - 2 * shared
}

/// `None`: there is no git, or it does not know this folder.
fn by_git(root: &Path, time: Duration) -> Option<Listing> {
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
    let mut limit = is_cut.then(listed_limit);
    for name in names {
        if listed.len() == LISTED_MAX {
            limit = Some(listed_limit());
            break;
        }
        listed.extend(files::path_from_git(name));
    }
    Some(Listing { files: listed.into_iter().collect(), limit })
}

fn by_walk(root: &Path, time: Duration) -> Listing {
    let started = Instant::now();
    let mut listing = Listing { files: vec![], limit: None };
    let mut walk = WalkBuilder::new(root);
    walk.require_git(false).follow_links(false).max_depth(Some(DEPTH_MAX));
    walk.add_custom_ignore_filename(".honeignore");
    for entry in walk.build().flatten() {
        if listing.files.len() == LISTED_MAX {
            listing.limit = Some(listed_limit());
            break;
        }
        if started.elapsed() > time {
            listing.limit = Some(format!("listed for {} s only", time.as_secs()));
            break;
        }
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if let Some(file) = entry.path().strip_prefix(root).ok().filter(|_| is_file) {
            listing.files.push(file.to_owned());
        }
    }
    listing
}

fn listed_limit() -> String {
    format!("only {LISTED_MAX} files are listed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
        let listing = list(tree.path(), &tree.path().join(center));
        let name = |file: PathBuf| file.to_string_lossy().into_owned();
        listing.files.into_iter().map(name).collect()
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
        assert!(list(Path::new("/nowhere/at/all"), Path::new("/")).files.is_empty());
    }
}
