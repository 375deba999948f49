//! A client's messages as they arrive over the wire, with whatever it gets wrong.

mod connections;
mod reports;

use crate::testing::daemon::{Editor, TestDaemon};
use completion::document::Position;
use feedback::event::EventKind;
use feedback::log::EventLog;
use serde_json::{Value, json};
use std::ops::ControlFlow;

const CURSOR: Position = Position { line: 0, column: 9 };
const TEXT: &str = "let x = f\n";

async fn daemon() -> TestDaemon {
    TestDaemon::start(fixtures::engine(&["oo(bar);"])).await
}

/// The paths that are recorded, in their order.
fn paths(daemon: &TestDaemon) -> Vec<String> {
    daemon.log.flush().unwrap();
    let mut paths = vec![];
    let reading = daemon.log.scan(0, &mut |event| {
        if let EventKind::Completion(made) = event.kind {
            paths.push(made.path);
        }
        ControlFlow::Continue(())
    });
    reading.unwrap();
    paths
}

async fn complete(editor: &mut Editor, uri: &str) -> Value {
    let (id, request) = editor.completion(uri, CURSOR);
    editor.send(&request).await;
    editor.until(|message| message["id"] == id && message["method"].is_null()).await
}

async fn logged(editor: &mut Editor) -> String {
    let logged = editor.until(|message| message["method"] == "window/logMessage").await;
    logged["params"]["message"].as_str().unwrap().to_owned()
}

/// The transport dropped the opening of a document without a word if its address lacked the
/// percent-encoding, and every request in it was an error.
#[tokio::test]
async fn an_address_is_read_as_it_is_meant() {
    let daemon = daemon().await;
    let mut editor = Editor::over(daemon.connect()).await;
    for (uri, path) in [
        ("file:///project/[id].ts", "/project/[id].ts"),
        ("file:///project/a b.py", "/project/a b.py"),
        ("file:///project/ü.py", "/project/ü.py"),
        ("file:///project/100%.py", "/project/100%.py"),
        ("/project/path.py", "/project/path.py"),
        ("file://server/share/x.py", "file://server/share/x.py"),
        ("vscode-remote://ssh-remote+box/x.py", "vscode-remote://ssh-remote+box/x.py"),
        ("untitled:Unbenannt 1", "untitled:Unbenannt%201"),
        ("git:/project/x.py?{\"ref\":\"HEAD\"}", "git:/project/x.py?%7B%22ref%22:%22HEAD%22%7D"),
    ] {
        editor.open(uri, TEXT).await;
        let answer = complete(&mut editor, uri).await;
        assert_eq!(answer["result"]["items"][0]["insertText"], "oo(bar);", "{uri}: {answer}");
        assert_eq!(paths(&daemon).last().unwrap(), path);
    }
    let answer = complete(&mut editor, "file:///project/%5Bid%5D.ts").await;
    assert_eq!(answer["error"], Value::Null, "it is the same document: {answer}");
}

#[tokio::test]
async fn a_message_that_cannot_be_read_is_named_once_and_its_document_is_not_served() {
    let daemon = daemon().await;
    let mut editor = Editor::over(daemon.connect()).await;
    let uri = "file:///project/a.rs";
    editor.open(uri, TEXT).await;
    let change = json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
        "textDocument": {"uri": uri, "version": 2}, "z": "a text that is cut"}});
    let whole = change.to_string();
    let broken = whole.trim_end_matches(['"', '}']);
    editor.send_raw(broken.as_bytes()).await;
    let answer = editor.answer().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
    let message = logged(&mut editor).await;
    assert_eq!(
        message,
        format!(
            "{uri}: textDocument/didChange is no JSON-RPC message, so editor and server are out of \
             step: close and open the file again"
        )
    );
    editor.send_raw(broken.as_bytes()).await;
    editor.send(&editor.change(uri, CURSOR, "x")).await;
    let (id, request) = editor.completion(uri, CURSOR);
    editor.send(&request).await;
    let again = std::cell::Cell::new(0);
    let answer = editor.until(|message| {
        again.set(again.get() + usize::from(message["method"] == "window/logMessage"));
        message["id"] == id && message["method"].is_null()
    });
    let answer = answer.await;
    assert_eq!((&answer["error"]["message"], again.get()), (&json!(message), 0));

    editor.open(uri, TEXT).await;
    assert_eq!(complete(&mut editor, uri).await["result"]["items"].as_array().unwrap().len(), 1);

    let document = json!({"uri": "file:///project/b.rs", "languageId": "rust", "version": 1});
    let opened = editor.notification("textDocument/didOpen", json!({"textDocument": document}));
    editor.send(&opened).await;
    assert_eq!(
        logged(&mut editor).await,
        "file:///project/b.rs: textDocument/didOpen cannot be read (missing field `text`), so \
         nothing is completed there"
    );
}

#[tokio::test]
async fn half_a_character_is_read_as_an_unknown_one() {
    let daemon = daemon().await;
    let mut editor = Editor::over(daemon.connect()).await;
    let uri = "file:///project/a.rs";
    editor.open(uri, TEXT).await;
    let change = json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
        "textDocument": {"uri": uri, "version": 2},
        "contentChanges": [{"text": "// -HALF-\nlet x = f\n"}]}});
    editor.send_raw(change.to_string().replace("-HALF-", r"\ud83d").as_bytes()).await;
    let (id, request) = editor.completion(uri, Position { line: 1, column: 9 });
    editor.send(&request).await;
    let answer = editor.answer().await;
    assert_eq!(answer["id"], id, "nothing is answered with an error: {answer}");
    assert_eq!(answer["result"]["items"].as_array().unwrap().len(), 1);
}

fn cell(name: &str) -> String {
    format!("vscode-notebook-cell:/project/n.ipynb#{name}")
}

#[tokio::test]
async fn the_cells_of_a_notebook_are_served_and_recorded_under_it() {
    let daemon = daemon().await;
    let (_, plain) = Editor::with(daemon.connect(), json!({})).await;
    assert_eq!(plain["notebookDocumentSync"], Value::Null, "the client has no notebooks");
    let capabilities = json!({"notebookDocument": {"synchronization": {}}});
    let (mut editor, can) = Editor::with(daemon.connect(), capabilities).await;
    assert_eq!(can["notebookDocumentSync"]["notebookSelector"], json!([{"notebook": "*"}]));

    let item =
        |name: &str| json!({"uri": cell(name), "languageId": "python", "version": 1, "text": TEXT});
    let run = json!({"executionOrder": null});
    let kind = |name: &str| json!({"kind": 2, "document": cell(name), "executionSummary": run});
    let notebook = json!({"uri": "file:///project/n.ipynb", "version": 1, "notebookType": "jupyter",
        "metadata": null, "cells": [kind("a"), kind("b")]});
    let opened = json!({"notebookDocument": notebook, "cellTextDocuments": [item("a"), item("b")]});
    editor.send(&editor.notification("notebookDocument/didOpen", opened)).await;
    let change = json!({"notebookDocument": {"uri": "file:///project/n.ipynb", "version": 2},
        "change": {"cells": {
            "structure": {"array": {"start": 1, "deleteCount": 1, "cells": [kind("c")]},
                "didOpen": [item("c")], "didClose": [{"uri": cell("b")}]},
            "textContent": [{"document": {"uri": cell("a"), "version": 2},
                "changes": [{"text": TEXT}]}]}}});
    editor.send(&editor.notification("notebookDocument/didChange", change)).await;
    for name in ["a", "c"] {
        let answer = complete(&mut editor, &cell(name)).await;
        assert_eq!(answer["result"]["items"].as_array().unwrap().len(), 1, "{name}: {answer}");
    }
    assert_eq!(paths(&daemon), ["/project/n.ipynb", "/project/n.ipynb"]);
    assert!(complete(&mut editor, &cell("b")).await["error"].is_object(), "it was removed");

    let closed = json!({"notebookDocument": {"uri": "file:///project/n.ipynb"},
        "cellTextDocuments": [{"uri": cell("a")}, {"uri": cell("c")}]});
    editor.send(&editor.notification("notebookDocument/didClose", closed)).await;
    assert!(complete(&mut editor, &cell("a")).await["error"].is_object(), "it is closed");
}
