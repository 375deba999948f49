//! `hone rehearse --recording`: a recorded session is played key by key, and each offer is compared
//! with what the person wrote next.

use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use tests::{Home, Model, hone};

const BEFORE: &str = "def first(count):\n    return count + 1\n\n\ndef second(count):\n    return \
                      count + 1\n\n\ndef third(count):\n    \n";

/// What the person writes on the last line.
const WRITTEN: &str = "return count + 1";

/// A session in which the person looks at an offer for eight seconds, and then writes the line.
/// They write another one below it.
fn session() -> Vec<Value> {
    let at = BEFORE.len() - 1;
    let mut log = vec![
        json!({"kind": "header", "documentType": "workspaceRecording@1.0", "time": 1}),
        json!({"kind": "documentEncountered", "id": 7, "relativePath": "src/counts.py", "time": 2}),
        json!({"kind": "setContent", "id": 7, "content": BEFORE, "v": 1, "time": 3}),
        json!({"kind": "focused", "id": 7, "time": 4}),
        json!({"kind": "selectionChanged", "id": 7, "selection": [[at, at]], "time": 5}),
        json!({"kind": "documentEvent", "id": 7, "time": 6,
               "data": {"sourceId": "InlineCompletions.fetch", "kind": "start", "requestId": 1}}),
    ];
    let keys = WRITTEN.chars().chain("\nx".chars()).enumerate();
    log.extend(keys.map(|(index, key)| {
        let place = at + index;
        json!({"kind": "changed", "id": 7, "edit": [[place, place, key.to_string()]],
               "v": 2 + index, "time": 8_000 + 100 * index})
    }));
    log
}

/// Writes a recording with one entry a line.
fn write(folder: &Path, log: &[Value]) -> PathBuf {
    let entries: Vec<String> = log.iter().map(Value::to_string).collect();
    let path = folder.join("day.json");
    fs::write(&path, format!("{{\"log\": [\n{}\n]}}\n", entries.join(",\n"))).unwrap();
    path
}

fn play(recording: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(hone());
    command.args(["rehearse", "--recording"]).arg(recording).args(more);
    command.arg("--model").arg(Model::Smol.file()).args(["--template", "prefix-only"]);
    command.args(["--arm", "all=frozen,lab.min_token_probability=0,model.threads=1"]);
    command.output().unwrap()
}

fn counts<const N: usize>(figures: &Value, names: [&str; N]) -> [u64; N] {
    names.map(|name| figures[name].as_u64().unwrap_or_else(|| panic!("{name}: {figures}")))
}

#[test]
fn offers_are_compared_with_what_the_person_wrote_next() {
    let folder = TempDir::new().unwrap();
    let output = play(&write(folder.path(), &session()), &["--json", "--latency", "500"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    let figures = &report["arms"][0];
    assert_eq!(report["fault"], Value::Null);
    let names = ["entries", "of_entries", "asked", "late", "stale", "shown", "right", "exact"];
    assert_eq!(counts(figures, names), [24, 24, 1, 0, 0, 1, 1, 1]);
    assert_eq!(counts(figures, ["characters_put_in", "characters_right"]), [18, 16]);
    // The line was typed as it was offered, which the daemon tells from the document.
    assert_eq!(counts(&figures["labels"], ["total", "typed_through"]), [1, 1]);
    // From the answer until the last character of the line was typed.
    assert_eq!(figures["seconds_on_screen"], json!(8.994));
}

/// The person rests for eight seconds.
#[test]
fn an_answer_that_comes_after_the_next_key_is_not_shown() {
    let folder = TempDir::new().unwrap();
    let recording = write(folder.path(), &session());
    let output = play(&recording, &["--json", "--latency", "8000"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    assert_eq!(counts(&report["arms"][0], ["asked", "late", "shown"]), [1, 1, 0]);
}

#[test]
fn a_fault_is_named_and_what_stands_before_it_counts() {
    let folder = TempDir::new().unwrap();
    let mut log = session();
    log[10]["edit"] = json!([[9_999, 9_999, "x"]]);
    let recording = write(folder.path(), &log);
    let output = play(&recording, &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    let place = format!("{}:12: entry 11: offset 9999 is past the end", recording.display());
    assert!(told.contains(&place), "{told}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.starts_with("10 of 10 entries"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn a_part_of_a_recording_can_be_played() {
    let folder = TempDir::new().unwrap();
    let recording = write(folder.path(), &session());
    let output = play(&recording, &["--json", "--limit", "8"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    let figures = &report["arms"][0];
    assert_eq!(counts(figures, ["entries", "characters_put_in"]), [8, 2]);
    assert_eq!(figures["ended_by"], "limit");
}

/// What VS Code does for `Hone: Record This Session`.
#[test]
fn what_an_editor_records_can_be_played_and_goes_with_what_is_forgotten() {
    let home = Home::empty();
    let project = TempDir::new().unwrap();
    let address = |name: &str| format!("file://{}", project.path().join(name).display());
    let mut log = session();
    log[1]["uri"] = json!(address("src/counts.py"));
    log[1]["languageId"] = json!("python");
    let ignored = [
        json!({"kind": "documentEncountered", "id": 8, "relativePath": ".env",
               "uri": address(".env"), "languageId": "dotenv", "time": 9}),
        json!({"kind": "setContent", "id": 8, "content": "NAME=canary\n", "v": 1, "time": 10}),
        json!({"kind": "changed", "id": 8, "edit": [[0, 0, "x"]], "v": 2, "time": 11}),
    ];
    let mut recorder = home.hone();
    recorder.arg("record").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut recorder = recorder.spawn().unwrap();
    let mut stdin = recorder.stdin.take().unwrap();
    for entry in log[..6].iter().chain(&ignored).chain(&log[6..]) {
        writeln!(stdin, "{entry}").unwrap();
    }
    drop(stdin);
    let printed = recorder.wait_with_output().unwrap();
    assert!(printed.status.success());
    let printed: Value = serde_json::from_slice(&printed.stdout).expect("it prints JSON");
    assert_eq!(counts(&printed, ["entries", "left_out"]), [24, 1]);
    let path = PathBuf::from(printed["path"].as_str().unwrap());
    assert!(path.starts_with(home.path()), "{}", path.display());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&path).unwrap().contains("canary"));

    let output = play(&path, &["--json", "--latency", "500"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    assert_eq!(counts(&report["arms"][0], ["entries", "right"]), [24, 1]);
    home.output(&["forget", "--file", "/project/other.py", "--yes"]);
    assert!(!path.exists(), "what was typed there may have come from anywhere");
}

#[test]
fn what_is_no_recording_is_an_error() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("day.json");
    fs::write(&path, "{\"events\": []}").unwrap();
    for (file, says) in [(path.as_path(), "it has no `log`"), (folder.path(), "cannot read")] {
        let output = play(file, &[]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{told}");
        assert!(told.contains(says) && told.contains("day.json") | file.is_dir(), "{told}");
    }
}
