//! The folder that the simulated developer has open: a working tree of the commit before the one
//! that is typed. All arms see the same one.
//!
//! It is moved from commit to commit by writing only the files that differ. It holds the files as
//! git has them. Symbolic links and submodules are left out, so that nothing is ever written
//! outside the folder, and so are files over [`TREE_FILE_BYTES_MAX`](limits::TREE_FILE_BYTES_MAX),
//! those whose content a partial clone has not fetched, and those whose names are not UTF-8.

use crate::developer::history::{FileChange, History, path_of};
use crate::limits;
use crate::run::interrupt;
use anyhow::{Context, Result, ensure};
use git2::{Delta, Diff, ErrorCode, FileMode, Oid, Repository};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use tempfile::TempDir;

pub struct WorkingTree {
    /// It is removed when this is dropped.
    _parent: TempDir,
    root: PathBuf,
    /// The tree whose files lie in the folder. `None`: no file does.
    tree: Option<Oid>,
    /// The files with their sizes in bytes, and what they take together.
    files: BTreeMap<PathBuf, u64>,
    bytes: u64,
    /// The files that the developer has changed since the folder was moved.
    touched: BTreeSet<PathBuf>,
    limits: TreeLimits,
}

#[derive(Clone, Copy)]
struct TreeLimits {
    files: usize,
    bytes: u64,
}

impl WorkingTree {
    /// An empty folder. It is named like the repository's folder, because a prompt may name it.
    pub fn new(history: &History) -> Result<WorkingTree> {
        let parent = tempfile::Builder::new().prefix("hone-tree-").tempdir();
        let parent = parent.context("cannot create a temporary folder for the working tree")?;
        // An editor names a folder as the system does, without links.
        let root = parent.path().canonicalize().unwrap_or_else(|_| parent.path().to_owned());
        let root = root.join(folder_name(history.repository()));
        fs::create_dir(&root).with_context(|| format!("cannot create {}", root.display()))?;
        Ok(WorkingTree {
            _parent: parent,
            root,
            tree: None,
            files: BTreeMap::new(),
            bytes: 0,
            touched: BTreeSet::new(),
            limits: TreeLimits { files: limits::TREE_FILES_MAX, bytes: limits::TREE_BYTES_MAX },
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folder what the author of this commit began from.
    pub fn move_before(&mut self, history: &History, commit: &str) -> Result<()> {
        let target = history.tree_before(commit)?;
        self.move_to(history, target)
            .with_context(|| format!("cannot write the working tree before commit {commit}"))
    }

    fn move_to(&mut self, history: &History, target: Option<Oid>) -> Result<()> {
        let repository = history.repository();
        let diff = history.diff(self.tree, target, None)?;
        let diff = diff.with_context(|| format!("it is too large to be compared{PASS}"))?;
        let to = target.map(|oid| repository.find_tree(oid)).transpose()?;
        let touched = std::mem::take(&mut self.touched);
        touched.iter().try_for_each(|path| self.remove(path))?;
        self.remove_old(&diff)?;
        for delta in diff.deltas().filter(|delta| delta.status() != Delta::Deleted) {
            interrupt::check()?;
            let file = delta.new_file();
            if let Some(path) = path_of(&file) {
                self.check_out(history, Path::new(path), file.id(), file.mode().into())?;
            }
        }
        for path in touched {
            let entry = to.as_ref().and_then(|tree| tree.get_path(&path).ok());
            if let Some(entry) = entry {
                self.check_out(history, &path, entry.id(), entry.filemode())?;
            }
        }
        self.tree = target;
        Ok(())
    }

    /// Removes the files that are not in the new tree, or that are something else there. A folder
    /// may take the place of a file, so this comes before anything is written.
    fn remove_old(&mut self, diff: &Diff) -> Result<()> {
        for delta in diff.deltas() {
            if let Some(path) = path_of(&delta.old_file())
                && delta.old_file().mode() != delta.new_file().mode()
            {
                self.remove(Path::new(path))?;
            }
        }
        Ok(())
    }

    /// Gives a file the content that it has in a tree of git. `mode` is as git stores it.
    fn check_out(&mut self, history: &History, path: &Path, id: Oid, mode: i32) -> Result<()> {
        let is_file = FILE_MODES.into_iter().any(|file| i32::from(file) == mode);
        if !is_file || !history.may_read(path)? {
            return self.remove(path);
        }
        let repository = history.repository();
        match repository.odb()?.read_header(id) {
            Ok((bytes, _)) if bytes <= limits::TREE_FILE_BYTES_MAX => {
                self.write_file(path, repository.find_blob(id)?.content())
            }
            Err(error) if error.code() != ErrorCode::NotFound => Err(error.into()),
            _ => self.remove(path),
        }
    }

    /// The developer turns to a file that they are about to change. A new one is created, and one
    /// that the commit renames is renamed first.
    pub fn begin_file(&mut self, change: &FileChange) -> Result<()> {
        if let Some(old) = &change.renamed_from {
            self.touched.insert(PathBuf::from(old));
            self.remove(Path::new(old))?;
        }
        self.save(&change.path, &change.before)
    }

    /// The developer saves a file.
    pub fn save(&mut self, path: &str, text: &str) -> Result<()> {
        self.touched.insert(PathBuf::from(path));
        self.write_file(Path::new(path), text.as_bytes())
    }

    fn write_file(&mut self, path: &Path, content: &[u8]) -> Result<()> {
        if !is_safe(path) {
            return Ok(());
        }
        let bytes = content.len() as u64;
        let before = self.files.insert(path.to_owned(), bytes).unwrap_or(0);
        self.bytes = self.bytes - before + bytes;
        let TreeLimits { files: files_max, bytes: bytes_max } = self.limits;
        ensure!(self.files.len() <= files_max, "it has more than {files_max} files{PASS}");
        ensure!(self.bytes <= bytes_max, "it has more than {} MiB{PASS}", bytes_max >> 20);
        let full = self.root.join(path);
        full.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&full, content))
            .with_context(|| format!("cannot write {}", full.display()))
    }

    /// Removes a file, and the folders that are empty without it.
    fn remove(&mut self, path: &Path) -> Result<()> {
        let Some(bytes) = self.files.remove(path) else { return Ok(()) };
        self.bytes -= bytes;
        let full = self.root.join(path);
        match fs::remove_file(&full) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", full.display()));
            }
            _ => {}
        }
        for folder in full.ancestors().skip(1).take_while(|folder| *folder != self.root) {
            // It fails for a folder that still holds files.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// The modes of files that a working tree has.
const FILE_MODES: [FileMode; 3] =
    [FileMode::Blob, FileMode::BlobExecutable, FileMode::BlobGroupWritable];

/// What to do about a tree that is too large.
const PASS: &str = ": pass --no-tree";

/// The names by which git knows the folder of a bare repository, with and without what lies below.
const BARE: &[(&str, bool)] =
    &[("head", false), ("config", false), ("objects", true), ("refs", true)];

/// Returns true if a path leads to a place inside the folder, and does not make the folder a
/// repository. Git refuses some of these, but a repository may be made by something else.
fn is_safe(path: &Path) -> bool {
    let mut parts = vec![];
    for part in path.components() {
        let Component::Normal(name) = part else { return false };
        // Some systems take these for one name.
        let name = name.to_string_lossy().to_lowercase();
        parts.push(name.trim_end_matches(['.', ' ']).to_owned());
    }
    let is_git = |name: &String| name == ".git" || name == "git~1" || name.starts_with(".git:");
    let is_bare = |first: &String| {
        BARE.iter().any(|(name, below)| first == name && (*below || parts.len() == 1))
    };
    !parts.iter().any(is_git) && !parts.first().is_some_and(is_bare)
}

/// The name of the repository's folder, or of a bare repository without its ending.
fn folder_name(repository: &Repository) -> String {
    let folder = repository.workdir().unwrap_or_else(|| repository.path());
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".git").unwrap_or(name);
    if name.is_empty() { "project".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::developer::history::Filter;
    use crate::developer::history::tests::Repo;

    /// The files of a folder with their texts.
    fn files(folder: &Path) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(inside) = folders.pop() {
            for entry in fs::read_dir(&inside).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    let name = entry.path().strip_prefix(folder).unwrap().display().to_string();
                    all.push((name, fs::read_to_string(entry.path()).unwrap_or_default()));
                }
            }
        }
        all.sort();
        all
    }

    fn listed(tree: &WorkingTree) -> Vec<String> {
        files(tree.root()).into_iter().map(|(name, _)| name).collect()
    }

    /// Five commits: a file, a rename among other files, a folder in the place of a file, a file in
    /// the place of a folder, and the last one.
    fn repository() -> (Repo, Vec<String>) {
        let repo = Repo::new();
        let mut commits = Vec::new();
        let mut commit = |repo: &Repo| {
            commits.push(repo.commit("Ada", 1_000 * (commits.len() as i64 + 1), None).to_string());
        };
        repo.write("a.py", "one\ntwo\nthree\nfour\n");
        repo.write("plain", "a file\n");
        commit(&repo);
        fs::remove_file(repo.path("a.py")).unwrap();
        repo.write("lib/b.py", "one\ntwo\nthree\nfour\nfive\n");
        repo.write("large.bin", vec![0; limits::TREE_FILE_BYTES_MAX + 1]);
        repo.write("small.bin", b"\0\x01");
        std::os::unix::fs::symlink("/etc", repo.path("link")).unwrap();
        commit(&repo);
        fs::remove_file(repo.path("plain")).unwrap();
        repo.write("plain/deep/c.py", "c\n");
        fs::remove_file(repo.path("link")).unwrap();
        repo.write("link/passwd", "not the system's\n");
        commit(&repo);
        fs::remove_dir_all(repo.path("plain")).unwrap();
        repo.write("plain", "a file again\n");
        commit(&repo);
        repo.write("lib/b.py", "six\n");
        commit(&repo);
        (repo, commits)
    }

    fn history(repo: &Repo) -> History {
        History::open(&repo.path(""), &Filter::default()).unwrap()
    }

    #[test]
    fn the_folder_is_what_the_author_of_each_commit_began_from() {
        let (repo, commits) = repository();
        let history = history(&repo);
        let mut tree = WorkingTree::new(&history).unwrap();
        let mut before = |commit: usize| {
            tree.move_before(&history, &commits[commit]).unwrap();
            listed(&tree)
        };
        assert_eq!(before(0), [""; 0]);
        assert_eq!(before(1), ["a.py", "plain"]);
        let third = ["lib/b.py", "plain", "small.bin"];
        assert_eq!(before(2), third, "links and large files are left out");
        assert_eq!(before(3), ["lib/b.py", "link/passwd", "plain/deep/c.py", "small.bin"]);
        assert_eq!(before(4), ["lib/b.py", "link/passwd", "plain", "small.bin"]);
        assert_eq!(before(2), third, "it moves back too");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_may_not_be_read_is_left_out() {
        let (repo, commits) = repository();
        let mut history = history(&repo);
        let _hone = crate::developer::readable::tests::without(&mut history, "lib").unwrap();
        let mut tree = WorkingTree::new(&history).unwrap();
        tree.move_before(&history, &commits[2]).unwrap();
        assert_eq!(listed(&tree), ["plain", "small.bin"]);
    }

    /// Not every file system takes such a name, but git does.
    #[test]
    fn a_file_whose_name_is_not_utf8_is_left_out() {
        let (repo, commits) = repository();
        let git = Repository::open(repo.path("")).unwrap();
        let tip = git.head().unwrap().peel_to_commit().unwrap();
        let mut tree = git.treebuilder(Some(&tip.tree().unwrap())).unwrap();
        let blob = git.blob(b"one\ntwo\n").unwrap();
        tree.insert(b"caf\xe9.py".as_slice(), blob, FileMode::Blob.into()).unwrap();
        let tree = git.find_tree(tree.write().unwrap()).unwrap();
        let who = tip.author();
        let odd = git.commit(Some("HEAD"), &who, &who, "x", &tree, &[&tip]).unwrap();
        let odd = git.find_commit(odd).unwrap();
        let next = git.commit(Some("HEAD"), &who, &who, "x", &tree, &[&odd]).unwrap();
        let history = history(&repo);
        let changes: Vec<_> = history.changes().collect::<Result<_>>().unwrap();
        assert!(changes.iter().all(|change| commits.contains(&change.commit)));
        let mut folder = WorkingTree::new(&history).unwrap();
        folder.move_before(&history, &next.to_string()).unwrap();
        assert_eq!(listed(&folder), ["lib/b.py", "link/passwd", "plain", "small.bin"]);
    }

    #[test]
    fn a_file_that_a_partial_clone_has_not_fetched_is_left_out() {
        let (repo, commits) = repository();
        let history = history(&repo);
        let tree = history.tree_before(&commits[3]).unwrap().unwrap();
        let tree = history.repository().find_tree(tree).unwrap();
        let blob = tree.get_path(Path::new("lib/b.py")).unwrap().id().to_string();
        let (folder, name) = blob.split_at(2);
        fs::remove_file(repo.path(".git/objects").join(folder).join(name)).unwrap();
        let mut tree = WorkingTree::new(&history).unwrap();
        tree.move_before(&history, &commits[3]).unwrap();
        assert_eq!(listed(&tree), ["link/passwd", "plain/deep/c.py", "small.bin"]);
    }

    #[test]
    fn what_the_developer_saved_stays_until_the_folder_is_moved() {
        let (repo, commits) = repository();
        let history = history(&repo);
        let mut tree = WorkingTree::new(&history).unwrap();
        tree.move_before(&history, &commits[1]).unwrap();
        let changes: Vec<_> = history.changes().collect::<Result<_>>().unwrap();
        let rename = changes.iter().find(|change| change.renamed_from.is_some()).unwrap();
        tree.begin_file(rename).unwrap();
        assert_eq!(listed(&tree), ["lib/b.py", "plain"], "the old name is gone");
        tree.save("lib/b.py", "half of it\n").unwrap();
        tree.save("plain2/new.py", "").unwrap();
        let saved = ("lib/b.py".to_owned(), "half of it\n".to_owned());
        assert!(files(tree.root()).contains(&saved));
        tree.move_before(&history, &commits[2]).unwrap();
        assert_eq!(listed(&tree), ["lib/b.py", "plain", "small.bin"]);
        let whole = ("lib/b.py".to_owned(), rename.after.clone());
        assert!(files(tree.root()).contains(&whole), "the file is as it was committed");
        tree.move_before(&history, &commits[1]).unwrap();
        assert_eq!(listed(&tree), ["a.py", "plain"]);
    }

    #[test]
    fn the_folder_is_named_like_the_repository_and_vanishes() {
        let (repo, commits) = repository();
        let history = history(&repo);
        let mut tree = WorkingTree::new(&history).unwrap();
        tree.move_before(&history, &commits[4]).unwrap();
        assert_eq!(tree.root().file_name(), repo.path("").canonicalize().unwrap().file_name());
        let parent = tree.root().parent().unwrap().to_owned();
        assert!(parent.exists());
        drop(tree);
        assert!(!parent.exists());
    }

    #[test]
    fn a_tree_that_is_too_large_says_what_to_pass() {
        let (repo, commits) = repository();
        let history = history(&repo);
        let mut tree = WorkingTree::new(&history).unwrap();
        let error = |tree: &mut WorkingTree| {
            format!("{:#}", tree.move_before(&history, &commits[2]).unwrap_err())
        };
        tree.limits.files = 1;
        assert!(error(&mut tree).contains("more than 1 files: pass --no-tree"));
        let mut tree = WorkingTree::new(&history).unwrap();
        tree.limits.bytes = 1;
        assert!(error(&mut tree).contains("MiB: pass --no-tree"));
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        for path in ["../a", "a/../../b", "/etc/passwd", ".git/hooks/x", "a/.GIT/config"] {
            assert!(!is_safe(Path::new(path)), "{path}");
        }
        for path in [".git./config", ".git /config", "GIT~1/config", ".git:x", "a/.git"] {
            assert!(!is_safe(Path::new(path)), "{path}");
        }
        assert!(is_safe(Path::new("a/.github/b.git")));
    }

    /// A folder with these names at its root is a bare repository to git, and its settings name
    /// programs.
    #[test]
    fn no_commit_makes_the_folder_a_repository() {
        for path in ["HEAD", "head", "config", "objects/ab/c", "objects", "refs/heads/main"] {
            assert!(!is_safe(Path::new(path)), "{path}");
        }
        for path in ["config/routes.rb", "src/HEAD", "src/objects/a.rs", "lib/refs/b.rs"] {
            assert!(is_safe(Path::new(path)), "{path}");
        }
    }
}
