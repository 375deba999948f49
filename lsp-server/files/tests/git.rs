//! Random trees with random ignore files and settings of git, held against `git check-ignore`: what
//! is ignored here is exactly what git ignores. The seed is fixed; `SEED` and `TREES` try others.

use files::ignored::{IgnoreRules, User};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TREES: u64 = 150;

const FOLDERS: &[&str] = &["", "a", "b", "build", "a/b", "build/out", "a/build", "a/b/c", "A"];
const NAMES: &[&str] = &[
    "x.py", "y.py", "keep.py", "X.PY", "a b.py", "#x.py", "!x.py", "x.py ", "[a].py", "é.py", "x",
    "$x.py", "x]y", "-.py", "^x", "\\x",
];

/// Parts of patterns, each form of gitignore(5) among them, and some that are none. A range in the
/// wrong order is left out: where the case is ignored, gix-glob takes it for the right one, and
/// more is ignored than by git.
const PARTS: &[&str] = &[
    "a",
    "b",
    "build",
    "out",
    "x",
    "y",
    "keep",
    ".py",
    "A",
    "BUILD",
    "é",
    "*",
    "*",
    "**",
    "?",
    "/",
    "/",
    "[xy]",
    "[!x]",
    "[^x]",
    "[a-y]",
    "[]x]",
    "[x",
    "[[:alpha:]]",
    "[[:upper:]]",
    "[[:nope:]]",
    "[\\]x]",
    "[-x]",
    "[x-]",
    "[!-~]",
    "\\x",
    "\\*",
    "\\ ",
    "\\",
    "#",
    "!",
    " ",
    "\t",
    "-",
    "$",
    "]",
    "^",
    "**/",
    "/**",
    "/**/",
    "[/]",
    "{a,b}",
];

/// Whole patterns that people write.
const LINES: &[&str] = &[
    "build/",
    "build",
    "/build/",
    "a/",
    "/a/*",
    "*.py",
    "x.*",
    "!x.py",
    "!*.py",
    "!build/",
    "!a/b/",
    "a/**",
    "**/b",
    "!keep.py",
    "!/a/b/keep.py",
    "b/*",
    "build/*",
    "!build/out/",
    "*",
    "!*/",
    "[xy].py",
    "\\!x.py",
    "\\#x.py",
    "#x.py",
    "x.py ",
    "x.py\\ ",
    "x.py  ",
    "a/b/",
    "a/**/x.py",
    "**/",
    "/",
    "//",
    "!",
    "",
    "  ",
    "/*",
    "!/a",
    "**",
    "a//b",
    "./x.py",
    "X.py",
    "BUILD/",
    "\u{feff}x.py",
    "/x.py/",
    "!!x.py",
    "\\",
];

fn line(random: &mut StdRng) -> String {
    if random.random_bool(0.5) {
        return LINES.choose(random).unwrap().to_string();
    }
    let count = random.random_range(1..=5);
    let parts: String = (0..count).map(|_| *PARTS.choose(random).unwrap()).collect();
    let mark = if random.random_bool(0.2) { "!" } else { "" };
    let end = *["", "", "", "/", " ", "\t"].choose(random).unwrap();
    format!("{mark}{parts}{end}")
}

fn ignore_file(random: &mut StdRng) -> Vec<u8> {
    let end = *["\n", "\n", "\r\n"].choose(random).unwrap();
    let count = random.random_range(1..=4);
    let lines: Vec<String> = (0..count).map(|_| line(random)).collect();
    let mut content = lines.join(end);
    content += *[end, "", "\r"].choose(random).unwrap();
    if random.random_bool(0.15) {
        content.insert(0, '\u{feff}');
    }
    content.into_bytes()
}

/// Ways to write a setting of git.
fn setting(random: &mut StdRng, key: &str, value: &str) -> String {
    let quoted = format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
    let value =
        if random.random_bool(0.4) || value.contains([' ', '#', ';']) { &quoted } else { value };
    let comment = *["", "", " ; a comment", " # a comment", "\t"].choose(random).unwrap();
    let (section, name) = key.rsplit_once('.').unwrap();
    let name = if random.random_bool(0.3) { name.to_uppercase() } else { name.to_owned() };
    let head = match section.split_once('.') {
        Some((section, sub)) => format!("[{section} \"{sub}\"]"),
        None if random.random_bool(0.3) => format!("[{}]", section.to_uppercase()),
        None => format!("[{section}]"),
    };
    let between = *["\n\t", "\n", " ", "\r\n"].choose(random).unwrap();
    let equals = *[" = ", "=", " =\t", "= \\\n  "].choose(random).unwrap();
    format!("{head}{between}{name}{equals}{value}{comment}\n")
}

/// What `HEAD` may hold, and whether git takes its folder for a repository.
const HEADS: &[(&str, bool)] = &[
    ("ref: refs/heads/main\n", true),
    ("ref:refs/x", true),
    ("0123456789abcdef0123456789abcdef01234567\n", true),
    ("", false),
    ("garbage\n", false),
    ("ref: heads/x\n", false),
    ("0123456789abcdef\n", false),
];

/// A folder of the repository that holds a `.git`, and whether that is a repository to git.
#[derive(Debug, Clone, Copy)]
struct Inner {
    folder: &'static str,
    is_repository: bool,
}

struct Tree {
    inner: Option<Inner>,
    place: tempfile::TempDir,
    env: HashMap<&'static str, OsString>,
}

impl Tree {
    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap()
            .write_all(content.as_ref())
            .unwrap();
    }

    fn new() -> Tree {
        let place = tempfile::tempdir().unwrap();
        let mut tree = Tree { inner: None, place, env: HashMap::new() };
        let home = tree.root().join("home");
        tree.env.insert("HOME", home.into());
        tree.env.insert("GIT_CONFIG_NOSYSTEM", "1".into());
        tree.write("home/none", "");
        tree.init("repo/.git");
        tree
    }

    fn root(&self) -> PathBuf {
        self.place.path().canonicalize().unwrap()
    }

    /// Makes a folder one in which git keeps a repository.
    fn init(&self, git: &str) {
        for folder in ["objects", "refs"] {
            fs::create_dir_all(self.root().join(git).join(folder)).unwrap();
        }
        self.write(&format!("{git}/HEAD"), "ref: refs/heads/topic/one\n");
        let config = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";
        self.write(&format!("{git}/config"), config);
    }

    fn random(random: &mut StdRng) -> Tree {
        let mut tree = Tree::new();
        let root = tree.root();
        for folder in FOLDERS.choose_multiple(random, 2) {
            tree.write(&format!("repo/{folder}/.gitignore"), ignore_file(random));
        }
        if random.random_bool(0.3) {
            tree.write("repo/.git/info/exclude", ignore_file(random));
        }
        if random.random_bool(0.7) {
            tree.choose_excludes(random, &root);
        }
        if random.random_bool(0.3) {
            let value = *["true", "yes", "on", "1", "false", "no", "0", "TRUE", "2", ""]
                .choose(random)
                .unwrap();
            let file = *["repo/.git/config", "home/.gitconfig"].choose(random).unwrap();
            tree.write(file, setting(random, "core.ignoreCase", value));
        } else if random.random_bool(0.1) {
            tree.write("repo/.git/config", "[core]\n\tignorecase\n");
        }
        if random.random_bool(0.3) {
            let folder = FOLDERS[1..].choose(random).unwrap();
            let (head, is_repository) = *HEADS.choose(random).unwrap();
            for part in ["objects", "refs"] {
                fs::create_dir_all(root.join("repo").join(folder).join(".git").join(part)).unwrap();
            }
            tree.write(&format!("repo/{folder}/.git/HEAD"), head);
            tree.inner = Some(Inner { folder, is_repository });
        }
        tree
    }

    /// Returns the folder in which git is asked about a file: the innermost with a `.git`.
    fn asked_in(&self, file: &str) -> &'static str {
        let inner = self.inner.map(|inner| inner.folder);
        inner.filter(|inner| Path::new(file).starts_with(inner)).unwrap_or("")
    }

    /// Returns true if what is ignored here must be exactly what git ignores. Rules that lie in a
    /// `.git` which is none to git, or that are anchored there, may ignore more.
    fn is_exact(&self, file: &str) -> bool {
        self.inner.is_none_or(|inner| inner.is_repository || self.asked_in(file).is_empty())
    }

    /// Writes the setting that names a file of rules, in one of its forms.
    fn choose_excludes(&mut self, random: &mut StdRng, root: &Path) {
        let root = root.to_str().unwrap();
        let (value, file) = match random.random_range(0..7) {
            0 => (format!("{root}/home/mine"), "home/mine"),
            1 => ("~/mine".into(), "home/mine"),
            2 => ("~/my rules".into(), "home/my rules"),
            3 => ("rules".into(), "repo/rules"),
            4 => ("~/mi;ne".into(), "home/mi;ne"),
            5 => ("".into(), "home/.config/git/ignore"),
            _ => {
                self.write("home/.config/git/ignore", ignore_file(random));
                return;
            }
        };
        self.write(file, ignore_file(random));
        let named = setting(random, "core.excludesFile", &value);
        if random.random_bool(0.2) {
            self.write("home/.gitconfig", setting(random, "core.excludesfile", "~/other"));
            self.write("home/other", ignore_file(random));
        }
        let to =
            *["home/.gitconfig", "home/.config/git/config", "repo/.git/config", "elsewhere/global"]
                .choose(random)
                .unwrap();
        if to.starts_with("elsewhere") {
            self.env.insert("GIT_CONFIG_GLOBAL", format!("{root}/{to}").into());
        }
        if random.random_bool(0.5) {
            self.write(to, named);
            return;
        }
        let include = if random.random_bool(0.3) {
            "include.path".to_owned()
        } else {
            self.condition(random, root)
        };
        let path = *["more.cfg", "sub/more.cfg", "~/more.cfg"].choose(random).unwrap();
        let folder = if path.starts_with('~') { "home" } else { to.rsplit_once('/').unwrap().0 };
        self.write(to, setting(random, &include, path));
        self.write(&format!("{folder}/{}", path.trim_start_matches("~/")), named);
    }

    fn condition(&self, random: &mut StdRng, root: &str) -> String {
        let conditions = [
            format!("gitdir:{root}/repo/"),
            format!("gitdir:{root}/repo/.git"),
            format!("gitdir/i:{root}/REPO/.git"),
            format!("gitdir:{root}/REPO/.git"),
            "gitdir:repo/".into(),
            "gitdir:repo/.git".into(),
            "gitdir:**/re?o/**".into(),
            "gitdir:~/repo/".into(),
            "gitdir:./".into(),
            "gitdir:../".into(),
            "onbranch:topic/".into(),
            "onbranch:topic/one".into(),
            "onbranch:topic/two".into(),
            "onbranch:**/one".into(),
            "hasconfig:remote.*.url:https://example.org/**".into(),
            "hasconfig:remote.*.url:https://example.com/**".into(),
            "nothing:here".into(),
        ];
        if random.random_bool(0.5) {
            self.write("repo/.git/config", "[remote \"o\"]\n\turl = https://example.org/a/b\n");
        }
        format!("includeIf.{}.path", conditions.choose(random).unwrap())
    }

    /// Returns what git ignores, or nothing if it refuses to work.
    fn by_git(&self, files: &[String]) -> Option<Vec<String>> {
        let mut ignored = vec![];
        for folder in std::iter::once("").chain(self.inner.map(|inner| inner.folder)) {
            let below = files.iter().filter(|file| self.asked_in(file) == folder);
            let names: Vec<&str> = below
                .map(|file| file.strip_prefix(folder).unwrap().trim_start_matches('/'))
                .collect();
            let found = self.by_git_in(folder, &names)?;
            ignored.extend(
                found
                    .iter()
                    .map(|name| format!("{folder}/{name}").trim_start_matches('/').to_owned()),
            );
        }
        Some(ignored)
    }

    fn by_git_in(&self, folder: &str, files: &[&str]) -> Option<Vec<String>> {
        let mut git = Command::new("git");
        git.env_clear().envs(&self.env).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        git.args(["check-ignore", "--no-index", "-z", "--stdin"])
            .current_dir(self.place.path().join("repo").join(folder));
        let pipes = git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pipes.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // Git may end before it has read everything.
        let _ = input.write_all(files.join("\0").as_bytes());
        drop(input);
        let output = child.wait_with_output().unwrap();
        let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        matches!(output.status.code(), Some(0 | 1))
            .then(|| names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    fn show(&self) -> String {
        let mut shown = format!("{:?} {:?}\n", self.env, self.inner);
        let mut folders = vec![self.place.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    let content =
                        String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
                    shown += &format!("{}: {content:?}\n", entry.path().display());
                }
            }
        }
        shown
    }
}

fn has_git() -> bool {
    let has_git =
        Command::new("git").arg("--version").output().is_ok_and(|git| git.status.success());
    if !has_git {
        eprintln!("git is not installed, so what it ignores is not compared");
    }
    has_git
}

/// Asserts what git ignores of the files in a folder of the repository, and that Hone does too.
#[cfg(unix)]
fn assert_ignored(tree: &Tree, folder: &str, files: &[(&str, bool)]) {
    let rules = IgnoreRules::of(User::of(|name| tree.env.get(name).cloned(), vec![]));
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let by_git = tree.by_git_in(folder, &names).expect("git works there");
    for (name, is_ignored) in files {
        assert_eq!(by_git.iter().any(|ignored| ignored == name), *is_ignored, "git: {name}");
        let file = tree.root().join("repo").join(folder).join(name);
        assert_eq!(rules.is_ignored(&file), *is_ignored, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_that_names_the_repository_is_followed() {
    if !has_git() {
        return;
    }
    for link in ["../../elsewhere/gitfile", "../link"] {
        let tree = Tree::new();
        tree.init("real");
        tree.write("real/info/exclude", "private*\n");
        // What the file names is relative to the folder with the link.
        tree.write("elsewhere/gitfile", "gitdir: ../../real\n");
        tree.write("repo/sub/a.py", "");
        let at = |path: &str| tree.root().join(path);
        std::os::unix::fs::symlink("../elsewhere/gitfile", at("repo/link")).unwrap();
        std::os::unix::fs::symlink(link, at("repo/sub/.git")).unwrap();
        assert_ignored(&tree, "sub", &[("private.py", true), ("a.py", false)]);
    }
}

#[cfg(unix)]
#[test]
fn the_files_of_a_repository_may_begin_above_it() {
    if !has_git() {
        return;
    }
    for (worktree, is_above) in [("../..", true), ("..", false), ("{root}/repo", true)] {
        let tree = Tree::new();
        fs::remove_dir_all(tree.root().join("repo")).unwrap();
        tree.init("repo/sub/.git");
        let root = tree.root();
        let worktree = worktree.replace("{root}", root.to_str().unwrap());
        tree.write("repo/sub/.git/config", format!("\tworktree = {worktree}\n"));
        tree.write("repo/.gitignore", "private.py\n");
        tree.write("repo/sub/.git/info/exclude", "/sub/x.py\n/y.py\n");
        tree.write("repo/mine", "/sub/z.py\n");
        tree.write("repo/sub/mine", "/z.py\n");
        tree.write("repo/sub/deep/a.py", "");
        tree.write("home/.gitconfig", "[core]\n\texcludesFile = mine\n");
        let files =
            [("private.py", is_above), ("x.py", is_above), ("y.py", !is_above), ("z.py", true)];
        assert_ignored(&tree, "sub", &files);
        assert_ignored(&tree, "sub/deep", &[("private.py", is_above), ("a.py", false)]);
    }
}

#[test]
fn what_is_ignored_is_what_git_ignores() {
    if !has_git() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = number("SEED").unwrap_or(1);
    let files: Vec<String> = FOLDERS
        .iter()
        .flat_map(|folder| NAMES.iter().map(move |name| format!("{folder}/{name}")))
        .map(|path| path.trim_start_matches('/').to_owned())
        .collect();
    let mut problems = vec![];
    for tree in 0..number("TREES").unwrap_or(TREES) {
        let random = &mut StdRng::seed_from_u64(seed * 1_000_000 + tree);
        let tree = Tree::random(random);
        let root = tree.place.path().canonicalize().unwrap();
        let rules = IgnoreRules::of(User::of(|name| tree.env.get(name).cloned(), vec![]));
        let by_git = tree.by_git(&files);
        let differ = files.iter().filter(|file| {
            let expected = by_git.as_ref().is_none_or(|ignored| ignored.contains(file));
            let is_ignored = rules.is_ignored(&root.join("repo").join(file));
            is_ignored != expected && (expected || tree.is_exact(file))
        });
        let differ: Vec<&String> = differ.collect();
        if !differ.is_empty() {
            let git = if by_git.is_none() { "git refuses" } else { "git differs" };
            problems.push(format!("{git} about {differ:?}\n{}", tree.show()));
        }
    }
    assert!(problems.is_empty(), "{} trees differ:\n{}", problems.len(), problems.join("\n"));
}
