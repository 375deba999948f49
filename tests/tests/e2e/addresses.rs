//! Documents with addresses of every kind, and messages that cannot be read: nothing that an editor
//! sends is lost silently.

use models::gguf::Gguf;
use models::vocab::Vocab;
use rehearsal::client::{Client, Item, TriggerKind};
use rehearsal::document::Position;
use serde_json::json;
use tests::processes::signal;
use tests::{Home, Model, PATIENCE, QUICK, eventually};

const WEEK: &str = "// Monday, Tuesday, Wednesday, ";

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

/// The offers at the end of the first line of a document.
fn ask(editor: &Client, uri: &str) -> Result<Vec<Item>, String> {
    let at = Position { line: 0, character: WEEK.len() as u32 };
    let offers = editor.inline_completion(uri, at, TriggerKind::Automatic);
    offers.map_err(|error| error.to_string())
}

fn paths(home: &Home) -> Vec<String> {
    home.completions().into_iter().map(|completion| completion.path).collect()
}

const REMOTE: &str = "vscode-remote://ssh-remote%2Bbox/project/far.py";

/// A document of another machine was recorded under the path that it has there, so that this
/// machine's rules decided about it, and forgetting a file of this machine forgot it too.
#[test]
fn a_document_of_another_machine_has_its_address_as_its_name() {
    let home = home();
    let editor = home.editor();
    let unsaved = "untitled:Untitled-7";
    for uri in [REMOTE, "file:///project/far.py", unsaved, "file:///project/[id].ts"] {
        editor.open(uri, "rust", WEEK).unwrap();
        assert_eq!(ask(&editor, uri).unwrap().len(), 1, "{uri}");
    }
    assert_eq!(paths(&home), [REMOTE, "/project/far.py", unsaved, "/project/[id].ts"]);

    let forget = |file: &str| home.output(&["forget", "--file", file, "--yes"]);
    let told = forget("vscode-remote://ssh-remote+elsewhere/project/far.py");
    assert!(told.starts_with("nothing is recorded about"), "{told}");
    assert_eq!(paths(&home).len(), 4);
    assert_eq!(forget("/project/far.py"), "forgotten: 1 offer\n");
    assert_eq!(paths(&home), [REMOTE, unsaved, "/project/[id].ts"]);
    assert_eq!(forget(REMOTE), "forgotten: 1 offer\n");
    assert_eq!(forget(unsaved), "forgotten: 1 offer\n");
    assert_eq!(forget("file:///project/%5Bid%5D.ts"), "forgotten: 1 offer\n");
    assert!(home.events().is_empty());
}

/// The opening of a document of 69 MB was "no JSON-RPC message", and every later request in it said
/// that it was never opened.
#[test]
fn a_message_that_is_too_long_is_named_and_its_document_is_not_served() {
    let home = home();
    let editor = home.editor();
    let uri = "file:///project/dump.sql";
    editor.open(uri, "sql", &"x".repeat(69_000_000)).unwrap();
    let warning = editor.wait_notification("window/logMessage", PATIENCE).expect("a warning");
    let message = warning.params["message"].as_str().unwrap();
    let expected = format!(
        "{uri}: textDocument/didOpen has 66 MiB, and Hone reads at most 64 MiB, so nothing is \
         completed there"
    );
    assert_eq!(message, expected);
    let error = ask(&editor, uri).unwrap_err();
    assert!(error.contains(&expected), "{error}");

    let long = json!({"text": "x".repeat(69_000_000)});
    let error = editor.request("workspace/executeCommand", long).unwrap_err().to_string();
    let expected = "workspace/executeCommand has 66 MiB, and Hone reads at most 64 MiB";
    assert!(error.contains(expected), "{error}");

    editor.open(uri, "rust", WEEK).unwrap();
    assert_eq!(ask(&editor, uri).unwrap().len(), 1, "the connection continues");
}

fn cell(name: &str) -> String {
    format!("vscode-notebook-cell:/project/week.ipynb#{name}")
}

/// The prompts in a cell hold the cells above. A new daemon gets the notebook too.
#[test]
fn cells_are_completed_with_the_cells_above_and_after_a_crash() {
    let home = home();
    let editor = home.editor();
    let above = "// Days of the week\n";
    let item = |name: &str, text: &str| {
        let uri = cell(name);
        json!({"uri": uri, "languageId": "rust", "version": 1, "text": text})
    };
    let kind = |name: &str| json!({"kind": 2, "document": cell(name)});
    let notebook = json!({"uri": "file:///project/week.ipynb", "notebookType": "jupyter-notebook",
        "version": 1, "cells": [kind("a"), kind("b")]});
    let opened = json!({"notebookDocument": notebook,
        "cellTextDocuments": [item("a", above), item("b", WEEK)]});
    editor.notify("notebookDocument/didOpen", opened).unwrap();
    assert_eq!(ask(&editor, &cell("b")).unwrap().len(), 1);

    let pid = home.daemon_pid().unwrap();
    assert!(signal("-9", pid));
    eventually("another daemon", || home.daemon_pid().is_some_and(|now| now != pid));
    assert_eq!(ask(&editor, &cell("b")).unwrap().len(), 1);

    let vocab = Vocab::from_gguf(&Gguf::open(&Model::Smol.file()).unwrap()).unwrap();
    // The log of a daemon that is killed may lack the last offer.
    let completions = home.completions();
    assert!(!completions.is_empty());
    for completion in completions {
        assert_eq!(completion.path, "/project/week.ipynb");
        let prompt = completion.prompt.iter().flat_map(|id| vocab.piece(*id).to_vec());
        let mut prompt: Vec<u8> = prompt.collect();
        prompt.extend(completion.healing.as_bytes());
        assert_eq!(String::from_utf8(prompt).unwrap(), format!("{above}\n{WEEK}"));
    }
}
