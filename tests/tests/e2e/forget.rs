//! Forgetting removes a file's text from the disk and from every adapter in use. The tests look
//! at each byte and at each adapter.

use serde_json::{Value, json};
use tests::buffer::{Buffer, WEEK, accept_one};
use tests::disk::on_disk;
use tests::{Home, Model, QUICK, eventually, learn};

/// The model continues it by the canary once more.
const CANARY: &str = "// Canary7391, Canary7391, Canary7391, |\n";
const SECRET: &str = "/project/secret.rs";
/// The file in a home that keeps the times the clock has shown.
const CLOCK_HISTORY: &str = "data/clock.json";

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

fn forget(home: &Home) -> Value {
    let answer = home.output(&["forget", "--file", SECRET, "--yes", "--json"]);
    serde_json::from_str(&answer).expect("JSON")
}

/// Prompts that the last daemon handed to the learner may quote what is forgotten.
#[test]
fn the_prompts_of_an_ended_daemon_go_too() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "secret.rs", CANARY);
    drop(editor);
    home.output(&["stop"]);
    let prompts = home.path().join("prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    std::fs::write(prompts.join("left"), "numbers").unwrap();
    home.output(&["forget", "--since", "1h", "--yes"]);
    assert!(!prompts.join("left").exists());
}

fn waiting(home: &Home) -> Value {
    home.status()["learner"]["waiting"].clone()
}

#[test]
fn a_forgotten_file_is_gone_from_the_disk_and_from_what_serves() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "week.rs", WEEK);
    learn(&editor);
    accept_one(&editor, "secret.rs", CANARY);
    learn(&editor);
    // One label waits, and one offer is still open.
    accept_one(&editor, "secret.rs", CANARY);
    Buffer::open(&editor, "secret.rs", CANARY).offer();
    editor.status().unwrap();
    assert!(on_disk(home.path(), "Canary7391") && on_disk(home.path(), SECRET));
    assert!(home.path().join("adapters/v0002.gguf").exists());

    let done = forget(&home);
    assert_eq!((&done["offers"], &done["adapters"]), (&json!(3), &json!([2])), "{done}");
    assert_eq!(done["serves"], 1);
    assert!(!on_disk(home.path(), "Canary7391") && !on_disk(home.path(), SECRET));
    for file in ["v0002.gguf", "v0002.optimizer"] {
        assert!(!home.path().join("adapters").join(file).exists(), "{file}");
    }
    let left: Vec<_> = home.completions().into_iter().map(|completion| completion.path).collect();
    assert_eq!(left, ["/project/week.rs"]);
    assert_eq!(waiting(&home), 0);

    Buffer::open(&editor, "week.rs", WEEK).complete();
    assert_eq!(home.completions()[1].adapter, 1, "the change holds for the next completion");
    let error = home.error(&["adapter", "use", "2"]);
    assert!(error.contains("learned from what was forgotten"), "{error}");
    drop(editor);
    home.output(&["stop"]);
    let status = home.status();
    assert_eq!(
        (&status["adapter"]["active"], &status["episodes"]["total"]),
        (&1.into(), &2.into())
    );
    assert_eq!(forget(&home)["events"], 0, "nothing is left to forget");
}

#[test]
fn the_other_labels_of_a_withdrawn_adapter_wait_again() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "week.rs", WEEK);
    accept_one(&editor, "secret.rs", CANARY);
    learn(&editor);
    assert_eq!(waiting(&home), 0);
    let uri = json!({"uri": format!("file://{SECRET}")});
    let done = editor.request("hone/forget", uri).unwrap();
    assert_eq!((&done["adapters"], &done["serves"]), (&json!([1]), &json!(0)));
    assert_eq!(waiting(&home), 1);
    let status = learn(&editor);
    assert_eq!(status["adapter"]["active"], 2, "a number is never used twice");
    assert_eq!(home.registry()["adapters"][1]["parent"], 0);
}

#[test]
fn a_file_is_forgotten_without_a_daemon() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "secret.rs", CANARY);
    learn(&editor);
    drop(editor);
    home.output(&["stop"]);
    let done = forget(&home);
    assert_eq!((&done["adapters"], &done["serves"]), (&json!([1]), &json!(0)));
    assert!(!on_disk(home.path(), "Canary7391"));
    assert_eq!(home.status()["adapter"]["active"], 0);
}

/// The learner still has the forgotten episodes. The adapter that it makes of them must not
/// serve.
#[test]
fn an_update_under_way_is_not_served_and_leaves_nothing() {
    let mut home = home();
    let hold = home.hold_learner();
    std::fs::write(&hold, "").expect("a hold");
    let editor = home.editor();
    accept_one(&editor, "week.rs", WEEK);
    accept_one(&editor, "secret.rs", CANARY);
    assert!(editor.learn().expect("an answer").started);
    eventually("the update starts", || home.status()["learner"]["state"] == "training");
    assert_eq!(forget(&home)["offers"], 1);
    std::fs::remove_file(&hold).expect("the hold ends");
    eventually("the update ends", || home.status()["learner"]["state"] != "training");
    let status = home.status();
    assert_eq!((&status["adapter"]["active"], waiting(&home)), (&json!(0), json!(1)));
    let files = std::fs::read_dir(home.path().join("adapters")).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with('v')), "{names:?}");
}

#[test]
fn nothing_is_forgotten_without_a_yes() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "secret.rs", CANARY);
    let error = home.error(&["forget", "--file", SECRET]);
    assert_eq!(error, "nothing was forgotten: this would remove 1 offer; say --yes");
    assert_eq!(home.completions().len(), 1);
    let other = home.output(&["forget", "--file", "/project/other.rs"]);
    assert_eq!(other, "nothing is recorded about /project/other.rs\n");
    let done = home.output(&["forget", "--file", SECRET, "--yes"]);
    assert_eq!(done, "forgotten: 1 offer\n");
}

fn forget_by(home: &Home, scope: &[&str]) -> Value {
    let args = [&["forget"], scope, &["--yes", "--json"]].concat();
    serde_json::from_str(&home.output(&args)).expect("JSON")
}

fn paths(home: &Home) -> Vec<String> {
    home.completions().into_iter().map(|completion| completion.path).collect()
}

/// Files next to the registry and its copy.
fn adapter_files(home: &Home) -> Vec<String> {
    let files = std::fs::read_dir(home.path().join("adapters")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with("registry.")).collect()
}

#[test]
fn a_folder_goes_with_all_below_it_and_nothing_next_to_it() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "clients/week.rs", WEEK);
    learn(&editor);
    accept_one(&editor, "client/a.rs", CANARY);
    accept_one(&editor, "client/deep/b.rs", CANARY);
    learn(&editor);
    let folder = ["--folder", "/project/client/"];
    let error = home.error(&["forget", folder[0], folder[1]]);
    assert!(error.contains("this would remove 2 offers and adapter v2"), "{error}");
    let done = forget_by(&home, &folder);
    assert_eq!((&done["offers"], &done["adapters"]), (&json!(2), &json!([2])), "{done}");
    assert_eq!(
        (&done["serves"], paths(&home)),
        (&json!(1), vec!["/project/clients/week.rs".into()])
    );
    assert!(!on_disk(home.path(), "Canary7391") && !on_disk(home.path(), "client/deep"));
    assert!(home.error(&["forget", "--folder", "", "--yes"]).contains("--all"));
}

/// The manual clock starts at the first minute of 2026.
#[test]
fn the_last_hours_go_and_what_was_learned_before_serves() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "week.rs", WEEK);
    learn(&editor);
    editor.request("hone/advanceClock", json!({"ms": 2 * 3_600_000})).unwrap();
    accept_one(&editor, "secret.rs", CANARY);
    learn(&editor);
    let since = ["--since", "2026-01-01T01:00:00Z"];
    let done = forget_by(&home, &since);
    assert_eq!((&done["offers"], &done["adapters"]), (&json!(1), &json!([2])), "{done}");
    assert_eq!((&done["serves"], paths(&home)), (&json!(1), vec!["/project/week.rs".into()]));
    assert!(!on_disk(home.path(), "Canary7391"));
    Buffer::open(&editor, "week.rs", WEEK).complete();
    drop(editor);
    home.output(&["stop"]);
    let error = home.error(&["forget", "--since", "yesterday", "--yes"]);
    assert!(error.contains("say `2h`"), "{error}");
    assert_eq!(forget_by(&home, &["--since", "2026-01-01T01:30:00Z"])["offers"], 1);
    assert_eq!(forget_by(&home, &since)["events"], 0);
}

/// Forgets everything, and checks that nothing is left of adapter `version`.
fn forget_all(home: &Home, version: u32) {
    std::fs::write(home.path().join("adapters/v0009.gguf.tmp"), "left behind").unwrap();
    let done = forget_by(home, &["--all"]);
    assert_eq!((&done["adapters"], &done["serves"]), (&json!([version]), &json!(0)), "{done}");
    assert!(!on_disk(home.path(), "Canary7391") && !on_disk(home.path(), "secret.rs"));
    assert_eq!((home.events().len(), adapter_files(home)), (0, vec![]));
    assert_eq!((waiting(home), &home.status()["adapter"]["active"]), (json!(0), &json!(0)));
    assert_eq!(home.output(&["forget", "--all", "--yes"]), "nothing is recorded\n");
}

#[test]
fn everything_goes_and_completions_continue() {
    let home = home();
    let editor = home.editor();
    accept_one(&editor, "secret.rs", CANARY);
    learn(&editor);
    // One offer is still open.
    Buffer::open(&editor, "secret.rs", CANARY).offer();
    forget_all(&home, 1);
    eventually("the engine holds no prompt", || home.status()["model"]["memory"] == "given_back");
    accept_one(&editor, "other/secret.rs", CANARY);
    assert_eq!(home.completions()[0].adapter, 0);
    learn(&editor);
    drop(editor);
    home.output(&["stop"]);
    forget_all(&home, 2);
}

#[test]
fn what_is_older_than_the_retention_is_gone_the_next_day() {
    let home = Home::with(Model::Smol, &format!("privacy.retention_days = 2\n{QUICK}"));
    let editor = home.editor();
    accept_one(&editor, "secret.rs", CANARY);
    learn(&editor);
    let day = || editor.request("hone/advanceClock", json!({"ms": 25 * 3_600_000})).unwrap();
    let seen = || std::fs::read_to_string(home.path().join(CLOCK_HISTORY)).ok();
    eventually("the first day is seen", || seen().is_some());
    let first = seen();
    day();
    // If the daemon saw both days at once, it would take that for a leap of the clock, and
    // would wait a day before it believes it.
    eventually("the second day is seen", || seen() != first);
    accept_one(&editor, "week.rs", WEEK);
    assert_eq!(paths(&home).len(), 2, "it is a day old");
    day();
    eventually("the older one is gone", || paths(&home) == ["/project/week.rs"]);
    assert!(!on_disk(home.path(), "Canary7391"));
    let status = home.status();
    assert_eq!(
        (&status["adapter"]["active"], &status["episodes"]["total"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(waiting(&home), 1, "the label that is left");
    home.output(&["config", "set", "privacy.retention_days", "0"]);
    day();
    day();
    day();
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(paths(&home), ["/project/week.rs"]);
}

/// A clock that is set wrong, and then right again, must not make events look old.
#[test]
fn a_clock_that_leaps_ahead_forgets_nothing_until_it_has_stayed_for_a_day() {
    let home = Home::with(Model::Smol, &format!("privacy.retention_days = 2\n{QUICK}"));
    let editor = home.editor();
    accept_one(&editor, "week.rs", WEEK);
    let hours =
        |hours: u64| editor.request("hone/advanceClock", json!({"ms": hours * 3_600_000})).unwrap();
    let seen = || std::fs::read_to_string(home.path().join(CLOCK_HISTORY)).ok();
    eventually("the first day is seen", || seen().is_some());
    // Each is seen by itself: the first day is believed, and the leap is not.
    for ahead in [25, 400 * 24] {
        let before = seen();
        hours(ahead);
        eventually("it is seen", || seen() != before);
    }
    assert_eq!(paths(&home), ["/project/week.rs"]);
    hours(25);
    eventually("what is old is gone", || paths(&home).is_empty());
}

/// A rehearsal asks it about the files of a history.
#[test]
fn what_may_be_read_unasked_is_told() {
    use std::io::Write;
    let home = Home::with(Model::Smol, &format!("{QUICK}privacy.ignore = [\"*.sql\"]\n"));
    home.output(&["forget", "--file", SECRET, "--yes"]);
    let mut asked = home.hone();
    asked.arg("readable").stdin(std::process::Stdio::piped());
    let mut asked = asked.stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let paths = ["/project/a.rs", "/project/a.sql", SECRET].map(|path| format!("{path:?}\n"));
    asked.stdin.take().unwrap().write_all(paths.concat().as_bytes()).expect("it reads");
    let told = asked.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&told.stdout), "true\nfalse\nfalse\n");
}
