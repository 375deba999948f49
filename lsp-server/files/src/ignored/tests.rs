use super::*;
use std::fs;
use std::path::PathBuf;

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
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes a folder the root of a repository.
    fn init(&self, root: &str) {
        self.write(&format!("{root}/.git/HEAD"), "ref: refs/heads/main\n");
        for folder in ["objects", "refs"] {
            fs::create_dir_all(self.at(root).join(".git").join(folder)).unwrap();
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn rules(&self) -> IgnoreRules {
        let home = self.at("home");
        IgnoreRules::of(User {
            files: vec![home.join(".gitconfig")],
            default_excludes: Some(home.join(".config/git/ignore")),
            home: Some(home),
            given: vec![],
        })
    }

    fn ignores(&self, path: &str) -> bool {
        self.rules().is_ignored(&self.at(path))
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
    tree.init("repo");
    for path in ["repo/target/a.rs", "repo/a.log", "repo/src/generated.rs", "repo/mine.rs"] {
        assert!(tree.ignores(path), "{path}");
    }
    for path in ["repo/src/a.rs", "repo/keep.log", "repo/generated.rs", "repo/src/target/a.rs"] {
        assert!(!tree.ignores(path), "{path}");
    }
    assert!(tree.ignores("other/a.rs"), "outside a repository every .gitignore counts");
}

/// Git looks for a repository further up, so the rules of that one count too.
#[test]
fn a_folder_that_is_no_repository_to_git_hides_no_rules() {
    let tree = Tree::new(&[
        ("repo/.gitignore", "private.py\n"),
        ("repo/sub/.git/info/exclude", "mine.py\n"),
        ("repo/sub/.gitignore", "!private.py\n"),
    ]);
    tree.init("repo");
    assert!(tree.ignores("repo/sub/mine.py"));
    assert!(!tree.ignores("repo/sub/private.py"), "git has it so");
    tree.write("repo/deep/.git/config", "");
    assert!(tree.ignores("repo/deep/private.py"));
    tree.init("repo/inner");
    let commit = "0123456789abcdef0123456789ABCDEF01234567";
    for (head, is_repository) in [
        ("ref: refs/heads/main\n", true),
        ("ref:\t refs/x", true),
        (commit, true),
        (&format!("{commit}{}\n", &commit[..24]), true),
        ("", false),
        ("garbage\n", false),
        ("ref: heads/x\n", false),
        (" ref: refs/heads/main\n", false),
        (&commit[1..], false),
    ] {
        tree.write("repo/inner/.git/HEAD", head);
        assert_eq!(tree.ignores("repo/inner/private.py"), !is_repository, "{head:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_head_that_is_a_link_is_one_of_git_only_into_its_refs() {
    for (target, is_repository) in [("refs/heads/main", true), ("../HEAD", false)] {
        let tree = Tree::new(&[("repo/.gitignore", "private.py\n")]);
        tree.init("repo");
        tree.init("repo/inner");
        tree.write("repo/inner/HEAD", "ref: refs/heads/main\n");
        fs::remove_file(tree.at("repo/inner/.git/HEAD")).unwrap();
        std::os::unix::fs::symlink(target, tree.at("repo/inner/.git/HEAD")).unwrap();
        assert_eq!(tree.ignores("repo/inner/private.py"), !is_repository, "{target}");
    }
}

#[test]
fn a_worktree_and_a_submodule_have_the_rules_of_their_repository() {
    let tree = Tree::new(&[
        ("repo/.git/info/exclude", "mine.rs\n"),
        ("repo/.git/worktrees/tree/commondir", "../..\n"),
        ("repo/.git/worktrees/tree/HEAD", "ref: refs/heads/tree\n"),
        ("repo/.git/modules/part/info/exclude", "theirs.rs\n"),
        ("repo/.git/modules/part/HEAD", "ref: refs/heads/main\n"),
        ("repo/.git/modules/part/objects/none", ""),
        ("repo/.git/modules/part/refs/none", ""),
        ("repo/part/.git", "gitdir: ../.git/modules/part\n"),
    ]);
    tree.init("repo");
    tree.write(
        "tree/.git",
        &format!("gitdir: {}\n", tree.at("repo/.git/worktrees/tree").display()),
    );
    assert!(tree.ignores("tree/mine.rs") && tree.ignores("repo/part/theirs.rs"));
    assert!(!tree.ignores("tree/theirs.rs") && !tree.ignores("repo/part/mine.rs"));
}

/// The settings were read once, and a switch changes `HEAD` alone.
#[test]
fn a_branch_that_is_switched_to_brings_its_settings() {
    let tree = Tree::new(&[
        ("repo/.git/config", "[includeIf \"onbranch:secret/**\"]\n\tpath = more\n"),
        ("repo/.git/more", "[core]\n\texcludesFile = ~/mine\n"),
        ("home/mine", "a.rs\n"),
    ]);
    tree.init("repo");
    let rules = tree.rules();
    for (branch, is_ignored) in [("main", false), ("secret/one", true), ("other", false)] {
        tree.write("repo/.git/HEAD", &format!("ref: refs/heads/{branch}\n"));
        rules.expire();
        assert_eq!(rules.is_ignored(&tree.at("repo/a.rs")), is_ignored, "{branch}");
    }
}

/// All pairs of sources, with and without `!`: each only adds.
#[test]
fn no_source_takes_back_what_another_one_ignores() {
    let sources = [
        (".honeignore", "the user's, above the repository"),
        ("repo/.honeignore", "the repository's"),
        ("repo/.gitignore", "the repository's"),
        ("repo/.git/info/exclude", "the clone's"),
        ("home/.config/git/ignore", "the user's git"),
    ];
    for (ignores, _) in sources {
        for (takes_back, whose) in sources {
            if ignores == takes_back {
                continue;
            }
            let tree = Tree::new(&[(ignores, "a.py\n"), (takes_back, "!a.py\n!*\n")]);
            tree.init("repo");
            let are_gits = |file: &str| !file.ends_with(".honeignore");
            // Git itself lets the nearer of its own files decide.
            let nearer = sources.iter().position(|source| source.0 == takes_back)
                < sources.iter().position(|source| source.0 == ignores);
            let is_gits_order = are_gits(ignores) && are_gits(takes_back) && nearer;
            assert_eq!(
                tree.ignores("repo/src/a.py"),
                !is_gits_order,
                "{ignores} / {takes_back} ({whose})"
            );
            assert!(!tree.ignores("repo/src/b.py"), "{ignores} / {takes_back}");
        }
    }
}

#[test]
fn an_exception_counts_within_one_repository_and_one_file_outside() {
    let tree = Tree::new(&[
        ("repo/.honeignore", "*.sql\n!open.sql\n"),
        ("repo/src/.honeignore", "!shared.sql\n"),
        ("repo/inner/.honeignore", "!a.sql\n"),
        ("plain/.honeignore", "*.sql\n!open.sql\n"),
        ("plain/src/.honeignore", "!shared.sql\n"),
    ]);
    tree.init("repo");
    tree.init("repo/inner");
    for path in ["repo/open.sql", "repo/src/shared.sql", "plain/src/open.sql"] {
        assert!(!tree.ignores(path), "{path}");
    }
    for path in ["repo/shared.sql", "repo/inner/a.sql", "plain/src/shared.sql"] {
        assert!(tree.ignores(path), "{path}");
    }
}

#[test]
fn rules_that_cannot_be_read_ignore_everything_below() {
    let long = "#".repeat(crate::limits::RULES_BYTES_MAX as usize + 1);
    let tree = Tree::new(&[("repo/.honeignore", &long), ("git/.gitignore", &long)]);
    for path in ["repo/a.rs", "repo/src/b.rs", "git/a.rs"] {
        assert!(tree.ignores(path), "{path}");
    }
    assert!(!tree.ignores("a.rs"));
    let tree = Tree::new(&[("repo/.git/config", "[core\n")]);
    tree.init("repo");
    assert!(tree.ignores("repo/a.rs"), "git refuses to work there");
}

/// The matcher tries each `**/` at each slash, so a few of them keep a thread for ever.
#[test]
fn conditions_that_would_take_long_ignore_everything() {
    let doubles = |count: usize| "**/".repeat(count) + "q";
    let remote = format!("[remote \"o\"]\n\turl = {}\n", "a/".repeat(40));
    let include = |condition: &str| format!("[includeIf \"{condition}\"]\n\tpath = x\n");
    let by_remote = include(&format!("hasconfig:remote.*.url:{}", doubles(18)));
    let many = "[remote \"o\"]\n\turl = a\n".repeat(crate::limits::REMOTES_MAX + 1);
    let of_one = include("hasconfig:remote.*.url:b");
    for config in [
        format!("{remote}{by_remote}"),
        include(&format!("gitdir:{}", doubles(70))),
        include(&format!("gitdir/i:{}", doubles(70))),
        include(&format!("onbranch:{}", doubles(70))),
        include("onbranch:none").repeat(crate::limits::CONDITIONS_MAX + 1),
        format!("{many}{of_one}"),
        include(&format!("onbranch:{}", "a".repeat(crate::limits::PATTERN_BYTES_MAX + 1))),
    ] {
        let tree = Tree::new(&[("repo/.git/config", &config)]);
        tree.init("repo");
        tree.write("repo/.git/HEAD", &format!("ref: refs/heads/{}\n", "a/".repeat(40)));
        assert!(tree.ignores("repo/a.rs"), "{config:.90}");
    }
    let usual = [&remote, &of_one, &include("gitdir:**/repo/**"), &include("onbranch:**/a/")];
    let tree = Tree::new(&[("repo/.git/config", &usual.map(String::as_str).concat())]);
    tree.init("repo");
    assert!(!tree.ignores("repo/a.rs"), "such conditions are usual");
}

#[test]
fn too_many_patterns_above_a_file_ignore_it() {
    let half = "a\n".repeat(crate::limits::PATTERNS_MAX / 2);
    let tree = Tree::new(&[("a1/.gitignore", &half), ("a1/b/.gitignore", &half)]);
    assert!(!tree.ignores("a1/b/c.rs"));
    tree.write("a1/b/c/.gitignore", "one more\n");
    assert!(tree.ignores("a1/b/c/c.rs") && !tree.ignores("a1/b/c.rs"));
}

/// Ten thousand of these at a depth of twenty took minutes at each look.
#[test]
fn patterns_that_take_longer_the_deeper_a_file_lies_ignore_it_there() {
    let lines = format!("{}q\n", "**/".repeat(4)).repeat(10);
    let tree = Tree::new(&[("repo/.gitignore", &lines)]);
    tree.init("repo");
    let deep = format!("repo/{}", "d/".repeat(20));
    assert!(tree.ignores(&format!("{deep}a.rs")) && tree.ignores("repo/d/q"));
    assert!(!tree.ignores("repo/d/a.rs"));
}

#[test]
fn nothing_is_matched_again_while_the_rules_are_the_same() {
    let tree = Tree::new(&[("repo/.gitignore", "build/\n!build/a.rs\n")]);
    tree.init("repo");
    let rules = tree.rules();
    let look = || {
        let verdicts = ["repo/src/a.rs", "repo/src/b.rs", "repo/build/deep/a.rs"];
        assert_eq!(verdicts.map(|file| rules.is_ignored(&tree.at(file))), [false, false, true]);
        rules.matched()
    };
    let first = look();
    rules.expire();
    assert_eq!(look(), first);
    rules.is_ignored(&tree.at("repo/src/c.rs"));
    assert_eq!(rules.matched(), first + 1, "its folder is known");
    tree.write("repo/.gitignore", "build/\n# changed\n");
    rules.expire();
    assert!(look() > first + 1);
}

#[test]
fn a_file_deeper_than_any_rule_is_followed_is_ignored() {
    let deep: PathBuf = std::iter::repeat_n("d", crate::limits::DEPTH_MAX).collect();
    assert!(
        IgnoreRules::of(User::default()).is_ignored(&Path::new("/nowhere").join(deep).join("a"))
    );
}

#[cfg(unix)]
#[test]
fn nothing_is_waited_for_and_no_link_of_a_repository_is_followed() {
    use std::os::unix::fs::symlink;
    for name in
        [".gitignore", ".honeignore", ".git", ".git/config", ".git/info/exclude", ".git/commondir"]
    {
        let tree = Tree::new(&[("repo/a.rs", "")]);
        if name.contains('/') {
            tree.init("repo");
            fs::create_dir_all(tree.at("repo/.git/info")).unwrap();
        }
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, tree.at("repo").join(name), kind, mode, 0).unwrap();
        // A pipe that is opened hangs the test.
        assert_eq!(tree.ignores("repo/a.rs"), name == ".honeignore", "{name}");
    }
    let tree = Tree::new(&[("rules", "a.rs\n")]);
    tree.init("repo");
    symlink(tree.at("rules"), tree.at("repo/.gitignore")).unwrap();
    assert!(!tree.ignores("repo/a.rs"), "git does not follow it either");
    symlink(tree.at("rules"), tree.at("repo/.honeignore")).unwrap();
    assert!(tree.ignores("repo/b.rs"), "there are rules that are not read");
    symlink(tree.at("rules"), tree.at(".honeignore")).unwrap();
    assert!(tree.ignores("a.rs") && !tree.ignores("b.rs"), "the user's own may be a link");
    let tree = Tree::new(&[("rules", "a.rs\n")]);
    symlink(tree.at("rules"), tree.at(".gitignore")).unwrap();
    assert!(tree.ignores("a.rs") && !tree.ignores("b.rs"), "whichever of the two it is");
}

#[test]
fn files_are_compiled_once_for_each_content() {
    let tree = Tree::new(&[("repo/.gitignore", "a.rs\n"), ("home/.gitconfig", "")]);
    tree.init("repo");
    let rules = tree.rules();
    let ignores = |path: &str| rules.is_ignored(&tree.at(path));
    assert!(ignores("repo/a.rs") && !ignores("repo/b.rs") && !ignores("repo/src/b.rs"));
    let compiled = rules.compiled();
    for _ in 0..3 {
        rules.expire();
        assert!(ignores("repo/a.rs") && !ignores("repo/b.rs"));
    }
    assert_eq!(rules.compiled(), compiled, "nothing has changed");
    tree.write("repo/.gitignore", "b.rs\nsomething else\n");
    rules.expire();
    assert!(!ignores("repo/a.rs") && ignores("repo/b.rs"));
    assert_eq!(rules.compiled(), compiled + 1);
    tree.write("home/.gitconfig", "[core]\n\texcludesFile = ~/mine\n");
    tree.write("home/mine", "a.rs\n");
    rules.expire();
    assert!(ignores("repo/a.rs"), "settings are looked at too");
    tree.init(".");
    fs::remove_dir_all(tree.at("repo/.git")).unwrap();
    tree.write(".gitignore", "*.rs\n");
    rules.expire();
    assert!(ignores("repo/c.rs"), "another repository has the file now");
}
