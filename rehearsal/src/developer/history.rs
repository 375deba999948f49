//! The real commits of a repository in the order they were made: what was there before, and which
//! lines somebody added. The repository is only read. It may be bare or shallow.

use crate::developer::readable::Readable;
use crate::developer::unpacked::{self, Trees};
use crate::developer::{git_files, language, repository};
use crate::limits;
use anyhow::{Context, Result, anyhow, bail, ensure};
use git2::{
    Commit, Delta, Diff, DiffFile, DiffFindOptions, DiffOptions, ObjectType, Oid, Patch,
    Repository, Sort,
};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Which commits to walk.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Part of the author's name or mail address, in any case.
    pub author: Option<String>,
    /// Older commits are left out. In seconds since the Unix epoch.
    pub since: Option<i64>,
    /// The newest commit, in hex. If it is left out, it is the one that is checked out.
    pub head: Option<String>,
}

impl Filter {
    /// The second at which a day begins in UTC, for `since`.
    pub fn first_second(day: Date) -> Result<i64> {
        let midnight =
            day.to_zoned(TimeZone::UTC).with_context(|| format!("{day}: no such day"))?;
        Ok(midnight.timestamp().as_second())
    }
}

/// A day written as YYYY-MM-DD.
pub fn parse_day(text: &str) -> Result<Date> {
    Date::strptime("%Y-%m-%d", text).map_err(|_| anyhow!("not a date: write YYYY-MM-DD"))
}

/// One file as one commit changed it.
#[derive(Debug, Clone, PartialEq)]
pub struct FileChange {
    pub commit: String,
    pub path: String,
    /// The path before the commit, if the commit renamed the file.
    pub renamed_from: Option<String>,
    /// LSP language id.
    pub language: &'static str,
    pub before: String,
    pub after: String,
    /// In the order of the file.
    pub hunks: Vec<Hunk>,
}

impl FileChange {
    /// Returns true if there is something to type.
    fn adds_code(&self) -> bool {
        let lines = lines(&self.after);
        let added = self.hunks.iter().flat_map(|hunk| &lines[hunk.added.clone()]);
        added.into_iter().any(|line| !line.trim().is_empty())
    }
}

/// Lines `removed` of the old text became lines `added` of the new text. Both count from 0, and
/// either may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    pub removed: Range<usize>,
    pub added: Range<usize>,
}

/// Lines with their endings, as git counts them.
pub fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

pub struct History {
    repository: Repository,
    commits: Vec<Oid>,
    head: Oid,
    trees: Trees,
    /// Which of its files may be read, if not all.
    readable: Option<Readable>,
}

impl History {
    /// Opens a repository, or any folder inside one, and lists its commits that pass the filter,
    /// oldest first. Merges are left out, because nobody typed them.
    pub fn open(path: &Path, filter: &Filter) -> Result<History> {
        let repository = repository::open(path)?;
        let head = newest(&repository, filter).with_context(|| match &filter.head {
            Some(head) => format!("{} has no commit {head}", path.display()),
            None => format!("{} has no commit to read", path.display()),
        })?;
        let commits = select(&repository, head, filter)
            .with_context(|| format!("cannot read the history of {}", path.display()))?;
        if commits.is_empty() {
            bail!("{}: {}", path.display(), nothing_to_read(&repository, filter));
        }
        Ok(History { repository, commits, head, trees: Trees::default(), readable: None })
    }

    /// Leaves out the files that may not be read.
    pub fn keep_to(&mut self, readable: Readable) {
        self.readable = Some(readable);
    }

    /// Returns true if a file may be read, in whichever commit.
    pub fn may_read(&self, path: &Path) -> Result<bool> {
        self.readable.as_ref().map_or(Ok(true), |readable| readable.may_read(path))
    }

    /// The newest commit of the history, in hex.
    pub fn head(&self) -> String {
        self.head.to_string()
    }

    pub fn len(&self) -> usize {
        self.commits.len()
    }

    pub fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// The folder of the files, or of a repository without any. Git writes a slash behind it, which
    /// is left out.
    pub fn root(&self) -> PathBuf {
        let git = &self.repository;
        git.workdir().unwrap_or(git.path()).components().collect()
    }

    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The tree that the author of a commit, named in hex, began from. `None` for a root commit.
    pub fn tree_before(&self, commit: &str) -> Result<Option<Oid>> {
        let tree = || -> Result<Option<Oid>, git2::Error> {
            let commit = self.repository.find_commit(Oid::from_str(commit)?)?;
            match commit.parent_count() {
                0 => Ok(None),
                _ => Ok(Some(commit.parent(0)?.tree_id())),
            }
        };
        tree().with_context(|| format!("cannot read the tree before commit {commit}"))
    }

    /// Compares two trees. `None` if one is so large that the memory may not hold the differences.
    pub fn diff(
        &self,
        from: Option<Oid>,
        to: Option<Oid>,
        options: Option<&mut DiffOptions>,
    ) -> Result<Option<Diff<'_>>> {
        for tree in [from, to].into_iter().flatten() {
            if !self.trees.can_be_walked(&self.repository, tree)? {
                return Ok(None);
            }
        }
        let find = |tree: Option<Oid>| tree.map(|id| self.repository.find_tree(id)).transpose();
        let (from, to) = (find(from)?, find(to)?);
        Ok(Some(self.repository.diff_tree_to_tree(from.as_ref(), to.as_ref(), options)?))
    }

    /// Every file change that is worth typing, commit by commit. Each is computed when it is asked
    /// for.
    pub fn changes(&self) -> impl Iterator<Item = Result<FileChange>> + '_ {
        self.commits().flat_map(|changes| match changes {
            Ok(changes) => {
                let typed = changes.into_iter().filter(FileChange::adds_code);
                typed.map(Ok).collect::<Vec<_>>()
            }
            Err(error) => vec![Err(error)],
        })
    }

    /// The file changes of each commit, also those that only delete. They are computed when they
    /// are asked for.
    pub fn commits(&self) -> impl Iterator<Item = Result<Vec<FileChange>>> + '_ {
        self.commits_from(0)
    }

    /// The same, without so many of the oldest commits.
    pub fn commits_from(&self, older: usize) -> impl Iterator<Item = Result<Vec<FileChange>>> + '_ {
        let changes_of =
            |oid: &Oid| self.changes_of(*oid).with_context(|| format!("cannot read commit {oid}"));
        self.commits[older.min(self.commits.len())..].iter().map(changes_of)
    }

    fn changes_of(&self, oid: Oid) -> Result<Vec<FileChange>> {
        let commit = self.repository.find_commit(oid)?;
        // In the root commit every file is new.
        let parent = match commit.parent_count() {
            0 => None,
            _ => Some(commit.parent(0)?.tree_id()),
        };
        let mut options = DiffOptions::new();
        options.context_lines(0).skip_binary_check(true);
        let diff = self.diff(parent, Some(commit.tree_id()), Some(&mut options))?;
        let Some(mut diff) = diff else { return Ok(Vec::new()) };
        let mut renames = DiffFindOptions::new();
        renames.renames(true);
        // To compare two files that are not the same, both are unpacked.
        renames.exact_match_only(self.are_huge(&diff)?);
        diff.find_similar(Some(&mut renames))?;

        let mut changes = Vec::new();
        for delta in diff.deltas() {
            if matches!(delta.status(), Delta::Deleted | Delta::Conflicted | Delta::Typechange) {
                continue;
            }
            // A new file has its own name as the old one too.
            let names = path_of(&delta.new_file()).zip(path_of(&delta.old_file()));
            let Some((path, old_path)) = names else { continue };
            let Some(language) = language::of_path(path) else { continue };
            let is_renamed = old_path != path;
            if !self.may_read(Path::new(path))?
                || is_renamed && !self.may_read(Path::new(old_path))?
            {
                continue;
            }
            let (Some(before), Some(after)) =
                (self.text(delta.old_file().id())?, self.text(delta.new_file().id())?)
            else {
                continue;
            };
            let hunks = hunks(&before, &after)?;
            let renamed_from = Some(old_path).filter(|_| delta.status() == Delta::Renamed);
            changes.push(FileChange {
                commit: oid.to_string(),
                path: path.to_owned(),
                renamed_from: renamed_from.map(str::to_owned),
                language,
                before,
                after,
                hunks,
            });
        }
        Ok(changes)
    }

    /// Returns true if it takes too much memory to unpack the files that may have been renamed.
    fn are_huge(&self, diff: &Diff) -> Result<bool> {
        let odb = self.repository.odb()?;
        let compared = diff.deltas().filter_map(|delta| match delta.status() {
            Delta::Added => Some(delta.new_file().id()),
            Delta::Deleted => Some(delta.old_file().id()),
            _ => None,
        });
        let sizes = compared.filter_map(|id| odb.read_header(id).ok()).map(|(bytes, _)| bytes);
        Ok(sizes.fold(0, usize::saturating_add) > limits::RENAMES_BYTES_MAX)
    }

    /// The text of a blob. `None` if nobody would type it, because it is binary, not UTF-8, huge or
    /// minified, or has lone `\r` as line endings.
    fn text(&self, id: Oid) -> Result<Option<String>> {
        if id.is_zero() {
            return Ok(Some(String::new()));
        }
        // A few bytes on the disk may be many when they are unpacked. The entry of a submodule
        // names a commit of another repository.
        match self.repository.odb()?.read_header(id) {
            Ok((bytes, ObjectType::Blob)) if bytes <= limits::FILE_BYTES_MAX => {}
            _ => return Ok(None),
        }
        let Ok(blob) = self.repository.find_blob(id) else { return Ok(None) };
        if blob.is_binary() {
            return Ok(None);
        }
        let Ok(text) = std::str::from_utf8(blob.content()) else { return Ok(None) };
        let typed = text.split_inclusive('\n').all(|line| {
            let body = line.strip_suffix('\n').unwrap_or(line);
            let body = body.strip_suffix('\r').unwrap_or(body);
            line.len() <= limits::LINE_BYTES_MAX && !body.contains('\r')
        });
        Ok(typed.then(|| text.to_owned()))
    }
}

/// The commit at which a history ends. It is not unpacked yet.
fn newest(repository: &Repository, filter: &Filter) -> Result<Oid> {
    let id = match &filter.head {
        Some(head) => Oid::from_str(head)?,
        None => repository.head()?.target().context("its HEAD names none")?,
    };
    let (_, kind) = repository.odb()?.read_header(id)?;
    ensure!(kind == ObjectType::Commit, "{id} is a {kind}");
    Ok(id)
}

fn select(repository: &Repository, head: Oid, filter: &Filter) -> Result<Vec<Oid>> {
    // To sort the commits, libgit2 unpacks all of them.
    let wanted = wanted(repository, head, filter)?;
    let mut walk = repository.revwalk()?;
    walk.push(head)?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME | Sort::REVERSE)?;
    let mut commits = Vec::new();
    for oid in walk {
        let oid = oid?;
        if wanted.contains(&oid) {
            commits.push(oid);
        }
    }
    Ok(commits)
}

/// The commits that pass the filter, in no order.
fn wanted(repository: &Repository, head: Oid, filter: &Filter) -> Result<HashSet<Oid>> {
    let boundary = shallow_boundary(repository)?;
    let author = filter.author.as_ref().map(|author| author.to_lowercase());
    let (mut seen, mut waiting) = (HashSet::from([head]), vec![head]);
    let mut wanted = HashSet::new();
    while let Some(oid) = waiting.pop() {
        let commit = unpacked::commit(repository, oid)?;
        waiting.extend(commit.parent_ids().filter(|parent| seen.insert(*parent)));
        let is_wanted = commit.parent_count() <= 1
            && !boundary.contains(&oid)
            && filter.since.is_none_or(|since| commit.time().seconds() >= since)
            && author.as_ref().is_none_or(|part| wrote(&commit, part));
        if is_wanted {
            wanted.insert(oid);
        }
    }
    Ok(wanted)
}

/// Says why no commit of a repository can be read.
fn nothing_to_read(repository: &Repository, filter: &Filter) -> &'static str {
    match (filter.author.is_some() || filter.since.is_some(), repository.is_shallow()) {
        (true, _) => "no commit passes --author and --since (merge commits do not count)",
        (false, true) => {
            "its history is cut off (a shallow clone): `git fetch --unshallow` gets the rest of it"
        }
        (false, false) => "it has only merge commits, which nobody typed",
    }
}

/// The path of a file, if it is UTF-8. `DiffFile::path` panics on Windows if it is not.
pub fn path_of<'d>(file: &DiffFile<'d>) -> Option<&'d str> {
    file.path_bytes().and_then(|path| std::str::from_utf8(path).ok())
}

fn wrote(commit: &Commit, part: &str) -> bool {
    let author = commit.author();
    [author.name_bytes(), author.email_bytes()]
        .iter()
        .any(|bytes| String::from_utf8_lossy(bytes).to_lowercase().contains(part))
}

/// The commits at which a shallow clone was cut. Their parents are missing, so they look as if
/// somebody had typed the whole tree at once.
fn shallow_boundary(repository: &Repository) -> Result<HashSet<Oid>> {
    if !repository.is_shallow() {
        return Ok(HashSet::new());
    }
    let path = repository.commondir().join("shallow");
    let text = git_files::read(&path)
        .with_context(|| format!("cannot read {} of the shallow clone", path.display()))?;
    Ok(text.lines().filter_map(|line| Oid::from_str(line.trim()).ok()).collect())
}

/// The differences of two texts, without context lines.
fn hunks(before: &str, after: &str) -> Result<Vec<Hunk>> {
    let mut options = DiffOptions::new();
    options.context_lines(0).interhunk_lines(0);
    let patch =
        Patch::from_buffers(before.as_bytes(), None, after.as_bytes(), None, Some(&mut options))?;
    (0..patch.num_hunks())
        .map(|index| {
            let (hunk, _) = patch.hunk(index)?;
            Ok(Hunk {
                removed: span(hunk.old_start(), hunk.old_lines()),
                added: span(hunk.new_start(), hunk.new_lines()),
            })
        })
        .collect()
}

/// Git counts lines from 1. For an empty side it names the line *before* it.
fn span(start: u32, lines: u32) -> Range<usize> {
    let start = if lines == 0 { start } else { start.saturating_sub(1) } as usize;
    start..start + lines as usize
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use git2::{FileMode, Signature, Time};
    use std::fs;
    use tempfile::TempDir;

    pub struct Repo {
        folder: TempDir,
        git: Repository,
    }

    impl Repo {
        pub fn new() -> Repo {
            let folder = TempDir::new().unwrap();
            let git = Repository::init(folder.path()).unwrap();
            Repo { folder, git }
        }

        /// Commits the whole work tree as `author` at second `time`.
        pub fn commit(&self, author: &str, time: i64, extra_parent: Option<Oid>) -> Oid {
            let mut index = self.git.index().unwrap();
            index.add_all(["*"], git2::IndexAddOption::FORCE, None).unwrap();
            index.update_all(["*"], None).unwrap();
            let tree = self.git.find_tree(index.write_tree().unwrap()).unwrap();
            let mail = format!("{}@example.org", author.to_lowercase());
            let who = Signature::new(author, &mail, &Time::new(time, 0)).unwrap();
            let head = self.git.head().ok().map(|head| head.target().unwrap());
            let parents: Vec<_> = head
                .into_iter()
                .chain(extra_parent)
                .map(|oid| self.git.find_commit(oid).unwrap())
                .collect();
            let parents: Vec<_> = parents.iter().collect();
            self.git.commit(Some("HEAD"), &who, &who, "x", &tree, &parents).unwrap()
        }

        pub fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        fn changes(&self, filter: &Filter) -> Vec<FileChange> {
            let history = History::open(self.folder.path(), filter).unwrap();
            history.changes().collect::<Result<_>>().unwrap()
        }
    }

    /// Six commits of two authors: root, edit, rename with edit, binary and
    /// foreign files, a merge, an edit.
    fn repository() -> Repo {
        let repo = Repo::new();
        repo.write("a.py", "one\ntwo\nthree\n");
        let root = repo.commit("Ada", 1_000, None);
        repo.write("a.py", "one\n2\n2b\nthree\nfour");
        repo.commit("Grace", 2_000, None);
        fs::remove_file(repo.path("a.py")).unwrap();
        repo.write("lib/b.py", "one\n2\n2b\nthree\nfour\nfive\n");
        repo.commit("Ada", 3_000, None);
        repo.write("blob.py", b"\0\x01binary");
        repo.write("latin.py", b"caf\xe9\n");
        repo.write("vendor/c.py", "import this\n");
        repo.write("wide.js", "x".repeat(limits::LINE_BYTES_MAX + 1));
        repo.write("old.c", "int a;\rint b;\r");
        repo.write("data.json", "{}\n");
        repo.commit("Ada", 4_000, None);
        repo.write("lib/b.py", "merged\n");
        repo.commit("Ada", 5_000, Some(root));
        repo.write("lib/b.py", "merged\nand on\n");
        repo.commit("Grace", 6_000, None);
        repo
    }

    #[test]
    fn changes_come_in_time_order_with_merges_and_untypable_files_left_out() {
        let changes = repository().changes(&Filter::default());
        let seen: Vec<_> =
            changes.iter().map(|c| (c.path.as_str(), c.before.len(), c.after.len())).collect();
        assert_eq!(
            seen,
            [("a.py", 0, 14), ("a.py", 14, 19), ("lib/b.py", 19, 25), ("lib/b.py", 7, 14)]
        );
        assert!(changes.iter().all(|change| change.language == "python"));
        let renamed: Vec<_> = changes.iter().map(|c| c.renamed_from.as_deref()).collect();
        assert_eq!(renamed, [None, None, Some("a.py"), None]);
    }

    /// What takes no room on the disk is a gigabyte once it is unpacked. Here the header alone says
    /// so: whoever unpacks the content, which is not there, gets an error.
    #[test]
    fn what_is_huge_is_left_out_before_it_is_unpacked() {
        let repo = Repo::new();
        repo.write("a.py", "one\ntwo\nthree\n");
        repo.write("other/a.py", "one\ntwo\nthree\n");
        repo.commit("Ada", 1_000, None);
        let huge = vec![b'\n'; limits::RENAMES_BYTES_MAX];
        fs::remove_file(repo.path("a.py")).unwrap();
        repo.write("b.py", "one\ntwo\nthree\nfour\n");
        repo.write("huge.py", &huge);
        repo.commit("Ada", 2_000, None);
        let id = Oid::hash_object(ObjectType::Blob, &huge).unwrap().to_string();
        let object = repo.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
        let packed = fs::read(&object).unwrap();
        fs::remove_file(&object).unwrap();
        fs::write(&object, &packed[..packed.len() / 2]).unwrap();
        let changes = repo.changes(&Filter::default());
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["a.py", "other/a.py", "b.py"]);
    }

    /// Thirteen trees, each of which names the next one ten times, are 10^13 files.
    #[test]
    fn a_commit_of_trees_that_name_each_other_is_left_out() {
        let repo = Repo::new();
        repo.write("a.py", "one\n");
        repo.commit("Ada", 1_000, None);
        let root = repo.git.head().unwrap().peel_to_commit().unwrap();
        let folder = i32::from(FileMode::Tree);
        let mut inner = root.tree_id();
        for _ in 0..12 {
            let mut tree = repo.git.treebuilder(None).unwrap();
            for name in 0..10 {
                tree.insert(name.to_string(), inner, folder).unwrap();
            }
            inner = tree.write().unwrap();
        }
        let mut tree = repo.git.treebuilder(Some(&root.tree().unwrap())).unwrap();
        tree.insert("bomb", inner, folder).unwrap();
        let tree = repo.git.find_tree(tree.write().unwrap()).unwrap();
        let who = Signature::new("Ada", "ada@example.org", &Time::new(2_000, 0)).unwrap();
        repo.git.commit(Some("HEAD"), &who, &who, "x", &tree, &[&root]).unwrap();
        repo.write("b.py", "two\n");
        repo.commit("Ada", 3_000, None);
        repo.write("c.py", "three\n");
        repo.commit("Ada", 4_000, None);
        let changes = repo.changes(&Filter::default());
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["a.py", "c.py"], "what is compared with it is left out too");
        let history = History::open(repo.folder.path(), &Filter::default()).unwrap();
        assert!(history.diff(Some(tree.id()), Some(tree.id()), None).unwrap().is_none());
    }

    #[test]
    fn a_commit_that_is_huge_when_it_is_unpacked_is_refused() {
        let repo = repository();
        let tree = repo.git.head().unwrap().peel_to_tree().unwrap().id();
        let who = "Ada <ada@example.org> 1000 +0000";
        let commit = |parent: &str, message: &str| {
            let text = format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}\n");
            repo.git.odb().unwrap().write(ObjectType::Commit, text.as_bytes()).unwrap()
        };
        let huge = commit("", &"a".repeat(limits::COMMIT_BYTES_MAX));
        let child = commit(&format!("parent {huge}\n"), "x");
        for head in [huge, child] {
            let filter = Filter { head: Some(head.to_string()), ..Filter::default() };
            let error = History::open(repo.folder.path(), &filter).err().unwrap();
            let error = format!("{error:#}");
            assert!(error.contains(&format!("commit {huge} takes more than 16 MiB")), "{error}");
        }
    }

    #[test]
    fn the_root_commit_is_typed_from_nothing() {
        let root = &repository().changes(&Filter::default())[0];
        assert_eq!(root.before, "");
        assert_eq!(root.hunks, [Hunk { removed: 0..0, added: 0..3 }]);
    }

    #[test]
    fn authors_match_by_part_of_name_or_mail_and_dates_by_second() {
        let repo = repository();
        let by = |author: &str| Filter { author: Some(author.to_owned()), ..Filter::default() };
        assert_eq!(repo.changes(&by("GRACE")).len(), 2);
        assert_eq!(repo.changes(&by("ada@")).len(), 2);
        let since = Filter { since: Some(3_000), ..Filter::default() };
        assert_eq!(repo.changes(&since).len(), 2);
        let error = History::open(repo.folder.path(), &by("nobody")).err().unwrap();
        assert!(error.to_string().contains("--author"), "{error}");
    }

    #[test]
    fn a_day_begins_at_midnight_utc() {
        let second = |text| parse_day(text).and_then(Filter::first_second);
        assert_eq!(second("1970-01-02").unwrap(), 86_400);
        assert_eq!(second("2025-03-01").unwrap(), 1_740_787_200);
        for wrong in ["2025-02-30", "01.03.2025", "2025-03-01T10:00", ""] {
            assert!(second(wrong).unwrap_err().to_string().contains("YYYY-MM-DD"), "{wrong}");
        }
    }

    #[test]
    fn hunks_turn_the_old_text_into_the_new_one() {
        for change in repository().changes(&Filter::default()) {
            let (old, new) = (lines(&change.before), lines(&change.after));
            let mut rebuilt = String::new();
            let mut at = 0;
            for hunk in &change.hunks {
                rebuilt.extend(old[at..hunk.removed.start].iter().copied());
                rebuilt.extend(new[hunk.added.clone()].iter().copied());
                at = hunk.removed.end;
            }
            rebuilt.extend(old[at..].iter().copied());
            assert_eq!(rebuilt, change.after, "{}", change.path);
        }
    }

    #[test]
    fn a_folder_without_a_repository_or_commit_says_what_to_pass() {
        let empty = Repo::new();
        let error = History::open(empty.folder.path(), &Filter::default()).err().unwrap();
        assert!(error.to_string().contains("no commit"), "{error}");
        let none = TempDir::new().unwrap();
        let error = History::open(none.path(), &Filter::default()).err().unwrap();
        assert!(error.to_string().contains("name a folder that is"), "{error}");
    }

    #[test]
    fn a_shallow_clone_leaves_out_the_commits_it_was_cut_at() {
        let repo = repository();
        let cut = {
            let history = History::open(repo.folder.path(), &Filter::default()).unwrap();
            history.commits[2]
        };
        repo.write(".git/shallow", format!("{cut}\n"));
        let paths: Vec<_> =
            repo.changes(&Filter::default()).into_iter().map(|c| c.after.len()).collect();
        // Of the first four commits only those after the cut are left.
        assert!(!paths.contains(&25), "{paths:?}");
        assert_eq!(paths.last(), Some(&14));
    }
}
