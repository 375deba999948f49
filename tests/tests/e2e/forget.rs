//! Forgetting a file is a promise about bytes on disk and weights in use, so it is
//! kept here byte by byte and adapter by adapter.

use rehearsal::client::Client;
use serde_json::{Value, json};
use tests::buffer::Buffer;
use tests::disk::on_disk;
use tests::{Home, Model, QUICK, eventually, learn};

/// Continued by itself: what is offered holds the canary.
const CANARY: &str = "// Canary7391, Canary7391, Canary7391, |\n";
const WEEK: &str = "// Monday, Tuesday, Wednesday, |\n";
const SECRET: &str = "/project/secret.rs";

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

fn accept_one(editor: &Client, name: &str, text: &str) {
    let mut buffer = Buffer::open(editor, name, text);
    let item = buffer.offer();
    buffer.accept(&item);
}

fn forget(home: &Home) -> Value {
    let answer = home.output(&["forget", "--file", SECRET, "--yes", "--json"]);
    serde_json::from_str(&answer).expect("JSON")
}

fn waiting(home: &Home) -> Value {
    home.status()["learner"]["waiting"].clone()
}

#[test]
fn a_forgotten_file_is_gone_from_the_disk_and_from_what_serves() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "week.rs", WEEK);
    learn(&editor);
    accept_one(&editor, "secret.rs", CANARY);
    learn(&editor);
    // One that waits, and one that is still open.
    accept_one(&editor, "secret.rs", CANARY);
    Buffer::open(&editor, "secret.rs", CANARY).offer();
    editor.status().unwrap();
    assert!(on_disk(home.path(), "Canary7391") && on_disk(home.path(), SECRET));
    assert!(home.path().join("adapters/v0002.gguf").exists());

    let done = forget(&home);
    assert_eq!((&done["offers"], &done["adapters"]), (&json!(3), &json!([2])), "{done}");
    assert_eq!(done["serves"], 1);
    assert!(!on_disk(home.path(), "Canary7391") && !on_disk(home.path(), SECRET));
    for file in ["v0002.gguf", "v0002.optimizer"] {
        assert!(!home.path().join("adapters").join(file).exists(), "{file}");
    }
    let left: Vec<_> = home.completions().into_iter().map(|completion| completion.path).collect();
    assert_eq!(left, ["/project/week.rs"]);
    assert_eq!(waiting(&home), 0);

    Buffer::open(&editor, "week.rs", WEEK).complete();
    assert_eq!(home.completions()[1].adapter, 1, "from the very next completion on");
    let error = home.error(&["adapter", "use", "2"]);
    assert!(error.contains("learned from what was forgotten"), "{error}");
    drop(editor);
    home.output(&["stop"]);
    let status = home.status();
    assert_eq!(
        (&status["adapter"]["active"], &status["episodes"]["total"]),
        (&1.into(), &2.into())
    );
    assert_eq!(forget(&home)["events"], 0, "nothing is left to forget");
}

#[test]
fn what_an_adapter_had_learned_from_other_files_waits_again() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "week.rs", WEEK);
    accept_one(&editor, "secret.rs", CANARY);
    learn(&editor);
    assert_eq!(waiting(&home), 0);
    let uri = json!({"uri": format!("file://{SECRET}")});
    let done = editor.request("hone/forget", uri).unwrap();
    assert_eq!((&done["adapters"], &done["serves"]), (&json!([1]), &json!(0)));
    assert_eq!(waiting(&home), 1);
    let status = learn(&editor);
    assert_eq!(status["adapter"]["active"], 2, "a number is never used twice");
    assert_eq!(home.registry()["adapters"][1]["parent"], 0);
}

#[test]
fn it_works_without_a_daemon() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "secret.rs", CANARY);
    learn(&editor);
    drop(editor);
    home.output(&["stop"]);
    let done = forget(&home);
    assert_eq!((&done["adapters"], &done["serves"]), (&json!([1]), &json!(0)));
    assert!(!on_disk(home.path(), "Canary7391"));
    assert_eq!(home.status()["adapter"]["active"], 0);
}

/// The learner holds the episodes from before; what it makes of them must not serve.
#[test]
fn an_update_under_way_is_not_served_and_leaves_nothing() {
    let mut home = home();
    let hold = home.hold_learner();
    std::fs::write(&hold, "").expect("a hold");
    let editor = home.editor();
    accept_one(&editor, "week.rs", WEEK);
    accept_one(&editor, "secret.rs", CANARY);
    assert!(editor.learn().expect("an answer").started);
    eventually("the update starts", || home.status()["learner"]["state"] == "training");
    assert_eq!(forget(&home)["offers"], 1);
    std::fs::remove_file(&hold).expect("the hold ends");
    eventually("the update ends", || home.status()["learner"]["state"] != "training");
    let status = home.status();
    assert_eq!((&status["adapter"]["active"], waiting(&home)), (&json!(0), json!(1)));
    let files = std::fs::read_dir(home.path().join("adapters")).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with('v')), "{names:?}");
}

#[test]
fn nothing_is_forgotten_without_a_yes() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "secret.rs", CANARY);
    let error = home.error(&["forget", "--file", SECRET]);
    assert_eq!(error, "nothing was forgotten: this would remove 1 offer(s); say --yes");
    assert_eq!(home.completions().len(), 1);
    let other = home.output(&["forget", "--file", "/project/other.rs"]);
    assert_eq!(other, "nothing is recorded about /project/other.rs\n");
    let done = home.output(&["forget", "--file", SECRET, "--yes"]);
    assert_eq!(done, "forgotten: 1 offer(s)\n");
}
