//! A folder that a stranger made: nothing of it runs, and nothing in it holds an editor up.

use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::{Position, Range};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tests::{Home, Model, QUICK};

/// Every setting of git that names a program, with the program that would leave a trace.
const SETTINGS: &str = "\
[core]
\trepositoryformatversion = 1
\tbare = false
\tfsmonitor = RUN
\thooksPath = HOOKS
\tpager = RUN
\teditor = RUN
\tsshCommand = RUN
\tgitProxy = RUN
\taskPass = RUN
\talternateRefsCommand = RUN
[extensions]
\tpartialClone = origin
[remote \"origin\"]
\turl = ext::RUN
\tpromisor = true
\tuploadpack = RUN
\tvcs = RUN
[protocol]
\tallow = always
[protocol \"ext\"]
\tallow = always
[credential]
\thelper = !RUN
[filter \"trace\"]
\tclean = RUN
\tsmudge = RUN
\tprocess = RUN
\trequired = true
[diff]
\texternal = RUN
[diff \"trace\"]
\tcommand = RUN
\ttextconv = RUN
[merge \"trace\"]
\tdriver = RUN
[gpg]
\tprogram = RUN
[pager]
\tls-files = RUN
[alias]
\tls-files = !RUN
\tcheck-ignore = !RUN
[includeIf \"gitdir:**\"]
\tpath = more
";

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
    fs::write(path, text).expect("it is written");
}

fn program(path: &Path, body: &str) {
    write(path, &format!("#!/bin/sh\n{body}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("its mode");
}

fn pipe(path: &Path) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
    assert!(Command::new("mkfifo").arg(path).status().is_ok_and(|made| made.success()));
}

/// A repository whose settings run a program whenever git has a reason to: at its hooks, its
/// filters, and a `.gitignore` that it would have to fetch.
fn hostile(root: &Path, git: &Path, trace: &str) {
    let hooks = git.join("traced");
    let settings = SETTINGS.replace("RUN", trace).replace("HOOKS", &hooks.to_string_lossy());
    write(&git.join("config"), &settings);
    write(&git.join("more"), &format!("[core]\n\tfsmonitor = {trace}\n"));
    write(&git.join("HEAD"), "ref: refs/heads/main\n");
    write(&git.join("objects/info/alternates"), "/nowhere/objects\n");
    fs::create_dir_all(git.join("refs")).expect("it is made");
    write(&git.join("info/attributes"), "* filter=trace diff=trace merge=trace\n");
    write(&root.join(".gitattributes"), "* filter=trace diff=trace merge=trace\n");
    for hook in ["post-index-change", "pre-commit", "fsmonitor-watchman", "post-checkout"] {
        program(&hooks.join(hook), trace);
    }
    // An index that names a `.gitignore` that is nowhere, and marks it as left out of the worktree.
    let mut index = b"DIRC\0\0\0\x03\0\0\0\x01".to_vec();
    index.extend([0; 24]);
    index.extend([0, 0, 0o201, 0o244]);
    index.extend([0; 12]);
    index.extend([7; 20]);
    index.extend([0x40, 10, 0x40, 0]);
    index.extend(b".gitignore\0\0\0\0\0\0");
    index.extend([0; 20]);
    fs::write(git.join("index"), index).expect("it is written");
}

fn at(line: u32, columns: std::ops::Range<u32>) -> Range {
    let at = |character| Position { line, character };
    Range { start: at(columns.start), end: at(columns.end) }
}

/// Makes the same edit twice, and asks by the key for the next place, which may be in a file that
/// is not open.
fn asks_by_key(editor: &Client, root: &Path) -> Value {
    let uri = format!("file://{}/a.rs", root.display());
    editor.open(&uri, "rust", "file.load(1);\nfile.load(2);\n").expect("it is sent");
    for line in 0..2 {
        editor.change(&uri, Some(at(line, 5..9)), "fetch").expect("it is sent");
    }
    let params = json!({
        "textDocument": { "uri": uri, "version": 3 },
        "position": { "line": 1, "character": 0 },
        "context": { "triggerKind": 1 },
    });
    editor.request("textDocument/copilotInlineEdit", params).expect("it is answered")
}

#[test]
fn nothing_of_a_repository_runs() {
    let mut home = Home::with(Model::Smol, QUICK);
    let place = tempfile::tempdir().expect("a folder");
    let place = place.path().canonicalize().expect("it is there");
    let traces = place.join("traces");
    fs::create_dir(&traces).expect("it is made");
    let trace = format!("touch {}/ran", traces.display());
    // Not even git itself is started.
    program(&place.join("bin/git"), &format!("touch {}/git", traces.display()));
    let path = std::env::var("PATH").unwrap_or_default();
    home.set_env("PATH", format!("{}:{path}", place.join("bin").display()));
    let (plain, bare) = (place.join("plain"), place.join("clone/vendor"));
    hostile(&plain, &plain.join(".git"), &trace);
    hostile(&bare, &bare, &trace);
    for root in [&plain, &bare] {
        write(&root.join("b.rs"), "file.load(3);\n");
        let editor = home.editor();
        let answer = asks_by_key(&editor, root);
        let uri = format!("file://{}/a.rs", root.display());
        editor
            .inline_completion(&uri, Position { line: 2, character: 0 }, TriggerKind::Invoked)
            .expect("it is answered");
        if *root == plain {
            assert!(answer.to_string().contains("b.rs"), "the folder was searched: {answer}");
        }
    }
    let ran: Vec<_> = fs::read_dir(&traces).expect("it is there").flatten().collect();
    assert!(ran.is_empty(), "{ran:?}");
}

/// Two editors have one daemon. One of them opens folders with a pipe wherever a file of rules is
/// looked for; a pipe that is opened is never read.
#[test]
fn a_pipe_in_a_folder_holds_up_nobody() {
    let home = Home::with(Model::Smol, QUICK);
    let place = tempfile::tempdir().expect("a folder");
    let other = home.editor();
    for name in [".gitignore", ".honeignore", ".ignore", ".git", "sub/.gitignore", "pipe.rs"] {
        let root = place.path().join(name.replace('/', "-"));
        pipe(&root.join(name));
        write(&root.join("sub/b.rs"), "file.load(3);\n");
        let editor = home.editor();
        asks_by_key(&editor, &root);
        let uri = format!("file://{}/a.rs", root.display());
        let asked = |editor: &Client, uri: &str| {
            let start = Position { line: 0, character: 0 };
            editor.inline_completion(uri, start, TriggerKind::Invoked).expect("it is answered");
        };
        asked(&editor, &uri);
        let elsewhere = format!("file:///elsewhere/{name}/c.rs");
        other.open(&elsewhere, "rust", "fn a() {}\n").expect("it is sent");
        asked(&other, &elsewhere);
    }
    home.output(&["forget", "--file", "/project/none.rs", "--yes"]);
}

/// The rules are read at each look, and the crate that reads them was not heard.
#[test]
fn rules_that_cannot_be_read_are_named_in_the_log_once() {
    let home = Home::with(Model::Smol, QUICK);
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().canonicalize().expect("it is there");
    write(&root.join(".honeignore"), &"#".repeat(300 * 1024));
    let editor = home.editor();
    for name in ["a.rs", "sub/b.rs"] {
        let uri = format!("file://{}/{name}", root.display());
        editor.open(&uri, "rust", "fn a() {}\n").expect("it is sent");
        let start = Position { line: 0, character: 0 };
        editor.inline_completion(&uri, start, TriggerKind::Invoked).expect("it is answered");
    }
    let log = home.daemon_log();
    let named: Vec<&str> = log.lines().filter(|line| line.contains(".honeignore")).collect();
    assert!(matches!(&*named, [line] if line.contains("longer than")), "{log}");
    assert!(home.completions().is_empty(), "nothing below it is stored");
}
