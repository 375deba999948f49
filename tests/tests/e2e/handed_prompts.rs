//! The learner takes what the engine has computed of a prompt, and nothing of it stays on disk that
//! is learned, forgotten or not to be stored.

use feedback::job::UpdateReport;
use rehearsal::client::Client;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK, eventually, learn};

/// The time after which a prompt is written that nothing newer follows.
const SETTLED: Duration = Duration::from_millis(400);

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

/// A text whose prompt is long enough that it is kept.
fn long() -> String {
    let above: String =
        (1..9).map(|n| format!("fn step_{n}(x: u32) -> u32 {{ x + {n} }}\n")).collect();
    above + WEEK
}

/// All files for prompts, also those that are being written.
fn files(home: &Home) -> Vec<PathBuf> {
    let folder = home.path().join("prompts").read_dir().expect("a folder for prompts");
    folder.map(|file| file.expect("a file").path()).collect()
}

/// The files that are written to their end. Until then a file has a name of its own, which begins
/// with a dot.
fn prompts(home: &Home) -> Vec<PathBuf> {
    let is_whole =
        |file: &Path| file.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'));
    files(home).into_iter().filter(|file| is_whole(file)).collect()
}

fn offer(home: &Home, editor: &Client, name: &str) {
    let mut buffer = Buffer::open(editor, name, &long());
    let offer = buffer.offer();
    editor.did_show(&offer).expect("didShowCompletion is sent");
    eventually("the prompt is kept", || !prompts(home).is_empty());
    buffer.accept(&offer);
}

fn report(home: &Home) -> UpdateReport {
    let newest = home.registry()["adapters"].as_array().and_then(|all| all.last()).cloned();
    serde_json::from_value(newest.expect("an adapter")["report"].take()).expect("a report")
}

#[test]
fn an_update_takes_the_prompt_from_the_engine_and_leaves_nothing_of_it() {
    let home = home();
    let editor = home.editor_with(&["lsp"]);
    offer(&home, &editor, "days.rs");
    learn(&editor);
    let report = report(&home);
    assert!(report.prompts_known > 0, "{report:?}");
    // The learner scores what the engine has said on the engine's own keys and values.
    assert!(report.mismatch.count > 0 && report.mismatch.mean < 0.075, "{:?}", report.mismatch);
    eventually("the prompt is removed", || files(&home).is_empty());
}

#[test]
fn a_damaged_prompt_is_computed_by_the_learner() {
    let home = home();
    let editor = home.editor_with(&["lsp"]);
    offer(&home, &editor, "days.rs");
    for file in prompts(&home) {
        std::fs::write(file, b"cut off").unwrap();
    }
    learn(&editor);
    let report = report(&home);
    assert_eq!(report.prompts_known, 0);
    assert!(report.mismatch.count > 0 && report.mismatch.mean < 0.075, "{:?}", report.mismatch);
}

#[test]
fn nothing_stays_of_a_prompt_that_is_forgotten_or_not_to_be_stored() {
    let home = home();
    let editor = home.editor_with(&["lsp"]);
    let ignored = Buffer::open(&editor, "secrets.yaml", &long());
    assert!(ignored.complete().is_some(), "offers work everywhere");
    std::thread::sleep(2 * SETTLED);
    assert!(files(&home).is_empty(), "the prompt of an ignored file is on disk");
    offer(&home, &editor, "days.rs");
    home.output(&["forget", "--file", "/project/days.rs", "--yes"]);
    assert!(files(&home).is_empty());
}
