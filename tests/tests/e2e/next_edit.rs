//! The next edit over the protocol, as clients of Copilot ask for it, each in its own way.

use feedback::event::{EventKind, NextEditOutcome};
use rehearsal::client::Client;
use rehearsal::document::{Position, Range};
use serde_json::{Value, json};
use tests::{Home, Model, QUICK};

const URI: &str = "file:///project/a.rs";
const TEXT: &str = "file.load(1);\nfile.load(2);\nfile.load(3);\nfile.load(4);\nfile.load(5);\n";

/// The settings of the other tests, with next edits as the user edits.
fn home() -> Home {
    Home::with(Model::Smol, &format!("{QUICK}completion.next_edit = \"on\"\n"))
}

fn at(line: u32, columns: std::ops::Range<u32>) -> Range {
    let at = |character| Position { line, character };
    Range { start: at(columns.start), end: at(columns.end) }
}

fn name_in(line: u32, length: u32) -> Range {
    at(line, 5..5 + length)
}

/// Opens the text and makes the same edit in its first two lines. The version is 3 then.
fn two_edits(editor: &Client) {
    editor.open(URI, "rust", TEXT).unwrap();
    for line in 0..2 {
        editor.change(URI, Some(name_in(line, 4)), "fetch").unwrap();
    }
}

fn ask(editor: &Client, version: i32, line: u32) -> Vec<Value> {
    let params = json!({
        "textDocument": { "uri": URI, "version": version },
        "position": { "line": line, "character": 0 },
    });
    let answer = editor.request("textDocument/copilotInlineEdit", params).unwrap();
    answer["edits"].as_array().expect("the answer has a list").clone()
}

fn outcomes(home: &Home) -> Vec<NextEditOutcome> {
    let outcome = |event: feedback::event::Event| match event.kind {
        EventKind::NextEditOutcome { outcome, .. } => Some(outcome),
        _ => None,
    };
    home.events().into_iter().filter_map(outcome).collect()
}

#[test]
fn a_client_that_runs_the_command_walks_from_place_to_place() {
    let home = home();
    let editor = home.editor();
    two_edits(&editor);
    for line in 2..4 {
        let edits = ask(&editor, line + 1, line as u32 - 1);
        assert_eq!(edits.len(), 1);
        let edit = &edits[0];
        assert_eq!(
            (&edit["text"], &edit["range"]["start"]["line"]),
            (&json!("fetch"), &json!(line))
        );
        assert_eq!(edit["textDocument"], json!({ "uri": URI, "version": line + 1 }));
        let command = json!({ "item": { "command": edit["command"] } });
        editor.notify("textDocument/didShowInlineEdit", command).unwrap();
        editor.change(URI, Some(name_in(line as u32, 4)), "fetch").unwrap();
        editor.request("workspace/executeCommand", edit["command"].clone()).unwrap();
    }
    drop(editor);
    assert_eq!(outcomes(&home), [NextEditOutcome::Accepted; 2]);
    let report: Value = serde_json::from_str(&home.output(&["report", "--json"])).unwrap();
    let rules = &report["next_edits"]["rules"];
    assert_eq!((&rules["taken"], &rules["judged"]), (&json!(2), &json!(2)), "{report}");
    let told = home.output(&["report"]);
    assert!(told.contains("2 of 2 judged were taken (rules 2 of 2)"), "{told}");
}

/// copilot.lua neither checks the version nor runs the command.
#[test]
fn a_client_that_reports_nothing_is_understood_from_its_text() {
    let home = home();
    let editor = home.editor();
    two_edits(&editor);
    assert_eq!(ask(&editor, 3, 1).len(), 1);
    editor.change(URI, Some(name_in(2, 4)), "fetch").unwrap();
    assert_eq!(ask(&editor, 4, 2).len(), 1);
    drop(editor);
    assert_eq!(outcomes(&home)[0], NextEditOutcome::Accepted);
}

#[test]
fn there_is_no_edit_for_an_old_version_and_never_null() {
    let home = home();
    let editor = home.editor();
    two_edits(&editor);
    assert!(ask(&editor, 2, 1).is_empty());
    let unknown = json!({
        "textDocument": { "uri": "file:///project/none.rs", "version": 1 },
        "position": { "line": 9, "character": 9 },
    });
    let answer = editor.request("textDocument/copilotInlineEdit", unknown).unwrap();
    assert_eq!(answer["edits"], json!([]));
    assert_eq!(answer["_hone"]["reason"], "out_of_step");
    assert_eq!(ask(&editor, 3, 1).len(), 1);
}

#[test]
fn escape_is_recorded_and_forgetting_the_file_forgets_it() {
    let home = home();
    let editor = home.editor();
    two_edits(&editor);
    let edit = ask(&editor, 3, 1).remove(0);
    let id = edit["command"]["arguments"][0].as_str().expect("an id");
    editor.did_reject(id, "esc").unwrap();
    editor.status().unwrap();
    assert_eq!(outcomes(&home), [NextEditOutcome::Rejected]);
    let events = home.output(&["events", "--json"]);
    assert!(!events.contains("fetch"), "no text is recorded: {events}");
    editor.request("hone/forget", json!({ "uri": URI })).unwrap();
    assert_eq!(outcomes(&home), []);
}

#[test]
fn by_default_an_edit_comes_with_a_key_alone() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    two_edits(&editor);
    assert!(ask(&editor, 3, 1).is_empty());
    let params = json!({
        "textDocument": { "uri": URI, "version": 3 },
        "position": { "line": 1, "character": 0 },
        "context": { "triggerKind": 1 },
    });
    let answer = editor.request("textDocument/copilotInlineEdit", params).unwrap();
    assert_eq!(answer["edits"].as_array().map(Vec::len), Some(1));
}

/// The answer names the other document and its own version, and what was made there is read from
/// its text.
#[test]
fn the_next_edit_may_be_in_another_open_file() {
    const OTHER: &str = "file:///project/b.rs";
    let home = home();
    let editor = home.editor();
    editor.open(OTHER, "rust", "// 😀\n\tfile.load(6); file.load(7);\n").unwrap();
    editor.change(OTHER, Some(at(0, 0..0)), "// é\n").unwrap();
    editor.open(URI, "rust", "file.load(1);\nfile.load(2);\n").unwrap();
    for line in 0..2 {
        editor.change(URI, Some(name_in(line, 4)), "fetch").unwrap();
    }
    let edit = ask(&editor, 3, 1).remove(0);
    assert_eq!(edit["textDocument"], json!({ "uri": OTHER, "version": 2 }));
    assert_eq!(edit["range"]["start"], json!({ "line": 2, "character": 6 }));
    assert_eq!(edit["_hone"]["old"], "load(6); file.load");
    editor.change(OTHER, Some(at(2, 6..24)), "fetch(6); file.fetch").unwrap();
    editor.request("workspace/executeCommand", edit["command"].clone()).unwrap();
    // The walk continues from there, and there is nothing left.
    let params = json!({
        "textDocument": { "uri": OTHER, "version": 3 },
        "position": { "line": 2, "character": 0 },
    });
    let answer = editor.request("textDocument/copilotInlineEdit", params).unwrap();
    assert_eq!(answer["edits"], json!([]));
    drop(editor);
    assert_eq!(outcomes(&home), [NextEditOutcome::Accepted]);
}

#[test]
fn hone_why_says_why_there_was_no_next_edit() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    editor.open(URI, "rust", TEXT).unwrap();
    editor.change(URI, Some(name_in(0, 4)), "fetch").unwrap();
    assert!(ask(&editor, 2, 0).is_empty());
    let params = json!({
        "textDocument": { "uri": URI, "version": 2 },
        "position": { "line": 0, "character": 0 },
        "context": { "triggerKind": 1 },
    });
    let answer = editor.request("textDocument/copilotInlineEdit", params).unwrap();
    assert_eq!(answer["_hone"]["reason"], "nothing_alike");
    let told = home.output(&["why"]);
    assert!(told.contains("a.rs:1 (next edit, invoked)  You have not"), "{told}");
    assert_eq!(told.lines().count(), 1, "a pause in typing is not told: {told}");
    let all = home.output(&["why", "--all"]);
    assert!(all.contains("a.rs:1 (next edit)  Next edits come when you press their key."), "{all}");
}
