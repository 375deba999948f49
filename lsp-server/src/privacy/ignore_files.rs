//! The files of which nothing is stored: files made to hold credentials, files that the user's
//! `privacy.ignore` names, and files that a `.honeignore` or `.gitignore` above them names.
//!
//! The first rule that matches decides. The order is: the file's own name, the setting,
//! `.honeignore` from the file's folder upwards, `.gitignore` up to the repository's root with its
//! `info/exclude`, and what the user's git ignores everywhere (`core.excludesFile`). In the setting
//! and in these files, `!` marks what is stored all the same.

use crate::addresses::path_in;
use crate::config::patterns::{Patterns, verdict};
use crate::paths::without_dots;
use feedback::secrets::is_sensitive_path;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const HONEIGNORE: &str = ".honeignore";
const GITIGNORE: &str = ".gitignore";

/// The time for which the ignore files of a folder stay cached. It is short enough that a user's
/// change seems to take effect at once, and long enough that a burst of completions reads them
/// once.
const FRESH: Duration = Duration::from_secs(2);

/// The most folders whose ignore files are cached. Beyond that the cache is cleared.
const FOLDERS_LIMIT: usize = 1024;

/// The most folders above a file whose ignore files are read.
const DEPTH_LIMIT: usize = 64;

/// The longest ignore file, in bytes. A longer one is not read, so it ignores everything.
const FILE_BYTES: u64 = 256 * 1024;

/// All sessions share it. Its locks are not held while the disk is read, so that nobody waits for
/// one while a mount does not answer.
pub struct IgnoreFiles {
    folders: Mutex<HashMap<PathBuf, Arc<Folder>>>,
    /// Reads what git ignores everywhere.
    read_global: fn() -> Gitignore,
    global: Mutex<Option<(Instant, Arc<Gitignore>)>>,
}

impl Default for IgnoreFiles {
    fn default() -> IgnoreFiles {
        IgnoreFiles {
            folders: Mutex::default(),
            read_global: || GitignoreBuilder::new("").build_global().0,
            global: Mutex::default(),
        }
    }
}

struct Folder {
    read_at: Instant,
    hone: Rules,
    git: Rules,
    is_repository: bool,
}

enum Rules {
    None,
    Some(Gitignore),
    /// There are rules that cannot be read.
    Everything,
}

impl Rules {
    fn verdict(&self, below: &Path) -> Option<bool> {
        match self {
            Rules::None => None,
            Rules::Some(rules) => verdict(rules, below),
            Rules::Everything => Some(true),
        }
    }
}

impl IgnoreFiles {
    /// Whether nothing of a file may be stored. `path` is the name that events record, `setting` is
    /// `privacy.ignore`.
    pub fn is_ignored(&self, path: &str, setting: &Patterns) -> bool {
        if is_sensitive_path(path) || is_sensitive_path(&path_in(path)) {
            return true;
        }
        let given = Path::new(path);
        if !given.is_absolute() {
            // A document that is no file of this machine is in none of its folders, so none of its
            // rules are about it.
            return false;
        }
        let given = without_dots(given);
        // `notes.txt` may be a link to `.env`.
        let real = given.canonicalize().ok().filter(|real| *real != given);
        [Some(given), real].into_iter().flatten().any(|path| {
            is_sensitive_path(&path.to_string_lossy()) || self.is_ignored_by_rules(&path, setting)
        })
    }

    fn is_ignored_by_rules(&self, path: &Path, setting: &Patterns) -> bool {
        if let Some(verdict) = setting.verdict(path) {
            return verdict;
        }
        let above = path.ancestors().skip(1).take(DEPTH_LIMIT);
        let folders: Vec<_> = above.map(|folder| (folder, self.folder(folder))).collect();
        let by = |rules: fn(&Folder) -> &Rules, folders: &[(&Path, Arc<Folder>)]| {
            folders.iter().find_map(|(folder, read)| {
                rules(read).verdict(path.strip_prefix(folder).unwrap_or(path))
            })
        };
        let root = folders.iter().position(|(_, folder)| folder.is_repository);
        let repository = &folders[..root.map_or(folders.len(), |root| root + 1)];
        by(|folder| &folder.hone, &folders)
            .or_else(|| by(|folder| &folder.git, repository))
            .or_else(|| {
                let (root, _) = folders[root?];
                verdict(&self.global(), path.strip_prefix(root).unwrap_or(path))
            })
            .unwrap_or(false)
    }

    fn global(&self) -> Arc<Gitignore> {
        let known = self.global.lock().clone();
        if let Some((_, rules)) = known.filter(|(read_at, _)| read_at.elapsed() < FRESH) {
            return rules;
        }
        let rules = Arc::new((self.read_global)());
        *self.global.lock() = Some((Instant::now(), rules.clone()));
        rules
    }

    fn folder(&self, path: &Path) -> Arc<Folder> {
        let known = self.folders.lock().get(path).cloned();
        if let Some(known) = known.filter(|known| known.read_at.elapsed() < FRESH) {
            return known;
        }
        let read = Arc::new(Folder::read(path));
        let mut folders = self.folders.lock();
        if folders.len() >= FOLDERS_LIMIT {
            folders.clear();
        }
        folders.insert(path.to_owned(), read.clone());
        read
    }
}

impl Folder {
    fn read(path: &Path) -> Folder {
        let read_at = Instant::now();
        let is_repository = path.join(".git").exists();
        let mut git = vec![path.join(GITIGNORE)];
        if is_repository {
            git.push(git_folder(path).join("info/exclude"));
        }
        Folder {
            read_at,
            hone: read(path, &[path.join(HONEIGNORE)]),
            git: read(path, &git),
            is_repository,
        }
    }
}

/// The folder of a repository with this root. In a worktree and in a submodule `.git` is a file
/// that names a folder, and what all worktrees share lies in another one that `commondir` names.
fn git_folder(root: &Path) -> PathBuf {
    let named = |file: PathBuf, from: &Path, mark: &str| {
        let text = text_of(&file).ok().flatten()?;
        Some(from.join(text.strip_prefix(mark)?.trim()))
    };
    let git = root.join(".git");
    let own = named(git.clone(), root, "gitdir:").unwrap_or(git);
    named(own.join("commondir"), &own, "").unwrap_or(own)
}

/// Reads ignore files. A line that is no pattern is skipped, as git does.
fn read(folder: &Path, files: &[PathBuf]) -> Rules {
    let mut builder = GitignoreBuilder::new(folder);
    let mut found = false;
    for file in files {
        let text = match text_of(file) {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(
                    "{}: {error}; until it can be read, nothing below it is stored",
                    file.display()
                );
                return Rules::Everything;
            }
        };
        found = true;
        for line in text.lines() {
            let _ = builder.add_line(None, line);
        }
    }
    match builder.build() {
        _ if !found => Rules::None,
        Ok(rules) if rules.is_empty() => Rules::None,
        Ok(rules) => Rules::Some(rules),
        Err(_) => Rules::Everything,
    }
}

/// The text of a file; `None` if there is no such file.
fn text_of(path: &Path) -> std::io::Result<Option<String>> {
    let file = match std::fs::File::open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        // The folder belongs to somebody else, so the user has no file in it.
        Err(error)
            if error.kind() == ErrorKind::PermissionDenied
                && path.parent().is_some_and(|folder| folder.read_dir().is_err()) =>
        {
            return Ok(None);
        }
        file => file?,
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = vec![];
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(std::io::Error::other(format!("longer than {FILE_BYTES} bytes")));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Tree {
            let tree = Tree(tempfile::tempdir().unwrap());
            for (path, text) in files {
                tree.write(path, text);
            }
            tree
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn at(&self, path: &str) -> String {
            self.0.path().join(path).to_string_lossy().into_owned()
        }

        fn ignores(&self, path: &str) -> bool {
            IgnoreFiles::default().is_ignored(&self.at(path), &Patterns::none())
        }
    }

    #[test]
    fn what_git_ignores_is_ignored_up_to_its_repository() {
        let tree = Tree::new(&[
            (".gitignore", "*\n"),
            ("repo/.git/info/exclude", "mine.rs\n"),
            ("repo/.gitignore", "/target\n*.log\n!keep.log\n"),
            ("repo/src/.gitignore", "generated.rs\n"),
        ]);
        for path in ["repo/target/a.rs", "repo/a.log", "repo/src/generated.rs", "repo/mine.rs"] {
            assert!(tree.ignores(path), "{path}");
        }
        for path in ["repo/src/a.rs", "repo/keep.log", "repo/generated.rs", "repo/src/target/a.rs"]
        {
            assert!(!tree.ignores(path), "{path}");
        }
        assert!(tree.ignores("other/a.rs"), "outside a repository every .gitignore counts");
    }

    #[test]
    fn a_worktree_and_a_submodule_have_the_rules_of_their_repository() {
        let tree = Tree::new(&[
            ("repo/.git/info/exclude", "mine.rs\n"),
            ("repo/.git/worktrees/tree/commondir", "../..\n"),
            ("repo/.git/modules/part/info/exclude", "theirs.rs\n"),
            ("repo/part/.git", "gitdir: ../.git/modules/part\n"),
        ]);
        tree.write("tree/.git", &format!("gitdir: {}\n", tree.at("repo/.git/worktrees/tree")));
        assert!(tree.ignores("tree/mine.rs") && tree.ignores("repo/part/theirs.rs"));
        assert!(!tree.ignores("tree/theirs.rs") && !tree.ignores("repo/part/mine.rs"));
    }

    #[test]
    fn what_git_ignores_everywhere_is_ignored_in_repositories() {
        let tree = Tree::new(&[("repo/.git/HEAD", ""), ("repo/.gitignore", "!keep.local\n")]);
        let read_global = || {
            let mut rules = GitignoreBuilder::new("");
            rules.add_line(None, "*.local").unwrap();
            rules.build().unwrap()
        };
        let ignored = IgnoreFiles { read_global, ..IgnoreFiles::default() };
        let ignores = |path: &str| ignored.is_ignored(&tree.at(path), &Patterns::none());
        assert!(ignores("repo/src/a.local"));
        assert!(!ignores("repo/keep.local") && !ignores("repo/a.rs"));
        assert!(!ignores("a.local"), "git has no say outside a repository");
    }

    #[test]
    fn honeignore_comes_before_gitignore_and_the_nearest_file_first() {
        let tree = Tree::new(&[
            ("repo/.git/HEAD", ""),
            ("repo/.gitignore", "generated/\n"),
            ("repo/.honeignore", "!generated/\nclients/\n"),
            ("repo/clients/.honeignore", "!open/\n"),
            (".honeignore", "a.rs\n"),
        ]);
        assert!(!tree.ignores("repo/generated/b.rs"));
        assert!(tree.ignores("repo/clients/acme/b.rs"));
        assert!(!tree.ignores("repo/clients/open/b.rs"));
        assert!(tree.ignores("repo/src/a.rs"), "a .honeignore above the repository counts too");
    }

    #[test]
    fn the_setting_comes_before_the_files_but_not_before_credentials() {
        let tree = Tree::new(&[("repo/.honeignore", "lib/\n")]);
        let folder = tree.at("repo");
        let lines = [format!("{folder}/src/"), "*.sql".into(), "!lib/".into(), "!.env".into()];
        let lines = Patterns::compile(&lines).unwrap();
        let ignores = |path: &str| IgnoreFiles::default().is_ignored(&tree.at(path), &lines);
        assert!(ignores("repo/src/a.rs") && ignores("b.sql"));
        assert!(!ignores("repo/lib/a.rs") && !ignores("repo/a.rs"));
        assert!(ignores("repo/.env"), "the setting cannot allow a file with credentials");
    }

    #[test]
    fn links_and_dots_are_resolved() {
        let tree = Tree::new(&[("repo/.env", "A=1\n"), (".honeignore", "/private/\n")]);
        tree.write("private/a.rs", "");
        std::os::unix::fs::symlink(tree.at("repo/.env"), tree.at("repo/notes.txt")).unwrap();
        std::os::unix::fs::symlink(tree.at("private"), tree.at("repo/link")).unwrap();
        assert!(tree.ignores("repo/notes.txt") && tree.ignores("repo/link/a.rs"));
        assert!(tree.ignores("repo/src/../../private/b.rs"));
    }

    #[test]
    fn rules_that_cannot_be_read_ignore_everything() {
        let tree = Tree::new(&[("repo/.honeignore", &"#".repeat(FILE_BYTES as usize + 1))]);
        assert!(tree.ignores("repo/a.rs") && !tree.ignores("a.rs"));
    }

    #[test]
    fn a_document_that_is_no_file_is_ignored_by_its_name_alone() {
        let ignored = IgnoreFiles::default();
        let everything = Patterns::compile(&["*".into()]).unwrap();
        assert!(ignored.is_ignored("untitled:.env", &everything));
        assert!(!ignored.is_ignored("untitled:Untitled-1", &everything));
    }

    #[test]
    fn rules_of_this_machine_say_nothing_about_files_of_another() {
        let tree = Tree::new(&[(".honeignore", "*\n")]);
        let ignored = IgnoreFiles::default();
        let everything = Patterns::compile(&["*".into()]).unwrap();
        let path = tree.at("a.py");
        assert!(ignored.is_ignored(&path, &Patterns::none()));
        for scheme in ["vscode-remote://box", "git:", "file://server", "vscode-vfs://github"] {
            let remote = |path: &str| crate::addresses::name(&format!("{scheme}{path}"));
            assert!(!ignored.is_ignored(&remote(&path), &everything), "{scheme}");
            assert!(ignored.is_ignored(&remote("/home/u/%2Enpmrc"), &Patterns::none()), "{scheme}");
        }
        assert!(ignored.is_ignored("untitled:.npmrc", &Patterns::none()));
    }

    /// Here the disk never answers: `.honeignore` is a pipe that nobody writes to.
    #[cfg(unix)]
    #[test]
    fn a_disk_that_does_not_answer_holds_up_only_those_who_ask_about_its_files() {
        const LONG: Duration = Duration::from_secs(10);
        let tree = Tree::new(&[("hangs/a.rs", ""), ("answers/a.rs", "")]);
        let pipe = tree.at("hangs/.honeignore");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let ignored = Arc::new(IgnoreFiles::default());
        let ask = |path: &str| {
            let (ignored, path) = (ignored.clone(), tree.at(path));
            let (asked, answered) = std::sync::mpsc::channel();
            std::thread::spawn(move || asked.send(ignored.is_ignored(&path, &Patterns::none())));
            answered
        };
        let waiting = ask("hangs/a.rs");
        let early = waiting.recv_timeout(Duration::from_millis(200));
        assert!(early.is_err(), "the disk was not asked");
        let other = ask("answers/a.rs").recv_timeout(LONG);
        // Whoever opens the other end of the pipe lets the reader go.
        std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        assert_eq!(other, Ok(false));
        assert_eq!(waiting.recv_timeout(LONG), Ok(false));
    }

    /// Every completion asks once, and must not read the files of all folders above it each time.
    #[test]
    fn ignore_files_are_cached_for_a_moment() {
        let tree = Tree::new(&[("repo/.honeignore", "a.rs\n")]);
        let ignored = IgnoreFiles::default();
        let ignores = |path: &str| ignored.is_ignored(&tree.at(path), &Patterns::none());
        let were_read_at = |at: Instant| {
            for folder in ignored.folders.lock().values_mut() {
                Arc::get_mut(folder).expect("nobody else has it").read_at = at;
            }
        };
        assert!(ignores("repo/a.rs") && !ignores("repo/b.rs"));
        // However slow this test is, they stay fresh.
        were_read_at(Instant::now() + 100 * FRESH);
        tree.write("repo/.honeignore", "b.rs\n");
        assert!(ignores("repo/a.rs") && !ignores("repo/b.rs"), "no file is read again");
        were_read_at(Instant::now() - FRESH);
        assert!(!ignores("repo/a.rs") && ignores("repo/b.rs"), "the cache must expire");
    }
}
