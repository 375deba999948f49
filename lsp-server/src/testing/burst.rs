//! A burst of edits, as by a macro or a key that is held down: they come faster than the engine can
//! abort a request.

use crate::testing::daemon::{Editor, TestDaemon};
use completion::document::Position;
use engine::scripted::ScriptedEngine;
use engine::{Engine, EngineError, Request};
use fixtures::HookedEngine;
use serde_json::{Value, json};
use std::sync::mpsc::{Receiver, channel};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const URI: &str = "file:///a.rs";
const EDITS: u32 = 200;
const CANCELLED: i64 = -32800;

/// An engine that takes as long with its first request as the test wants, aborted or not. It
/// reports the lines that it is asked to complete.
fn held_engine(asked: UnboundedSender<String>, hold: Receiver<()>) -> HookedEngine {
    let mut hold = Some(hold);
    let generate = Box::new(move |scripted: &mut ScriptedEngine, request: &Request, abort: &_| {
        asked.send(format!("{}{}", request.prompt.line, request.prompt.healing)).unwrap();
        if let Some(hold) = hold.take() {
            hold.recv().unwrap();
            return Err(EngineError::Aborted);
        }
        scripted.generate(request, abort)
    });
    HookedEngine { generate, ..fixtures::engine(&["call(x);"]).hooked() }
}

/// All requests wait for the engine at the same time, and it computes only the last.
#[tokio::test]
async fn only_the_last_of_200_edits_in_a_burst_is_computed() {
    let (asked, mut asks) = unbounded_channel();
    let (release, hold) = channel();
    let daemon = TestDaemon::start(held_engine(asked, hold)).await;
    let mut editor = Editor::over(daemon.connect()).await;
    editor.open(URI, "fn a() {\n    \n}\n").await;
    let mut at = Position { line: 1, column: 4 };
    let (first, request) = editor.completion(URI, at);
    editor.send(&request).await;
    assert_eq!(asks.recv().await.unwrap(), "    ");

    let mut last = first;
    for _ in 0..EDITS {
        let change = editor.change(URI, at, "x");
        at.column += 1;
        let (id, request) = editor.completion(URI, at);
        editor.send(&change).await;
        editor.send(&request).await;
        last = id;
    }
    // Messages are handled in order, so after this answer all have been handled.
    let (status, request) = editor.request("hone/status", Value::Null);
    editor.send(&request).await;
    let mut answers = vec![];
    while answers.last().is_none_or(|answer: &Value| answer["id"] != status) {
        answers.push(editor.answer().await);
    }
    answers.pop();
    release.send(()).unwrap();
    while answers.len() <= EDITS as usize {
        answers.push(editor.answer().await);
    }

    answers.sort_by_key(|answer| answer["id"].as_u64());
    let ids: Vec<u64> = answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    assert_eq!(ids, (first..=last).collect::<Vec<_>>(), "each request is answered once");
    let newest = answers.pop().unwrap();
    for answer in &answers {
        assert_eq!(answer["error"]["code"], CANCELLED, "{answer}");
    }
    let item = &newest["result"]["items"][0];
    assert_eq!(item["insertText"], "call(x);", "{newest}");
    let end = json!({"line": 1, "character": 4 + EDITS});
    assert_eq!(item["range"], json!({"start": end, "end": end}));
    let line = format!("    {}", "x".repeat(EDITS as usize));
    assert_eq!(asks.recv().await.unwrap(), line, "no request between them was computed");
    assert_eq!(daemon.app.services.recorder.counts().total, 1);
}
