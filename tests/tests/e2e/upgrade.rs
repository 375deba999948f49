//! A home that an earlier Hone has written opens: every event, the adapter and the settings. The
//! homes are committed, each named after the version that made it.

use rehearsal::client::Client;
use rehearsal::document::{Position, Range};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tests::buffer::{Buffer, WEEK, accept_one};
use tests::{Home, Model, QUICK, learn};

/// The settings of the home: an adapter of rank 1 is a small file.
const SETTINGS: &str = "lab.ppo.lora_rank = 1\ncompletion.next_edit = \"on\"\n";

/// What `hone events` printed when the home was made, one event a line.
const EVENTS: &str = "events.jsonl";

/// What a home keeps. The rest is the model, the socket and the log; and the state of the
/// optimizer, which does not get smaller, and without which learning goes on.
const KEPT: [&str; 5] = ["--exclude=*.optimizer", "config.toml", "data", "adapters", EVENTS];

fn archive(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("homes/{version}.tar.gz"))
}

fn tar(arguments: &[&str], archive: &Path, folder: &Path) {
    let mut tar = Command::new("tar");
    tar.arg(arguments[0]).arg(archive).arg("-C").arg(folder).args(&arguments[1..]);
    assert!(tar.status().expect("tar runs").success(), "{tar:?}");
}

/// Whether all that is in one value is in the other one too. Later versions add fields.
fn has(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| found.get(key).is_some_and(|own| has(own, value)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| has(a, b))
        }
        (found, expected) => found == expected,
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

#[test]
fn a_home_of_version_0_1_0_opens_and_goes_on() {
    let home = Home::with(Model::Smol, QUICK);
    tar(&["-xzf"], &archive("0.1.0"), home.path());
    let expected = lines(&std::fs::read_to_string(home.path().join(EVENTS)).unwrap());
    assert!(expected.len() > 10, "{} events", expected.len());
    let found = lines(&home.output(&["events", "--json", "--with-code"]));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!(has(found, expected), "{expected} has become {found}");
    }

    let editor = home.editor();
    let status = home.status();
    assert_eq!(
        (&status["adapter"]["active"], &status["adapter"]["parent"]),
        (&1.into(), &0.into())
    );
    let episodes = &status["episodes"];
    assert_eq!((&episodes["accepted"], &episodes["rejected_edit"]), (&2.into(), &1.into()));
    accept_one(&editor, "again.rs", WEEK);
    let said = learn(&editor);
    assert_eq!((&said["adapter"]["active"], &said["adapter"]["parent"]), (&2.into(), &1.into()));
    let log = home.daemon_log();
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

/// Makes the home of this version anew. `cargo test --release -p tests --test e2e -- --ignored
/// makes_the_home_of_this_version`
#[test]
#[ignore = "it replaces a committed file"]
fn makes_the_home_of_this_version() {
    let home = Home::with(Model::Smol, &format!("{QUICK}{SETTINGS}"));
    let editor = home.editor();
    for name in ["forgotten.rs", "first.rs", "second.rs"] {
        accept_one(&editor, name, WEEK);
        home.output(&["forget", "--file", "/project/forgotten.rs", "--yes"]);
    }
    let mut other = Buffer::open(&editor, "other.rs", WEEK);
    other.offer();
    other.type_text("x");
    rename_twice(&editor);
    learn(&editor);
    home.output(&["stop"]);
    let events = home.output(&["events", "--json", "--with-code"]);
    std::fs::write(home.path().join(EVENTS), events).unwrap();
    let mut arguments = vec!["-czf"];
    arguments.extend(KEPT);
    let archive = archive(env!("CARGO_PKG_VERSION"));
    std::fs::create_dir_all(archive.parent().unwrap()).unwrap();
    tar(&arguments, &archive, home.path());
}

/// Makes the same edit in two lines, and takes the next one.
fn rename_twice(editor: &Client) {
    let uri = "file:///project/renamed.rs";
    let text: String = (1..5).map(|at| format!("file.load({at});\n")).collect();
    editor.open(uri, "rust", &text).unwrap();
    let name = |line| {
        let at = |character| Position { line, character };
        Range { start: at(5), end: at(9) }
    };
    for line in 0..2 {
        editor.change(uri, Some(name(line)), "fetch").unwrap();
    }
    let asked = serde_json::json!({
        "textDocument": { "uri": uri, "version": 3 },
        "position": { "line": 1, "character": 0 },
    });
    let answer = editor.request("textDocument/copilotInlineEdit", asked).unwrap();
    assert_eq!(answer["edits"].as_array().map(Vec::len), Some(1), "{answer}");
    editor.change(uri, Some(name(2)), "fetch").unwrap();
}
