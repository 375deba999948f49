//! The folder that an editor has open is indexed, and `hone status` tells what is in the index.

use feedback::limits::{LOG_HANDOVER_MAX, LOG_HANDOVER_POLL};
use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::Position;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Instant;
use tests::{Home, Model, QUICK, eventually};
use url::Url;

fn home() -> Home {
    Home::with(Model::Smol, &format!("{QUICK}lab.index_folders = true\n"))
}

/// An editor that has this folder open.
fn editor(home: &Home, folder: &Path) -> Client {
    let editor = Client::spawn(home.hone().args(["lsp", "--manual-clock"])).unwrap();
    let uri = Url::from_directory_path(folder).unwrap();
    let params = json!({
        "processId": null,
        "rootUri": null,
        "capabilities": {},
        "workspaceFolders": [{"uri": uri.as_str().trim_end_matches('/'), "name": "project"}],
    });
    editor.request("initialize", params).unwrap();
    editor.notify("initialized", json!({})).unwrap();
    editor
}

fn folders(home: &Home) -> Vec<Value> {
    home.status()["workspaces"].as_array().cloned().unwrap_or_default()
}

fn is_indexed(home: &Home, files: u64) -> bool {
    let folders = folders(home);
    folders.len() == 1 && folders[0]["state"] == "ready" && folders[0]["files"] == files
}

#[test]
fn the_status_names_the_folder_and_counts_what_may_be_indexed() {
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
    let secret = format!("let password = \"{}\";\n", ["hunter", "2", "!"].concat());
    write(".gitignore", "ignored.rs\n.gitignore\n");
    for name in ["a.rs", "b.rs", "plan.rs", "ignored.rs"] {
        write(name, "fn canary() {}\n");
    }
    write("secret.rs", &secret);
    let home = home();
    let _editor = editor(&home, &root);
    // Three of the five: not the ignored one, and not the one with a secret.
    eventually("the folder is indexed", || is_indexed(&home, 3));
    let screen = home.output(&["status"]);
    let line =
        screen.lines().find(|line| line.trim_start().starts_with("workspace")).unwrap_or_default();
    assert!(line.contains(&*root.to_string_lossy()) && line.contains("indexed"), "{screen}");

    home.output(&["forget", "--file", &root.join("plan.rs").to_string_lossy(), "--yes"]);
    assert_eq!(folders(&home)[0]["files"], 2, "the forgotten file is gone at once");
    write("plan.rs", "fn canary() { again(); }\n");
    write("c.rs", "fn canary() {}\n");
    eventually("a new file is indexed, the forgotten one is not", || is_indexed(&home, 3));

    home.output(&["stop"]);
    let _editor = editor(&home, &root);
    eventually("the next daemon has not got it either", || is_indexed(&home, 3));
}

/// A daemon that ends gives up its lock and then takes a while to be gone, above all if a thread of
/// low priority has to end on a busy machine. The next daemon waits for the event log for some
/// seconds, so the log must be free by then. sled frees it a moment after it is closed, in a thread
/// of its own.
#[test]
fn whoever_gets_the_lock_of_a_daemon_that_ends_finds_its_log_free() {
    let project = tempfile::tempdir().unwrap();
    fs::write(project.path().join("a.rs"), "fn a() {}\n").unwrap();
    let home = home();
    for stop in 1..=3 {
        let _editor = editor(&home, project.path());
        eventually("the folder is open", || !folders(&home).is_empty());
        let lock = fs::File::open(home.path().join("run/daemon.lock")).unwrap();
        let database = fs::File::open(home.path().join("data/events.sled/db")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| home.output(&["stop"]));
            lock.lock().unwrap();
            let locked = Instant::now();
            while database.try_lock().is_err() {
                assert!(locked.elapsed() < LOG_HANDOVER_MAX, "stop {stop}: the log is in use");
                std::thread::sleep(LOG_HANDOVER_POLL);
            }
            drop((lock, database));
        });
    }
}

#[test]
fn a_folder_is_let_go_with_its_last_editor() {
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    fs::write(root.join("a.rs"), "fn a() {}\n").unwrap();
    let home = home();
    let stays = home.editor();
    let (first, second) = (editor(&home, &root), editor(&home, &root));
    eventually("it is indexed once", || is_indexed(&home, 1));
    drop(first);
    assert!(is_indexed(&home, 1));
    let uri = Url::from_directory_path(&root).unwrap();
    let removed = json!([{"uri": uri.as_str().trim_end_matches('/'), "name": "project"}]);
    let event = json!({"event": {"added": [], "removed": removed}});
    second.notify("workspace/didChangeWorkspaceFolders", event).unwrap();
    eventually("nobody has it open", || folders(&home).is_empty());
    drop((second, stays));
}

/// Nothing uses the index yet, so it costs nobody time and memory who has not asked for it.
#[test]
fn a_folder_is_not_indexed_unless_the_settings_say_so() {
    let project = tempfile::tempdir().unwrap();
    let home = Home::with(Model::Smol, QUICK);
    let _editor = editor(&home, project.path());
    assert_eq!(folders(&home), Vec::<Value>::new());
}

/// The file is neither open nor imported. A prompt that was made before the folder was indexed does
/// not keep later ones from quoting it.
#[test]
fn a_prompt_quotes_code_of_the_folder_until_it_is_forgotten() {
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    let ledger = root.join("accounts/ledger.rs");
    fs::create_dir_all(ledger.parent().unwrap()).unwrap();
    fs::write(&ledger, "pub fn post_entry(zebra_account: &str, walrus_cents: u64) {}\n").unwrap();
    let settings = "completion.context_chars = 1000\nlab.index_folders = true\n";
    let home = Home::with(Model::Qwen, &format!("{QUICK}{settings}"));
    let editor = editor(&home, &root);
    let uri = Url::from_file_path(root.join("close.rs")).unwrap();
    let text = "fn close(zebra_account: &str) {\n    let walrus_cents = 1;\n    post_entry(\n}\n";
    editor.open(uri.as_str(), "rust", text).unwrap();
    let quoted = |line: u32, character: usize| {
        let at = Position { line, character: character as u32 };
        editor.inline_completion(uri.as_str(), at, TriggerKind::Invoked).unwrap();
        home.completions().pop().expect("a completion is recorded").context
    };
    quoted(1, "    let walrus".len());
    eventually("the folder is indexed", || folders(&home)[0]["state"] == "ready");
    assert_eq!(quoted(2, "    post_entry(".len()), [ledger.to_string_lossy()]);
    home.output(&["forget", "--file", &ledger.to_string_lossy(), "--yes"]);
    assert!(quoted(2, "    post".len()).is_empty());
}
