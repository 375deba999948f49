//! An adapter can be inspected, taken back, exported and imported, and learning can be paused,
//! with a daemon and without one.

use rehearsal::client::Client;
use serde_json::Value;
use std::path::Path;
use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK, eventually, learn};

fn accept_one(editor: &Client, name: &str) {
    tests::buffer::accept_one(editor, name, WEEK);
}

/// The adapter that serves the next completion.
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
    assert_eq!(serving(&home, &editor, "c.rs"), 0, "the change holds for the next completion");
    assert!(home.output(&["adapter", "use", "1"]).contains("v1 serves from now on"));
    assert_eq!(serving(&home, &editor, "d.rs"), 1);
    assert_eq!(home.status()["adapter"]["swaps"], 3);

    drop(editor);
    home.output(&["stop"]);
    home.output(&["adapter", "use", "0"]);
    let editor = home.editor();
    assert_eq!(serving(&home, &editor, "e.rs"), 0, "the next daemon makes the same choice");
    let all: serde_json::Value =
        serde_json::from_str(&home.output(&["adapter", "list", "--json"])).expect("JSON");
    assert_eq!(all["active"], 0);
    let first = &all["adapters"][0];
    assert_eq!(
        (&first["version"], &first["parent"], &first["kept"]),
        (&1.into(), &0.into(), &true.into())
    );
    assert_eq!(first["report"]["episodes_used"], 1);
    assert!(home.output(&["adapter"]).contains("v1"));
    assert!(home.output(&["adapter", "show", "1"]).contains("1 used, 0 dropped"));
}

#[test]
fn an_adapter_that_cannot_be_served_is_refused_with_the_reason() {
    let home = Home::with(Model::Smol, QUICK);
    let missing = "no adapter v7 is registered; `hone adapter` shows what is there";
    assert_eq!(home.error(&["adapter", "use", "7"]), missing, "without a daemon");
    assert!(home.output(&["adapter", "rollback"]).contains("nothing to roll back"));
    let editor = home.editor();
    assert_eq!(home.error(&["adapter", "use", "7"]), missing, "with one");

    accept_one(&editor, "a.rs");
    learn(&editor);
    home.output(&["adapter", "use", "0"]);
    std::fs::write(home.path().join("adapters/v0001.gguf"), "flipped").expect("a damaged file");
    let error = home.error(&["adapter", "use", "1"]);
    assert!(error.contains("v0001.gguf: damaged (wrong checksum)"), "{error}");
    assert_eq!(serving(&home, &editor, "b.rs"), 0, "completions continue");
}

#[test]
fn an_update_is_not_served_if_its_parent_was_taken_back_meanwhile() {
    let mut home = Home::with(Model::Smol, QUICK);
    let hold = home.hold_learner();
    let editor = home.editor();
    accept_one(&editor, "a.rs");
    learn(&editor);
    drop(editor);
    // The next daemon starts another learner, which waits.
    home.output(&["stop"]);
    std::fs::write(&hold, "").expect("a hold");

    let editor = home.editor();
    accept_one(&editor, "b.rs");
    assert!(editor.learn().expect("an answer").started);
    eventually("the update starts", || home.status()["learner"]["state"] == "training");
    home.output(&["adapter", "rollback"]);
    std::fs::remove_file(&hold).expect("the hold ends");
    eventually("the update ends", || home.status()["learner"]["state"] != "training");
    let status = home.status();
    assert_eq!(status["learner"]["updates"], 1, "the second update is not counted");
    assert_eq!(serving(&home, &editor, "c.rs"), 0);
    assert_eq!(status["learner"]["waiting"], 1, "the label is not lost");
}

/// An adapter is exported for PEFT and imported again. It gets a new version, has the same
/// weights, and serves.
#[test]
fn an_adapter_goes_out_to_peft_and_comes_back() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    accept_one(&editor, "a.rs");
    learn(&editor);
    accept_one(&editor, "b.rs");
    learn(&editor);

    let peft = home.path().join("peft");
    let folder = peft.to_str().expect("a path");
    home.output(&["adapter", "export", folder, "1"]);
    let again = home.error(&["adapter", "export", folder]);
    assert!(again.contains("is there already"), "{again}");
    let config: Value = read_json(&peft.join("adapter_config.json"));
    assert_eq!((&config["r"], &config["peft_type"]), (&16.into(), &"LORA".into()));

    let told = home.output(&["adapter", "import", folder]);
    assert!(told.contains("imported as v3"), "{told}");
    assert_eq!(
        home.status()["adapter"]["active"],
        2,
        "an import does not start to serve by itself"
    );
    let again = home.path().join("again");
    home.output(&["adapter", "export", again.to_str().expect("a path"), "3"]);
    let weights = |folder: &Path| std::fs::read(folder.join("adapter_model.safetensors")).unwrap();
    assert!(weights(&again) == weights(&peft), "the weights are the same");
    home.output(&["adapter", "use", "3"]);
    assert_eq!(serving(&home, &editor, "c.rs"), 3);

    let gguf = home.path().join("out.gguf");
    home.output(&["adapter", "export", gguf.to_str().expect("a path"), "1", "--format", "gguf"]);
    let kept = home.path().join("adapters/v0001.gguf");
    assert_eq!(std::fs::read(&gguf).unwrap(), std::fs::read(kept).unwrap());
    let told = home.output(&["adapter", "import", gguf.to_str().expect("a path")]);
    assert!(told.contains("imported as v4"), "{told}");

    drop(editor);
    home.output(&["stop"]);
    let told = home.output(&["adapter", "import", folder]);
    assert!(told.contains("imported as v5"), "without a daemon: {told}");
    let error = home.error(&["adapter", "import", home.path().to_str().expect("a path")]);
    assert!(error.contains("name a folder that PEFT has saved"), "{error}");
    let missing = home.error(&["adapter", "import", "/nowhere/out"]);
    assert!(missing.starts_with("/nowhere/out is not there; name a folder"), "{missing}");
    let text = home.path().join("config.toml");
    let error = home.error(&["adapter", "import", text.to_str().expect("a path")]);
    assert!(error.contains("config.toml is no adapter; name a folder"), "{error}");

    // The home of a rehearsal has no model.
    std::fs::rename(home.path().join("models"), home.path().join("elsewhere")).expect("moved");
    let bare = home.path().join("bare.gguf");
    home.output(&["adapter", "export", bare.to_str().expect("a path"), "1", "--format", "gguf"]);
    assert_eq!(std::fs::read(&bare).unwrap(), std::fs::read(&gguf).unwrap());
    let peft = home.path().join("bare");
    let error = home.error(&["adapter", "export", peft.to_str().expect("a path"), "1"]);
    assert!(error.contains("hone model pull"), "{error}");
    assert!(!peft.exists(), "a failed export leaves nothing");
}

fn read_json(path: &Path) -> Value {
    from_str(&std::fs::read_to_string(path).expect("a file"))
}

fn from_str(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn learning_pauses_and_continues() {
    let home = Home::with(Model::Smol, &format!("{QUICK}lab.batch_episodes = 1\n"));
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
