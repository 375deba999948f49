//! What was learned can be seen, taken back and paused, with a daemon and without.

use rehearsal::client::Client;
use tests::buffer::Buffer;
use tests::{Home, Model, QUICK, eventually, learn};

const WEEK: &str = "// Monday, Tuesday, Wednesday, |\n";

fn accept_one(editor: &Client, name: &str) {
    let mut week = Buffer::open(editor, name, WEEK);
    let item = week.offer();
    week.accept(&item);
}

/// The adapter that serves a completion asked for now.
fn serving(home: &Home, editor: &Client, name: &str) -> u32 {
    Buffer::open(editor, name, WEEK).complete();
    home.completions().last().map(|completion| completion.adapter).expect("a completion")
}

#[test]
fn an_adapter_can_be_taken_back_and_forth() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    accept_one(&editor, "a.rs");
    learn(&editor);
    assert_eq!(serving(&home, &editor, "b.rs"), 1);

    assert!(home.output(&["adapter", "rollback"]).contains("the model alone serves from now on"));
    assert_eq!(serving(&home, &editor, "c.rs"), 0, "from the very next completion on");
    assert!(home.output(&["adapter", "use", "1"]).contains("v1 serves from now on"));
    assert_eq!(serving(&home, &editor, "d.rs"), 1);
    assert_eq!(home.status()["adapter"]["swaps"], 3);

    drop(editor);
    home.output(&["stop"]);
    home.output(&["adapter", "use", "0"]);
    let editor = home.editor();
    assert_eq!(serving(&home, &editor, "e.rs"), 0, "the choice outlives the daemon");
    let all: serde_json::Value =
        serde_json::from_str(&home.output(&["adapter", "list", "--json"])).expect("JSON");
    assert_eq!(all["active"], 0);
    let first = &all["adapters"][0];
    assert_eq!(
        (&first["version"], &first["parent"], &first["kept"]),
        (&1.into(), &0.into(), &true.into())
    );
    assert_eq!(first["report"]["episodes_used"], 1);
    assert!(home.output(&["adapter", "list"]).contains("v1"));
    assert!(home.output(&["adapter", "show", "1"]).contains("1 used, 0 dropped"));
}

#[test]
fn a_choice_that_cannot_be_served_is_refused_by_name() {
    let home = Home::with(Model::Smol, QUICK);
    let missing = "no adapter v7 is registered; `hone adapter list` shows what is there";
    assert_eq!(home.error(&["adapter", "use", "7"]), missing, "without a daemon");
    assert!(home.error(&["adapter", "rollback"]).contains("nothing to roll back"));
    let editor = home.editor();
    assert_eq!(home.error(&["adapter", "use", "7"]), missing, "with one");

    accept_one(&editor, "a.rs");
    learn(&editor);
    home.output(&["adapter", "use", "0"]);
    std::fs::write(home.path().join("adapters/v0001.gguf"), "flipped").expect("a damaged file");
    let error = home.error(&["adapter", "use", "1"]);
    assert!(error.contains("v0001.gguf: damaged (wrong checksum)"), "{error}");
    assert_eq!(serving(&home, &editor, "b.rs"), 0, "completions go on");
}

#[test]
fn an_update_is_not_served_if_its_parent_was_taken_back_meanwhile() {
    let mut home = Home::with(Model::Smol, QUICK);
    let hold = home.hold_learner();
    let editor = home.editor();
    accept_one(&editor, "a.rs");
    learn(&editor);
    drop(editor);
    // The next daemon starts a learner of its own, which holds.
    home.output(&["stop"]);
    std::fs::write(&hold, "").expect("a hold");

    let editor = home.editor();
    accept_one(&editor, "b.rs");
    assert!(editor.learn().expect("an answer").started);
    eventually("the update starts", || home.status()["learner"]["state"] == "training");
    home.output(&["adapter", "rollback"]);
    std::fs::remove_file(&hold).expect("the hold ends");
    eventually("the update is refused", || !home.status()["learner"]["last_error"].is_null());
    let status = home.status();
    let error = status["learner"]["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("v0 was chosen to serve while the update learned from v1"), "{error}");
    assert_eq!(serving(&home, &editor, "c.rs"), 0);
    assert_eq!(status["learner"]["waiting"], 1, "the label is not lost");
}

#[test]
fn learning_pauses_and_goes_on() {
    let home = Home::with(Model::Smol, &format!("{QUICK}learning.batch_episodes = 1\n"));
    let editor = home.editor();
    home.output(&["pause"]);
    accept_one(&editor, "a.rs");
    let status = home.status();
    assert_eq!(
        (&status["learner"]["state"], &status["learner"]["waiting"]),
        (&"off".into(), &1.into())
    );
    drop(editor);
    home.output(&["stop"]);
    let editor = home.editor();
    assert_eq!(editor.status().expect("a status")["learner"]["state"], "off", "after a restart");
    home.output(&["resume"]);
    eventually("the label that waited is learned from", || home.status()["adapter"]["active"] == 1);
    assert_eq!(home.status()["learner"]["waiting"], 0);
}
