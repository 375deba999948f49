//! Settings have one owner, `config.toml`: what is changed there by `hone config`
//! reaches the running daemon, and every client of it.

use rehearsal::client::{Client, TriggerKind};
use rehearsal::developer::document::Position;
use serde_json::{Value, json};
use tests::buffer::Buffer;
use tests::{Home, Model, QUICK};

/// Continued by `Thursday, Friday, …`.
const WEEK: &str = "// Monday, Tuesday, Wednesday, |\n";

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn offers(editor: &Client, uri: &str, language: &str, trigger: TriggerKind) -> usize {
    let line = "Monday, Tuesday, Wednesday, ";
    editor.open(uri, language, line).unwrap();
    let at = Position { line: 0, character: line.len() as u32 };
    editor.inline_completion(uri, at, trigger).unwrap().len()
}

#[test]
fn a_changed_setting_is_taken_by_the_running_daemon() {
    let home = home();
    let editor = home.editor();
    assert_eq!(Buffer::open(&editor, "a.rs", WEEK).complete().map(|_| ()), Some(()));
    assert_eq!(home.completions()[0].tokens.len(), 8);
    let said = home.output(&["config", "set", "completion.max_tokens", "3"]);
    assert_eq!(said, "completion.max_tokens = 3 from now on\n");
    Buffer::open(&editor, "b.rs", WEEK).complete();
    assert_eq!(home.completions()[1].tokens.len(), 3);
    assert_eq!(
        home.output(&["config", "get", "completion.max_tokens"]),
        "completion.max_tokens = 3\n"
    );

    home.output(&["config", "set", "completion.max_tokens"]);
    let all = json(&home.output(&["config", "get", "--json"]));
    assert_eq!(all["completion"]["max_tokens"], 32, "the default again");
    assert_eq!(all["completion"]["budget_ms"], 120_000, "the rest as it was");
}

#[test]
fn what_only_a_restart_takes_is_said() {
    let home = home();
    let _editor = home.editor();
    assert_eq!(home.status()["daemon"]["needs_restart"], false);
    let said = json(&home.output(&["config", "set", "--json", "model.threads", "2"]));
    assert_eq!(said, json!({"key": "model.threads", "value": 2, "restart": true}));
    assert_eq!(home.status()["daemon"]["needs_restart"], true);
    assert!(home.output(&["status"]).contains("`hone stop`"));
    home.output(&["config", "set", "model.threads", "1"]);
    assert_eq!(home.status()["daemon"]["needs_restart"], false, "as it was");
    home.output(&["model", "use", "qwen2.5-coder-0.5b"]);
    assert_eq!(home.status()["daemon"]["needs_restart"], true);
    home.output(&["stop"]);
    let said = json(&home.output(&["config", "set", "--json", "model.threads", "1"]));
    assert_eq!(said["restart"], false, "no daemon runs");
}

#[test]
fn a_value_that_would_not_load_is_refused_and_nothing_changes() {
    let home = home();
    let before = home.output(&["config", "get"]);
    let error = home.error(&["config", "set", "completion.temperature", "3"]);
    assert!(error.contains("completion.temperature must be from 0 to 2"), "{error}");
    let error = home.error(&["config", "set", "learning.enabled", "perhaps"]);
    assert!(error.contains("invalid type"), "{error}");
    let error = home.error(&["config", "set", "completion.token", "3"]);
    assert_eq!(error, "completion.token: no such setting; `hone config get` lists them");
    assert_eq!(home.output(&["config", "get"]), before);
}

#[test]
fn the_schema_tells_each_settings_default() {
    let home = home();
    home.configure("");
    let schema = json(&home.output(&["config", "schema", "--json"]));
    let defaults = json(&home.output(&["config", "get", "--json"]));
    for table in ["completion", "learning", "daemon"] {
        for (name, setting) in schema["properties"][table]["properties"].as_object().unwrap() {
            if name != "ppo" {
                assert_eq!(setting["default"], defaults[table][name], "{table}.{name}");
            }
        }
    }
}

#[test]
fn the_status_names_the_files() {
    let home = home();
    let expected = json!({
        "home": home.path(),
        "config": home.path().join("config.toml"),
        "socket": home.path().join("run/hone.sock"),
        "log": home.path().join("logs/daemon.log"),
    });
    assert_eq!(home.status()["paths"], expected, "without a daemon");
    let editor = home.editor();
    assert_eq!(editor.status().unwrap()["paths"], expected, "and with one");
    assert_eq!(home.output(&["config", "path"]).trim(), expected["config"].as_str().unwrap());
}

#[test]
fn a_language_is_switched_off_for_every_client_and_answers_when_asked() {
    let home = home();
    let (one, two) = (home.editor(), home.editor());
    home.output(&["config", "set", "completion.languages.markdown", "false"]);
    for (editor, name) in [(&one, "one"), (&two, "two")] {
        let (notes, more) = (format!("file:///{name}.md"), format!("file:///{name}-2.md"));
        assert_eq!(offers(editor, &notes, "markdown", TriggerKind::Automatic), 0);
        assert!(offers(editor, &more, "markdown", TriggerKind::Invoked) > 0);
        let code = format!("file:///{name}.rs");
        assert_eq!(offers(editor, &code, "rust", TriggerKind::Automatic), 1);
    }
    assert_eq!(home.status()["episodes"]["silent"], 0, "nothing was computed in vain");
    home.output(&["config", "set", "completion.languages.markdown"]);
    assert_eq!(offers(&one, "file:///later.md", "markdown", TriggerKind::Automatic), 1);
}

#[test]
fn files_are_left_alone_as_the_user_types_and_answered_when_asked() {
    let home = home();
    let editor = home.editor();
    home.output(&["config", "set", "completion.ignore", "[\"notes/\", \"*.min.rs\"]"]);
    let error = home.error(&["config", "set", "completion.ignore", "[\"a[\"]"]);
    assert!(error.contains("completion.ignore: \"a[\""), "{error}");
    for path in ["file:///p/notes/a.rs", "file:///p/a.min.rs"] {
        assert_eq!(offers(&editor, path, "rust", TriggerKind::Automatic), 0);
        let again = path.replace("a.", "b.");
        assert!(offers(&editor, &again, "rust", TriggerKind::Invoked) > 0);
    }
    assert_eq!(offers(&editor, "file:///p/a.rs", "rust", TriggerKind::Automatic), 1);
}
