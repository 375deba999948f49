//! Files of which nothing is stored: those made to hold credentials, those the
//! user's `privacy.ignore` names, and those that a `.honeignore` or `.gitignore`
//! above them does.
//!
//! The first that has something to say decides: a file's own name, then the
//! setting, then `.honeignore` from the file's folder upwards, then `.gitignore`
//! up to the repository's root. The last two, and the setting, know `!` for what
//! is to be stored all the same.

use feedback::secrets::is_sensitive_path;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const HONEIGNORE: &str = ".honeignore";
const GITIGNORE: &str = ".gitignore";

/// What was read of a folder holds this long: a user's change takes effect at
/// once as a person sees it, and a burst of completions reads it once.
const FRESH: Duration = Duration::from_secs(2);

/// Folders whose ignore files are kept; all are read anew beyond that.
const FOLDERS_LIMIT: usize = 1024;

/// Folders above a file that are looked at.
const DEPTH_LIMIT: usize = 64;

/// Longest ignore file, in bytes. Of a longer one nobody knows what it ignores,
/// so it ignores everything.
const FILE_BYTES: u64 = 256 * 1024;

#[derive(Default)]
pub struct Ignored {
    folders: Mutex<HashMap<PathBuf, Arc<Folder>>>,
    /// `privacy.ignore`.
    patterns: Patterns,
}

/// A setting that names files, as it was last read.
#[derive(Default)]
pub struct Patterns {
    known: Mutex<Option<(Vec<String>, Arc<Gitignore>)>>,
}

impl Patterns {
    /// Whether a file is one that `lines`, as [`patterns`] takes them, name.
    pub fn matches(&self, path: &str, lines: &[String]) -> bool {
        let path = Path::new(path);
        // A document that is no file lies in no folder.
        let Some(below_root) = path.is_absolute().then(|| without_dots(path)) else { return false };
        let below_root = below_root.strip_prefix("/").unwrap_or(&below_root);
        verdict(&self.rules(lines), below_root).unwrap_or(false)
    }

    fn rules(&self, lines: &[String]) -> Arc<Gitignore> {
        let mut known = self.known.lock();
        if let Some((_, rules)) = known.as_ref().filter(|(known, _)| known == lines) {
            return rules.clone();
        }
        // The configuration was checked when it was loaded.
        let rules = Arc::new(patterns(lines).unwrap_or_else(|_| Gitignore::empty()));
        *known = Some((lines.to_vec(), rules.clone()));
        rules
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
    /// There are some, and they cannot be read.
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

impl Ignored {
    /// `path` as events are recorded under; `patterns` as [`patterns`] takes them.
    pub fn is_ignored(&self, path: &str, patterns: &[String]) -> bool {
        if is_sensitive_path(path) {
            return true;
        }
        let given = Path::new(path);
        if !given.is_absolute() {
            // A document that is no file lies in no folder.
            return false;
        }
        let given = without_dots(given);
        // `notes.txt` may be a link to `.env`.
        let real = given.canonicalize().ok().filter(|real| *real != given);
        let rules = self.patterns.rules(patterns);
        [Some(given), real]
            .into_iter()
            .flatten()
            .any(|path| is_sensitive_path(&path.to_string_lossy()) || self.by_rules(&path, &rules))
    }

    fn by_rules(&self, path: &Path, user: &Gitignore) -> bool {
        let below_root = path.strip_prefix("/").unwrap_or(path);
        if let Some(verdict) = verdict(user, below_root) {
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
            .unwrap_or(false)
    }

    fn folder(&self, path: &Path) -> Arc<Folder> {
        let mut folders = self.folders.lock();
        if let Some(known) = folders.get(path).filter(|known| known.read_at.elapsed() < FRESH) {
            return known.clone();
        }
        if folders.len() >= FOLDERS_LIMIT {
            folders.clear();
        }
        let is_repository = path.join(".git").exists();
        let mut git = vec![path.join(GITIGNORE)];
        if is_repository {
            git.push(path.join(".git/info/exclude"));
        }
        let read = Arc::new(Folder {
            read_at: Instant::now(),
            hone: read(path, &[path.join(HONEIGNORE)]),
            git: read(path, &git),
            is_repository,
        });
        folders.insert(path.to_owned(), read.clone());
        read
    }
}

/// Patterns of a setting, as a `.gitignore` at the file system's root would
/// have them; `~/` is the user's home.
///
/// # Errors
/// Names the pattern that is none.
pub fn patterns(lines: &[String]) -> Result<Gitignore, String> {
    let mut builder = GitignoreBuilder::new("/");
    builder.allow_unclosed_class(false);
    for line in lines {
        let at_home = line.strip_prefix("~/").zip(std::env::home_dir());
        let line = match at_home {
            Some((rest, home)) => format!("{}/{rest}", home.display()),
            None => line.clone(),
        };
        builder.add_line(None, &line).map_err(|error| format!("{line:?}: {error}"))?;
    }
    builder.build().map_err(|error| error.to_string())
}

/// A line that is no pattern is passed over, as git does.
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

/// `None` if there is no such file.
fn text_of(path: &Path) -> std::io::Result<Option<String>> {
    let file = match std::fs::File::open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        // A folder above the user's own; it is not theirs to put a file in.
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

fn verdict(rules: &Gitignore, below: &Path) -> Option<bool> {
    match rules.matched_path_or_any_parents(below, false) {
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
        Match::None => None,
    }
}

/// Without `.` and `..`, however they got into the editor's URI.
pub fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
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
            Ignored::default().is_ignored(&self.at(path), &[])
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
        assert!(tree.ignores("other/a.rs"), "outside of a repository all of them count");
    }

    #[test]
    fn honeignore_comes_before_gitignore_and_the_nearest_first() {
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
        assert!(tree.ignores("repo/src/a.rs"), "beyond the repository too");
    }

    #[test]
    fn the_setting_comes_before_the_files_and_names_no_credentials_free() {
        let tree = Tree::new(&[("repo/.honeignore", "lib/\n")]);
        let folder = tree.at("repo");
        let lines = [format!("{folder}/src/"), "*.sql".into(), "!lib/".into(), "!.env".into()];
        let ignores = |path: &str| Ignored::default().is_ignored(&tree.at(path), &lines);
        assert!(ignores("repo/src/a.rs") && ignores("b.sql"));
        assert!(!ignores("repo/lib/a.rs") && !ignores("repo/a.rs"));
        assert!(ignores("repo/.env"), "a setting may add, not take away");
        let error = patterns(&["a[".into()]).unwrap_err();
        assert!(error.contains("a["), "{error}");
    }

    #[test]
    fn links_and_dots_lead_to_the_file_itself() {
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
        let ignored = Ignored::default();
        assert!(ignored.is_ignored("untitled:.env", &["*".into()]));
        assert!(!ignored.is_ignored("untitled:Untitled-1", &["*".into()]));
    }

    #[test]
    fn a_setting_names_files_wherever_they_lie() {
        let patterns = Patterns::default();
        let names = |path: &str, lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
            patterns.matches(path, &lines)
        };
        assert!(names("/home/me/notes/todo.md", &["notes/"]));
        assert!(names("/a/./b/../jquery.min.js", &["*.min.js"]));
        assert!(!names("/a/jquery.js", &["*.min.js"]) && !names("/a/jquery.min.js", &[]));
        assert!(!names("/vendor/ours/a.rs", &["/vendor/*", "!/vendor/ours/"]));
        assert!(!names("untitled:Untitled-1", &["*"]), "no file");
    }

    /// One completion asks once; a deep tree must not be felt.
    #[test]
    fn what_was_read_of_a_folder_is_kept_for_a_moment() {
        let tree = Tree::new(&[("repo/.honeignore", "a.rs\n")]);
        let ignored = Ignored::default();
        assert!(ignored.is_ignored(&tree.at("repo/a.rs"), &[]));
        let started = Instant::now();
        const ROUNDS: u32 = 100;
        for _ in 0..ROUNDS {
            assert!(!ignored.is_ignored(&tree.at("repo/b.rs"), &[]));
        }
        let each = started.elapsed() / ROUNDS;
        assert!(each < Duration::from_millis(1), "{each:?}");
        std::fs::remove_file(tree.0.path().join("repo/.honeignore")).unwrap();
        std::thread::sleep(FRESH);
        assert!(!ignored.is_ignored(&tree.at("repo/a.rs"), &[]), "and not for ever");
    }
}
