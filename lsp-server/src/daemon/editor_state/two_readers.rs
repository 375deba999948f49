//! The daemon and the forwarder's copy hold the same documents after the same messages, however odd
//! the messages are. A document that the daemon has refused must not be served after a restart.

use super::EditorState;
use crate::protocol::lost::LOST;
use crate::testing::daemon::{Editor, TestDaemon};
use host::addresses;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use session::Session;
use std::collections::BTreeMap;
use std::sync::Arc;

const STORIES: u64 = 150;
const MESSAGES: usize = 12;

const DOCUMENTS: &[&str] =
    &["file:///a.rs", "file:///[b].rs", "file:///%5Bb%5D.rs", "untitled:1", "cell:/n#a", "x", ""];
/// Notebooks with what may be their cells. A cell is one of one notebook.
const NOTEBOOKS: &[(&str, &[&str])] = &[
    ("file:///n.ipynb", &["cell:/n#a", "cell:/n#b", "cell:/n#[c]", "file:///a.rs"]),
    ("file:///[m].ipynb", &["cell:/m#a", "cell:/m#b"]),
];
const TEXTS: &[&str] = &["", "x", "fn a() {\n}\n", "😀é\r\n", "a\rb"];

struct Enemy(StdRng);

impl Enemy {
    fn one<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all.choose(&mut self.0).expect("some are given")
    }

    fn below(&mut self, end: u32) -> u32 {
        self.0.random_range(0..end)
    }

    fn document(&mut self, all: &[&str]) -> Value {
        json!({"uri": self.one(all), "languageId": self.one(&["rust", "python", ""]),
            "version": self.below(9), "text": self.one(TEXTS)})
    }

    fn changes(&mut self) -> Value {
        let change = |enemy: &mut Enemy| {
            let place =
                |enemy: &mut Enemy| json!({"line": enemy.below(5), "character": enemy.below(4)});
            let range = json!({"start": place(enemy), "end": place(enemy)});
            match enemy.below(3) {
                0 => json!({"text": enemy.one(TEXTS)}),
                _ => json!({"range": range, "text": enemy.one(TEXTS)}),
            }
        };
        (0..self.below(3)).map(|_| change(self)).collect()
    }

    fn cells(&mut self, of: &[&str]) -> Value {
        (0..self.below(4)).map(|_| json!({"kind": 2, "document": self.one(of)})).collect()
    }

    fn cell_texts(&mut self, of: &[&str]) -> Value {
        (0..self.below(3)).map(|_| self.document(of)).collect()
    }

    /// A message as editors send it.
    fn sound(&mut self) -> Value {
        let (notebook, of) = NOTEBOOKS[self.below(2) as usize];
        let (method, params) = match self.below(9) {
            0 | 1 => ("textDocument/didOpen", json!({"textDocument": self.document(DOCUMENTS)})),
            2 | 3 => (
                "textDocument/didChange",
                json!({"textDocument": self.document(DOCUMENTS), "contentChanges": self.changes()}),
            ),
            4 => ("textDocument/didClose", json!({"textDocument": self.document(DOCUMENTS)})),
            5 => {
                let opened = json!({"uri": notebook, "version": 1, "notebookType": "jupyter",
                    "cells": self.cells(of)});
                let opened =
                    json!({"notebookDocument": opened, "cellTextDocuments": self.cell_texts(of)});
                ("notebookDocument/didOpen", opened)
            }
            6 | 7 => {
                let array = json!({"start": self.below(4), "deleteCount": self.below(3),
                    "cells": self.cells(of)});
                let structure = json!({"array": array, "didOpen": self.cell_texts(of),
                    "didClose": self.cell_texts(of)});
                let text = json!([{"document": self.document(of), "changes": self.changes()}]);
                let mut cells =
                    json!({"structure": structure, "data": self.cells(of), "textContent": text});
                let part = self.one(&["structure", "data", "textContent", ""]);
                cells.as_object_mut().expect("an object").remove(part);
                let named = json!({"uri": notebook, "version": 2});
                (
                    "notebookDocument/didChange",
                    json!({"notebookDocument": named,
                    "change": {"cells": cells}}),
                )
            }
            _ => {
                let named = json!({"uri": notebook});
                let closed =
                    json!({"notebookDocument": named, "cellTextDocuments": self.cell_texts(of)});
                ("notebookDocument/didClose", closed)
            }
        };
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    }

    /// Puts something else at a random place of a message.
    fn spoil(&mut self, value: &mut Value) {
        let deeper = self.below(6) > 0;
        match value {
            Value::Object(fields) if deeper && !fields.is_empty() => {
                let at = self.0.random_range(0..fields.len());
                if self.below(8) == 0 {
                    let name = fields.keys().nth(at).expect("it is there").clone();
                    fields.remove(&name);
                } else {
                    self.spoil(fields.values_mut().nth(at).expect("it is there"));
                }
            }
            Value::Array(values) if deeper && !values.is_empty() => {
                let at = self.0.random_range(0..values.len());
                self.spoil(&mut values[at]);
            }
            _ => {
                let odd = [
                    json!(null),
                    json!(-1),
                    json!(u64::MAX),
                    json!(1.5),
                    json!("y"),
                    json!([]),
                    json!({}),
                    json!(true),
                    json!(40),
                ];
                *value = odd.choose(&mut self.0).expect("some are given").clone();
            }
        }
    }

    /// The bytes of a message, which may be wrong in any way.
    fn message(&mut self) -> Vec<u8> {
        let mut message = self.sound();
        match self.below(10) {
            0..=3 => {}
            4..=6 => self.spoil(&mut message),
            7 => {
                message["id"] =
                    [json!(900), json!(null), json!("x")][self.below(3) as usize].clone()
            }
            8 => {
                let params = json!({"method": self.one(&["textDocument/didChange",
                    "textDocument/didClose"]), "uri": self.one(DOCUMENTS), "problem": "is odd"});
                message = json!({"jsonrpc": "2.0", "method": LOST, "params": params});
                if self.below(3) == 0 {
                    self.spoil(&mut message);
                }
            }
            _ => {
                let mut bytes = message.to_string().into_bytes();
                bytes.truncate(self.0.random_range(1..bytes.len()));
                return bytes;
            }
        }
        message.to_string().into_bytes()
    }
}

async fn settle(editor: &mut Editor) {
    let (id, status) = editor.request("hone/status", Value::Null);
    editor.send(&status).await;
    editor.until(|message| message["id"] == id && message["method"].is_null()).await;
}

type Held = BTreeMap<String, (String, String, String, bool)>;

/// Returns what a session holds, without documents that are named after a notebook that does not
/// have them: their messages cannot be repeated.
fn held(session: &Session) -> Held {
    let all = session.held().into_iter();
    all.filter(|(uri, (path, .., is_cell))| *is_cell || *path == addresses::name(uri)).collect()
}

async fn connected(daemon: &TestDaemon) -> (Editor, Arc<Session>) {
    let editor = Editor::over(daemon.connect()).await;
    (editor, daemon.app.sessions().pop().expect("a session"))
}

#[tokio::test]
async fn both_readers_hold_the_same_documents_after_the_same_messages() {
    let daemon = TestDaemon::start(fixtures::engine(&["x"])).await;
    for seed in 0..STORIES {
        let mut enemy = Enemy(StdRng::seed_from_u64(seed));
        let (mut editor, session) = connected(&daemon).await;
        let mut state = EditorState::default();
        state.begin(json!({"method": "initialize"}), &json!({"capabilities": {}}));
        let mut sent = vec![];
        for _ in 0..MESSAGES {
            let message = enemy.message();
            editor.send_raw(&message).await;
            state.from_editor(&message);
            sent.push(String::from_utf8_lossy(&message).into_owned());
        }
        settle(&mut editor).await;
        let (mut again, restarted) = connected(&daemon).await;
        for message in state.replay().to_daemon {
            again.send_raw(&message).await;
        }
        settle(&mut again).await;
        assert_eq!(restarted.held(), held(&session), "story {seed}: {}", sent.join("\n"));
    }
}
