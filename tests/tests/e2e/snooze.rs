//! Completions can be snoozed for a while, which ends by itself.

use serde_json::json;
use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK, eventually};

#[test]
fn a_snooze_ends_by_itself_or_by_resume() {
    let home = Home::with(Model::Smol, QUICK);
    let said = home.output(&["pause", "completions", "--for", "30m"]);
    assert!(said.starts_with("no daemon runs"), "{said}");
    let editor = home.editor();
    let buffer = Buffer::open(&editor, "a.rs", WEEK);
    let said = home.output(&["pause", "completions", "--for", "30m"]);
    assert!(said.starts_with("completions are paused for 30m"), "{said}");
    assert_eq!(buffer.complete(), None);
    assert!(!buffer.ask().is_empty(), "an invoked completion is answered");
    assert!(home.output(&["why"]).contains("Completions are paused until"));
    let says_paused = || {
        let lines = editor.take_notifications();
        let said = |message: String| message.contains("completions paused until");
        lines.iter().any(|line| said(line.params["message"].to_string()))
    };
    eventually("the status line says so", says_paused);
    home.output(&["resume", "completions"]);
    assert!(buffer.complete().is_some());
    home.output(&["pause", "completions", "--for", "1s"]);
    eventually("the snooze is over", || buffer.complete().is_some());
}

#[test]
fn a_file_or_a_folder_can_be_snoozed_alone() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    let (here, there) =
        (Buffer::open(&editor, "a.rs", WEEK), Buffer::open(&editor, "deep/b.rs", WEEK));
    let snooze = |what| editor.request("hone/snooze", what).unwrap();
    snooze(json!({ "what": "file", "path": "/project/a.rs" }));
    assert_eq!(here.complete(), None);
    assert!(!there.ask().is_empty(), "an invoked completion is answered");
    snooze(json!({ "what": "folder", "path": "/project" }));
    let deep = Buffer::open(&editor, "deep/c.rs", WEEK);
    assert_eq!(deep.complete(), None);
    snooze(json!({ "what": "nothing" }));
    assert!(here.complete().is_some() && deep.complete().is_some());
}
