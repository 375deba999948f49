//! Where nothing is shown, the user can ask why, and gets the command that changes it.

use serde_json::Value;
use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK};

#[test]
fn a_user_who_sees_nothing_can_ask_why() {
    let home = Home::with(Model::Smol, QUICK);
    assert!(home.output(&["why"]).starts_with("No daemon runs"));
    let editor = home.editor();
    let nothing = "Nothing was asked since the daemon started, or since something was forgotten.\n";
    assert_eq!(home.output(&["why"]), nothing);
    let missing = home.output(&["why", "/nowhere/a.rs"]);
    assert!(missing.contains("no such file is there"), "{missing}");
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
    let reasons: Vec<_> =
        told.as_array().unwrap().iter().map(|one| &one["why"]["reason"]).collect();
    assert_eq!(reasons, ["shown", "language_off", "shown"], "the latest first");
    assert!(!told.to_string().contains("Monday"), "no text of the document");
}

/// A stranger's folder names its files. A name could clear the screen, or forge another line.
#[test]
fn a_name_changes_nothing_on_the_terminal() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    for name in ["a%1B%5B2J.rs", "b.rs:1%0A12:00:00 c.rs", "d%E2%80%AEsr.txt"] {
        Buffer::open(&editor, name, WEEK).complete();
    }
    let said = home.output(&["why"]);
    assert_eq!(said.lines().filter(|line| !line.starts_with("   ")).count(), 3, "{said:?}");
    assert!(said.chars().all(|shown| shown == '\n' || !shown.is_control()), "{said:?}");
    assert!(said.contains(r"a\u001b[2J.rs:1") && said.contains(r"\u000a12:00:00 c.rs:1"), "{said}");
    assert!(said.contains(r"d\u202esr.txt:1"), "{said}");
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
