//! Workspaces on a real disk: what gets into an index, and what never does.

use super::*;
use crate::workspace::status::FolderState;
use feedback::clock::ManualClock;
use std::fs;
use std::time::{Duration, Instant};

/// The longest wait for something that a folder's thread does.
const PATIENCE: Duration = Duration::from_secs(60);

struct Tree {
    folder: tempfile::TempDir,
    workspaces: Workspaces,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Tree {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::starting_at(1_000));
        let forgotten = folder.path().join("forgotten");
        let workspaces = Workspaces::new(forgotten, Patterns::none(), clock);
        let tree = Tree { folder, workspaces };
        fs::create_dir(tree.root()).unwrap();
        files.iter().for_each(|(name, text)| tree.write(name, text));
        tree
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn at(&self, name: &str) -> String {
        self.root().join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn open(&self) -> Arc<OpenFolder> {
        let open = self.workspaces.open(&self.root()).unwrap();
        self.eventually("the folder is indexed", |tree| tree.state() == FolderState::Ready);
        open
    }

    fn state(&self) -> FolderState {
        self.workspaces.status()[0].state
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.workspaces.holding(&self.at("any")).unwrap().snapshot()
    }

    /// Whether the indexes have a text with this name. Both agree.
    fn finds(&self, canary: &str) -> bool {
        let snapshot = self.snapshot();
        let code = retrieval::Query { text: canary, count: 9, ..retrieval::Query::default() };
        let before = format!("let kept = cage.bird({canary}");
        let lines = memory::Query { before: &before, ..memory::Query::default() };
        let hits = snapshot.retrieval.search(&code);
        // Names that share a part with it are found as well.
        let in_index = hits.iter().any(|hit| hit.text.contains(canary));
        let in_memory = !snapshot.memory.find(&lines).is_empty();
        assert_eq!(in_index, in_memory, "{canary}");
        in_index
    }

    fn eventually(&self, what: &str, happened: impl Fn(&Tree) -> bool) {
        let started = Instant::now();
        while !happened(self) {
            let status = self.workspaces.status();
            assert!(started.elapsed() < PATIENCE, "waited in vain: {what}: {status:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn sings(canary: &str) -> String {
    format!("fn sing() {{\n    let kept = cage.bird({canary}, 1);\n}}\n")
}

#[test]
fn ignored_files_secrets_and_what_is_no_text_are_not_indexed() {
    let secret = format!("password = \"{}\"\n{}", ["hunter", "2", "!"].concat(), sings("canary_b"));
    let long = format!("{}{}", sings("canary_c"), "// filler\n".repeat(110_000));
    let tree = Tree::new(&[
        ("src/open.rs", &sings("canary_open")),
        (".gitignore", "ignored.rs\n"),
        (".honeignore", "clients/\n"),
        ("ignored.rs", &sings("canary_a")),
        ("clients/acme.rs", &sings("canary_d")),
        ("secret.rs", &secret),
        ("long.rs", &long),
        (".env", &sings("canary_e")),
        ("Cargo.lock", &sings("canary_f")),
        ("zeros.rs", &format!("{}\0", sings("canary_g"))),
    ]);
    std::os::unix::fs::symlink(tree.at("src"), tree.at("src/loop")).unwrap();
    std::os::unix::fs::symlink(tree.at(".env"), tree.at("link.rs")).unwrap();
    let _open = tree.open();
    assert!(tree.finds("canary_open"));
    for canary in ["a", "b", "c", "d", "e", "f", "g"] {
        assert!(!tree.finds(&format!("canary_{canary}")), "{canary}");
    }
    let status = &tree.workspaces.status()[0];
    assert_eq!(status.folder, tree.root());
    assert!(status.line().contains(&tree.at("").trim_end_matches('/').to_owned()));
    assert!(status.files <= 3 && status.left_out >= 3, "{status:?}");
}

#[test]
fn a_forgotten_file_is_gone_and_does_not_come_back() {
    let tree = Tree::new(&[
        ("secret_plan.rs", &sings("canary_plan")),
        ("clients/a.rs", &sings("canary_client")),
        ("open.rs", &sings("canary_open")),
    ]);
    let open = tree.open();
    let kept_before = tree.snapshot();
    for name in ["secret_plan.rs", "clients"] {
        let names = vec![tree.at(name)];
        tree.workspaces.forget(&Scope::Folder { names }).unwrap();
    }
    let forgotten = |tree: &Tree| {
        tree.finds("canary_open") && !tree.finds("canary_plan") && !tree.finds("canary_client")
    };
    assert!(forgotten(&tree), "at once");
    assert!(!format!("{:?}", tree.snapshot().memory).contains("canary_plan"), "not a byte is left");
    drop(kept_before);
    // Neither an edit nor a save brings it back.
    let text = Rope::from_str(&sings("canary_plan"));
    tree.workspaces.edited(&tree.at("secret_plan.rs"), "rust", &text);
    tree.write("clients/a.rs", &sings("canary_client"));
    tree.write("other.rs", &sings("canary_other"));
    tree.workspaces.touched(&tree.at("other.rs"));
    tree.eventually("a later file is indexed", |tree| tree.finds("canary_other"));
    assert!(forgotten(&tree));
    drop(open);
    let again = Tree {
        workspaces: Workspaces::new(
            tree.folder.path().join("forgotten"),
            Patterns::none(),
            Arc::new(ManualClock::starting_at(0)),
        ),
        folder: tree.folder,
    };
    let _open = again.open();
    assert!(forgotten(&again), "the next daemon knows it too");
    again.workspaces.forget(&Scope::All).unwrap();
    assert!(!again.finds("canary_open"), "everything is forgotten at first");
    again.eventually("the index is made anew", |tree| tree.finds("canary_open"));
    assert!(forgotten(&again));
}

#[test]
fn the_index_follows_the_editor_and_the_disk() {
    let tree = Tree::new(&[("a.rs", &sings("canary_old"))]);
    let _open = tree.open();
    let path = tree.at("a.rs");
    let edit = |canary: &str| {
        tree.workspaces.edited(&path, "rust", &Rope::from_str(&sings(canary)));
    };
    edit("canary_typed");
    tree.eventually("what is typed is indexed", |tree| tree.finds("canary_typed"));
    assert!(!tree.snapshot().memory.stats().typed.eq(&0), "it is known as typed");
    tree.write("a.rs", &sings("canary_disk"));
    tree.write("b.rs", &sings("canary_new"));
    tree.workspaces.touched(&path);
    tree.eventually("a new file is noticed", |tree| tree.finds("canary_new"));
    assert!(tree.finds("canary_typed") && !tree.finds("canary_disk"), "the editor's text counts");
    tree.workspaces.closed(&path);
    tree.eventually("the disk counts again", |tree| tree.finds("canary_disk"));
    fs::remove_file(tree.root().join("b.rs")).unwrap();
    tree.eventually("a removed file is noticed", |tree| !tree.finds("canary_new"));
    let secret = format!("password = \"{}\"\n{}", ["hunter", "2", "!"].concat(), sings("canary_x"));
    tree.workspaces.edited(&path, "rust", &Rope::from_str(&secret));
    tree.eventually("a document that gets a secret is dropped", |tree| {
        !tree.finds("canary_disk") && !tree.finds("canary_x")
    });
}

/// Whoever changes to another branch and back removes folders and makes them again. The watch of a
/// folder ends with it.
#[test]
fn a_folder_that_is_removed_and_made_again_is_followed() {
    let tree = Tree::new(&[("src/a.rs", &sings("canary_a"))]);
    let _open = tree.open();
    fs::remove_dir_all(tree.root().join("src")).unwrap();
    tree.write("src/b.rs", &sings("canary_b"));
    tree.eventually("the folder is read again", |tree| tree.finds("canary_b"));
    assert!(!tree.finds("canary_a"));
    tree.write("src/c.rs", &sings("canary_c"));
    tree.eventually("it is watched again", |tree| tree.finds("canary_c"));
}

/// A folder that cannot be watched keeps none of the others from it.
#[test]
fn folders_behind_one_that_is_missing_are_watched() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("there")).unwrap();
    let inbox = Arc::new(inbox::Inbox::default());
    let mut watch = watch::Watch::start(Arc::downgrade(&inbox)).unwrap();
    let files = [at("gone/a.rs"), at("there/a.rs")];
    watch.follow(folder.path(), files.iter().map(PathBuf::as_path));
    fs::write(at("there/a.rs"), "fn a() {}\n").unwrap();
    let started = Instant::now();
    while !inbox.take().changed.contains(&at("there/a.rs")) {
        assert!(started.elapsed() < PATIENCE, "its change is not reported");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_folder_that_disappears_is_emptied_and_one_that_is_closed_is_let_go() {
    let tree = Tree::new(&[("a.rs", &sings("canary_a"))]);
    let open = tree.open();
    fs::remove_dir_all(tree.root()).unwrap();
    tree.eventually("the folder is gone", |tree| tree.state() == FolderState::Gone);
    assert!(!tree.finds("canary_a"));
    let again = tree.workspaces.open(&tree.root()).unwrap();
    assert!(Arc::ptr_eq(&open, &again), "a folder is indexed once");
    drop((open, again));
    assert!(tree.workspaces.status().is_empty());
    assert!(tree.workspaces.holding(&tree.at("a.rs")).is_none());
}

#[test]
fn a_setting_that_ignores_files_holds_for_what_is_indexed() {
    let tree = Tree::new(&[("a.rs", &sings("canary_a")), ("b.rs", &sings("canary_b"))]);
    let _open = tree.open();
    assert!(tree.finds("canary_a"));
    tree.workspaces.use_ignored(Patterns::compile(&["a.rs".into()]).unwrap());
    tree.eventually("the file is dropped", |tree| !tree.finds("canary_a"));
    assert!(tree.finds("canary_b"));
}

#[test]
fn neither_the_home_nor_a_relative_path_is_a_workspace() {
    let tree = Tree::new(&[]);
    assert!(tree.workspaces.open(Path::new("project")).is_none());
    let _open = tree.workspaces.open(Path::new("/")).unwrap();
    tree.eventually("it is refused", |tree| tree.state() == FolderState::Refused);
}

/// A network file system may hang for ever. Its thread waits, and nobody else.
#[test]
fn a_disk_that_does_not_answer_is_told_and_holds_nobody_up() {
    let tree = Tree::new(&[("a.rs", &sings("canary_a"))]);
    let open = tree.open();
    let (hangs, ends) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let waiting = open.clone();
        scope.spawn(move || waiting.0.ask_disk(|| ends.recv()));
        tree.eventually("it is told", |tree| tree.state() == FolderState::Stalled);
        let text = Rope::from_str(&sings("canary_b"));
        tree.workspaces.edited(&tree.at("a.rs"), "rust", &text);
        assert!(tree.finds("canary_a"));
        let names = vec![tree.at("a.rs")];
        tree.workspaces.forget(&Scope::File { names }).unwrap();
        assert!(!tree.finds("canary_a"));
        // Had one of them waited for the disk, the test would not get here.
        drop(hangs);
    });
}
