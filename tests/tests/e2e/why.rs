//! Where nothing is shown, the user can ask why, and gets the command that changes it.

use serde_json::Value;
use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK};

#[test]
fn a_user_who_sees_nothing_can_ask_why() {
    let home = Home::with(Model::Smol, QUICK);
    assert!(home.output(&["why"]).starts_with("No daemon runs"));
    let editor = home.editor();
    assert_eq!(home.output(&["why"]), "Nothing was asked since the daemon started.\n");
    assert!(Buffer::open(&editor, "a.rs", WEEK).complete().is_some());
    assert!(home.output(&["why"]).contains("a.rs:1  An offer was shown."));

    home.output(&["config", "set", "completion.languages.rust", "false"]);
    let buffer = Buffer::open(&editor, "b.rs", &format!("fn main() {{\n    {WEEK}"));
    assert_eq!(buffer.complete(), None);
    let said = home.output(&["why", "/project/b.rs:2"]);
    assert!(said.contains("b.rs:2  Completions are switched off for the language rust."), "{said}");
    let command = "hone config set completion.languages.rust true";
    assert!(said.contains(command), "{said}");
    assert!(home.output(&["why", "/project/b.rs:7"]).starts_with("Nothing was asked lately"));

    // The command that it names helps.
    home.output(&command.split(' ').skip(1).collect::<Vec<_>>());
    assert!(buffer.complete().is_some());
    let told: Value = serde_json::from_str(&home.output(&["why", "--json"])).unwrap();
    let reasons: Vec<_> = told.as_array().unwrap().iter().map(|one| &one["reason"]).collect();
    assert_eq!(reasons, ["shown", "language_off", "shown"], "the latest first");
    assert!(!told.to_string().contains("Monday"), "no text of the document");
}

#[test]
fn an_answer_to_an_editor_carries_its_reason() {
    let home = Home::with(Model::Smol, &format!("{QUICK}completion.enabled = false\n"));
    let editor = home.editor();
    let buffer = Buffer::open(&editor, "a.rs", WEEK);
    let params = serde_json::json!({
        "textDocument": { "uri": buffer.uri() },
        "position": buffer.position(),
        "context": { "triggerKind": 2 },
    });
    let answer = editor.request("textDocument/inlineCompletion", params).unwrap();
    assert_eq!(answer["items"], serde_json::json!([]));
    assert_eq!(answer["_hone"]["reason"], "switched_off");
    assert_eq!(answer["_hone"]["sentence"], "Completions are switched off.");
    assert_eq!(answer["_hone"]["remedy"], "hone resume completions");
}
