//! Completions can be paused, as learning can: in every editor at once, and for later daemons too.

use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK};

#[test]
fn paused_completions_are_empty_at_once_unless_they_are_invoked() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    assert!(Buffer::open(&editor, "a.rs", WEEK).complete().is_some());
    let said = home.output(&["pause", "completions"]);
    assert_eq!(said, "completions are paused until `hone resume completions`\n");
    let buffer = Buffer::open(&editor, "b.rs", WEEK);
    assert_eq!(buffer.complete(), None);
    let said = home.output(&["why"]);
    assert!(said.contains("b.rs:1  Completions are switched off."), "{said}");
    assert!(!buffer.ask().is_empty(), "an invoked completion is answered");
    assert_eq!(home.status()["completions_paused"], true);
    assert_eq!(
        home.status()["learner"]["state"],
        "idle",
        "pausing completions does not pause learning"
    );
    assert!(home.output(&["status"]).contains("hone resume completions"));
    let lines: Vec<_> = editor.take_notifications().into_iter().map(|told| told.params).collect();
    let says_paused =
        |line: &serde_json::Value| line["message"] == "smollm2-135m, completions paused";
    assert!(lines.iter().any(says_paused), "{lines:?}");

    drop(editor);
    home.output(&["stop"]);
    let config = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    assert!(config.contains("enabled = false"), "{config}");
    assert_eq!(home.status()["completions_paused"], true);
    let editor = home.editor();
    assert_eq!(
        Buffer::open(&editor, "c.rs", WEEK).complete(),
        None,
        "the next daemon is paused too"
    );
    let said = home.output(&["resume", "completions", "learning"]);
    assert_eq!(said, "learning continues\ncompletions are offered as you type\n");
    assert!(Buffer::open(&editor, "d.rs", WEEK).complete().is_some());
}
