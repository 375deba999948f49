//! Finds the files of a folder, the nearest to a place in it first. Ignored files and folders are
//! left out, and so is everything that is no plain file. No link is followed.

use crate::folder::{Folder, Name};
use crate::ignored::IgnoreRules;
use crate::limits::{WALK_ENTRIES_MAX, WALK_FOLDERS_MAX};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The folder in which git keeps its own files.
const GIT: &str = ".git";

/// A walk through a folder. It reads the disk whenever the next file is asked for.
pub struct Walk {
    folder: Folder,
    rules: Arc<IgnoreRules>,
    /// The folders to look at, from the walk's folder on, the nearest first.
    ahead: VecDeque<Step>,
    /// The files of the folder that was looked at last.
    files: std::vec::IntoIter<Name>,
    /// The entries that may still be looked at.
    left: usize,
    /// Nothing is looked at after this.
    until: Instant,
}

struct Step {
    folder: PathBuf,
    /// The folder from which the walk came. It is not looked at again.
    from: Option<PathBuf>,
}

impl Walk {
    /// Returns a walk that begins at a folder within, and goes up and down from there.
    pub fn new(folder: Folder, center: &Path, rules: Arc<IgnoreRules>, until: Instant) -> Walk {
        let below = center.strip_prefix(folder.path()).unwrap_or(Path::new(""));
        let begin = Name::of(below).map_or(PathBuf::new(), |name| name.path().to_owned());
        let is_plain = |path: &Path| {
            folder.path().join(path).symlink_metadata().is_ok_and(|found| found.is_dir())
        };
        let is_safe = begin.ancestors().all(|path| path.as_os_str().is_empty() || is_plain(path));
        let begin = if is_safe { begin } else { PathBuf::new() };
        let ahead = VecDeque::from([Step { folder: begin, from: None }]);
        Walk { folder, rules, ahead, files: vec![].into_iter(), left: WALK_ENTRIES_MAX, until }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Notes the files of a folder, and the folders above and below it.
    fn look(&mut self, step: Step) {
        let path = self.folder.path().join(&step.folder);
        let view = self.rules.view(&path);
        let mut files = vec![];
        let mut folders = vec![];
        for entry in path.read_dir().into_iter().flatten().take(self.left).flatten() {
            self.left -= 1;
            if self.is_over() {
                return;
            }
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            let below = step.folder.join(&name);
            if name == GIT || view.ignores(&name, kind.is_dir()) {
                continue;
            } else if kind.is_file() {
                files.extend(Name::of(&below));
            } else if kind.is_dir() {
                folders.push(below);
            }
        }
        files.sort_unstable();
        folders.sort_unstable();
        self.files = files.into_iter();
        let above = step.folder.parent().map(Path::to_owned);
        for folder in above.into_iter().chain(folders) {
            if step.from.as_ref() != Some(&folder) && self.ahead.len() < WALK_FOLDERS_MAX {
                self.ahead.push_back(Step { folder, from: Some(step.folder.clone()) });
            }
        }
    }
}

impl Iterator for Walk {
    type Item = Name;

    fn next(&mut self) -> Option<Name> {
        loop {
            if self.is_over() {
                return None;
            }
            if let Some(file) = self.files.next() {
                return Some(file);
            }
            let step = self.ahead.pop_front()?;
            self.look(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ignored::User;
    use std::fs;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    fn walk(root: &Path, center: &str, until: Instant) -> Walk {
        let rules = Arc::new(IgnoreRules::of(User::default()));
        let folder = Folder::at(root.to_owned()).unwrap();
        Walk::new(folder, &root.join(center), rules, until)
    }

    fn found(root: &Path, center: &str) -> Vec<String> {
        let walk = walk(root, center, Instant::now() + LONG);
        walk.map(|name| name.path().to_string_lossy().into_owned()).collect()
    }

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for file in files {
            let file = tree.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "text\n").unwrap();
        }
        tree
    }

    #[test]
    fn the_nearest_files_come_first_and_ignored_ones_not_at_all() {
        let tree =
            tree(&["a", "src/b", "src/deep/c", "src/deep/er/d", "lib/e", "target/f", ".git/g"]);
        fs::write(tree.path().join(".gitignore"), "target/\n.gitignore\n").unwrap();
        assert_eq!(
            found(tree.path(), "src/deep"),
            ["src/deep/c", "src/b", "src/deep/er/d", "a", "lib/e"]
        );
        assert_eq!(found(tree.path(), ""), ["a", "lib/e", "src/b", "src/deep/c", "src/deep/er/d"]);
        assert_eq!(found(tree.path(), "../elsewhere"), found(tree.path(), ""));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_what_is_no_plain_file_are_left_out() {
        let tree = tree(&["repo/a", "other/b"]);
        let root = tree.path().join("repo");
        std::os::unix::fs::symlink("../other", root.join("out")).unwrap();
        std::os::unix::fs::symlink("../other/b", root.join("file")).unwrap();
        std::os::unix::fs::symlink(".", root.join("loop")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        assert_eq!(found(&root, ""), ["a"]);
        assert_eq!(found(&root, "out"), ["a"], "a walk does not begin behind a link");
    }

    /// A folder may have any number of entries, each of which is held against all rules.
    #[test]
    fn a_walk_looks_at_the_time_before_each_entry() {
        let tree = tree(&["a", "b", "c"]);
        let mut walk = walk(tree.path(), "", Instant::now() + LONG);
        walk.until = Instant::now();
        let step = walk.ahead.pop_front().unwrap();
        walk.look(step);
        assert!(walk.left + 1 >= WALK_ENTRIES_MAX && walk.next().is_none());
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_files() {
        assert!(found(Path::new("/nowhere/at/all"), "").is_empty());
    }
}
