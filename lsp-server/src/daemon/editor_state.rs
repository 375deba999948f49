//! The state of an editor that a new daemon must get. The forwarder keeps it, so that the user does
//! not notice when a daemon dies.
//!
//! It holds only what the protocol makes state of: the handshake, the text of every open document,
//! the notebooks, and the requests without an answer; and whether the editor reports what it shows.
//! What a dead daemon knew of an offer on screen is lost; the offer itself is in its log.
//!
//! Its documents are those of the daemon that has read the same messages. So every rule about a
//! message is a function that both call: what is a message ([`guard::message_in`]), how it is meant
//! ([`lenient::notification`]), how a change is applied ([`Document::apply`]) and how a notebook's
//! cells change ([`completion::cells`]).

mod notebooks;
mod reports;

use crate::protocol::leave::Leave;
use crate::protocol::lost::{self, LOST, LostParams, PAST_THE_END};
use crate::protocol::outline::Outline;
use crate::protocol::{guard, lenient};
use completion::document::{Document, Encoding, Position};
use notebooks::Notebooks;
use reports::Reports;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most requests that are remembered. An editor has a handful under way.
const PENDING_LIMIT: usize = 1024;

/// The most open folders that are remembered.
const FOLDERS_LIMIT: usize = 64;

/// The most documents that are remembered as not served.
const LOST_LIMIT: usize = 1024;

/// LSP's code for a request that a newer one has replaced.
const REQUEST_CANCELLED: i32 = -32800;

/// The id of the handshake that the forwarder sends itself.
const OWN_ID: &str = "hone-reconnect";

const INLINE_COMPLETION: &str = "textDocument/inlineCompletion";
const AGENT_COMPLETIONS: [&str; 2] = ["getCompletions", "getCompletionsCycling"];

#[derive(Default)]
pub struct EditorState {
    /// The editor's `initialize` request, after it was answered.
    handshake: Option<Value>,
    /// The editor has sent `initialized`.
    confirmed: bool,
    encoding: Option<Encoding>,
    /// The open documents by the normal forms of their addresses. The path of each is the address
    /// under which the daemon records it: its own, or that of its notebook.
    documents: BTreeMap<String, Document>,
    notebooks: Notebooks,
    /// The messages about documents of which a message could not be read.
    lost: BTreeMap<String, Value>,
    reports: Reports,
    /// Requests without an answer, in their order.
    pending: Vec<Pending>,
    leave: Leave,
    /// The daemon has answered a request since the last [`EditorState::replay`].
    served: bool,
}

struct Pending {
    message: Value,
    /// A newer request or edit has replaced it.
    superseded: bool,
}

/// The messages that bring a new daemon to the state of the one that died.
#[derive(Debug, Default, PartialEq)]
pub struct Replay {
    /// The handshake that the new daemon must answer first. The editor has had its answer already.
    pub handshake: Option<Vec<u8>>,
    pub to_daemon: Vec<Vec<u8>>,
    pub to_editor: Vec<Vec<u8>>,
}

impl EditorState {
    pub fn from_editor(&mut self, body: &[u8]) {
        let message = match guard::message_in(body) {
            Some(message) => serde_json::from_slice(&message).ok(),
            // The daemon answers that it is invalid, and stops to serve the document.
            None => {
                let instead = lost::instead_of_noise(&Outline::of(body)).message;
                instead.and_then(|message| serde_json::from_slice(&message).ok())
            }
        };
        if let Some(message) = message {
            self.take(message);
        }
    }

    fn take(&mut self, mut message: Value) {
        let Some(method) = message["method"].as_str().map(str::to_owned) else { return };
        if is_completion(&method) || method.ends_with("Document/didChange") {
            self.supersede();
        }
        self.leave.note(&method);
        self.reports.note(&method, &message["params"]);
        if message.get("id").is_some() {
            if !method.is_empty() && self.pending.len() < PENDING_LIMIT {
                self.pending.push(Pending { message, superseded: false });
            }
            return;
        }
        // A message about a document says nothing without parameters.
        let params = message.get_mut("params").map(Value::take);
        if params.is_none() && method != "initialized" {
            return;
        }
        let (method, params) = lenient::notification(method.into(), params.unwrap_or_default());
        self.notified(&method, &params);
    }

    fn notified(&mut self, method: &str, params: &Value) {
        let text = &params["textDocument"];
        match method {
            "initialized" => self.confirmed = true,
            "workspace/didChangeWorkspaceFolders" => self.change_folders(&params["event"]),
            "textDocument/didOpen" => {
                let recorded_as = self.notebooks.of(address(text)).unwrap_or(address(text));
                self.open(text, recorded_as.to_owned());
            }
            "textDocument/didChange" => self.change(text, &params["contentChanges"]),
            "textDocument/didClose" => self.close(address(text)),
            "notebookDocument/didOpen" => {
                let notebook = &params["notebookDocument"];
                self.lost.remove(address(notebook));
                self.notebooks.open(notebook);
                self.open_cells(address(notebook), &params["cellTextDocuments"]);
            }
            "notebookDocument/didChange" => self.change_notebook(params),
            "notebookDocument/didClose" => {
                self.close_notebook(address(&params["notebookDocument"]));
                each(&params["cellTextDocuments"]).for_each(|cell| self.close(address(cell)));
            }
            LOST => {
                if let Ok(params) = LostParams::deserialize(params) {
                    self.lose(params);
                }
            }
            _ => {}
        }
    }

    /// Keeps the open folders in the handshake, which names them to a new daemon.
    fn change_folders(&mut self, event: &Value) {
        let handshake = self.handshake.as_mut();
        let params = handshake.and_then(|handshake| handshake["params"].as_object_mut());
        let Some(params) = params else { return };
        let folders = params.entry("workspaceFolders").or_insert(Value::Null);
        let uris = |folders: &Value| -> Vec<Value> {
            let folders = folders.as_array().into_iter().flatten();
            folders.map(|folder| folder["uri"].clone()).collect()
        };
        let gone = [uris(&event["removed"]), uris(&event["added"])].concat();
        let mut left = folders.as_array().cloned().unwrap_or_default();
        left.retain(|folder| !gone.contains(&folder["uri"]));
        left.extend(event["added"].as_array().cloned().unwrap_or_default());
        left.truncate(FOLDERS_LIMIT);
        *folders = left.into();
    }

    /// Takes a message of the daemon. Returns whether the editor should get it.
    pub fn from_daemon(&mut self, body: &[u8]) -> bool {
        let Ok(message) = serde_json::from_slice::<Value>(body) else { return true };
        if message.get("method").is_some() {
            return true;
        }
        let id = &message["id"];
        if id == OWN_ID {
            return false;
        }
        if let Some(at) = self.pending.iter().position(|pending| pending.message["id"] == *id) {
            self.served = true;
            let request = self.pending.remove(at).message;
            let result = &message["result"];
            if request["method"] == "initialize" && result.is_object() {
                self.begin(request, result);
            }
        }
        true
    }

    /// Keeps the editor's `initialize` request, which has this result.
    pub fn begin(&mut self, request: Value, result: &Value) {
        let utf8 = result["capabilities"]["positionEncoding"] == "utf-8";
        self.encoding = Some(if utf8 { Encoding::Utf8 } else { Encoding::Utf16 });
        self.handshake = Some(request);
    }

    /// Returns whether the editor's `initialize` request was answered.
    pub fn has_begun(&self) -> bool {
        self.handshake.is_some()
    }

    /// Returns how the editor leaves. Once it has, no other daemon is needed.
    pub fn leave(&self) -> Leave {
        self.leave
    }

    /// Returns true if a request was answered since this was asked last.
    pub fn take_served(&mut self) -> bool {
        std::mem::take(&mut self.served)
    }

    /// The messages for a new daemon and for the editor.
    pub fn replay(&mut self) -> Replay {
        self.served = false;
        let mut replay = Replay::default();
        if let Some(handshake) = &self.handshake {
            let mut again = handshake.clone();
            again["id"] = OWN_ID.into();
            replay.handshake = Some(bytes(&again));
            if self.confirmed {
                replay.to_daemon.push(bytes(&notification("initialized", json!({}))));
            }
            replay.to_daemon.extend(self.reports.message().iter().map(bytes));
            replay.to_daemon.extend(self.opened().iter().map(bytes));
        }
        self.pending.retain(|pending| {
            if pending.superseded {
                replay.to_editor.push(bytes(&superseded(&pending.message)));
            } else {
                replay.to_daemon.push(bytes(&pending.message));
            }
            !pending.superseded
        });
        replay
    }

    /// The messages that open every document and notebook as it is now.
    fn opened(&self) -> Vec<Value> {
        let item = |(uri, document): (&String, &Document)| {
            json!({"uri": uri, "languageId": document.language,
                "version": document.version, "text": document.text.to_string()})
        };
        let cells = |cells: &[String]| -> Vec<Value> {
            cells.iter().filter_map(|cell| self.documents.get_key_value(cell)).map(item).collect()
        };
        let notebooks = self.notebooks.all().map(|(notebook, addresses)| {
            let opened = json!({"notebookDocument": notebook,
                "cellTextDocuments": cells(&addresses)});
            notification("notebookDocument/didOpen", opened)
        });
        // A cell that has lost its notebook is recorded under the notebook's name, which a message
        // about the cell alone cannot say. So it is not opened.
        let alone = self.documents.iter().filter(|(uri, document)| **uri == document.path);
        let alone = alone.map(|document| {
            notification("textDocument/didOpen", json!({"textDocument": item(document)}))
        });
        notebooks.chain(alone).chain(self.lost.values().cloned()).collect()
    }

    /// Opens the documents of cells, and names those after the notebook that it has taken over.
    fn open_cells(&mut self, notebook: &str, opened: &Value) {
        for cell in self.notebooks.cells(notebook) {
            if let Some(document) = self.documents.get_mut(&cell) {
                document.path = notebook.to_owned();
            }
        }
        each(opened).for_each(|cell| self.open(cell, notebook.to_owned()));
    }

    fn open(&mut self, opened: &Value, recorded_as: String) {
        let text = |name: &str| opened[name].as_str().unwrap_or_default();
        let uri = address(opened);
        let document = Document {
            path: recorded_as,
            language: text("languageId").to_owned(),
            version: version(opened),
            text: text("text").into(),
        };
        self.lost.remove(uri);
        self.documents.insert(uri.to_owned(), document);
    }

    fn close(&mut self, uri: &str) {
        self.documents.remove(uri);
        self.lost.remove(uri);
    }

    fn close_notebook(&mut self, uri: &str) {
        for cell in self.notebooks.close(uri) {
            self.close(&cell);
        }
    }

    /// Closes a document whose text is unknown, because what a lost message said is unknown.
    fn lose(&mut self, params: LostParams) {
        let uri = params.uri.clone();
        self.close(&uri);
        self.close_notebook(&uri);
        // Without an address it is about no document, and would be read as one about another.
        let is_kept = !params.is_about_closed() && !uri.is_empty();
        if is_kept && self.lost.len() < LOST_LIMIT {
            self.lost.insert(uri, notification(LOST, json!(params)));
        }
    }

    fn change_notebook(&mut self, params: &Value) {
        let cells = &params["change"]["cells"];
        each(&cells["structure"]["didClose"]).for_each(|cell| self.close(address(cell)));
        self.notebooks.change(&params["notebookDocument"], cells);
        self.open_cells(address(&params["notebookDocument"]), &cells["structure"]["didOpen"]);
        each(&cells["textContent"])
            .for_each(|text| self.change(&text["document"], &text["changes"]));
    }

    fn change(&mut self, changed: &Value, changes: &Value) {
        let uri = address(changed);
        let Some(document) = self.documents.get_mut(uri) else {
            // The daemon serves none of its cells either.
            return self.close_notebook(uri);
        };
        document.version = version(changed);
        let encoding = self.encoding.unwrap_or(Encoding::Utf16);
        let mut apply = |change: &Value| {
            let (text, range) = (change["text"].as_str().unwrap_or_default(), &change["range"]);
            let range = position(&range["start"]).zip(position(&range["end"]));
            document.apply(range, text.to_owned(), encoding).is_ok()
        };
        if !each(changes).all(&mut apply) {
            let method = "textDocument/didChange".to_owned();
            self.lose(LostParams { method, uri: uri.to_owned(), problem: PAST_THE_END.to_owned() });
        }
    }

    fn supersede(&mut self) {
        for pending in &mut self.pending {
            let method = pending.message["method"].as_str().unwrap_or_default();
            pending.superseded |= is_completion(method);
        }
    }
}

fn each(values: &Value) -> impl Iterator<Item = &Value> {
    values.as_array().into_iter().flatten()
}

/// Returns the normal form of an address, which a notification has once it was read.
fn address(document: &Value) -> &str {
    document["uri"].as_str().unwrap_or_default()
}

fn is_completion(method: &str) -> bool {
    method == INLINE_COMPLETION || AGENT_COMPLETIONS.contains(&method)
}

/// The answer that the daemon gives to a superseded completion request.
fn superseded(request: &Value) -> Value {
    let id = &request["id"];
    if request["method"] == INLINE_COMPLETION {
        let message = "superseded by a newer request or edit";
        let error = json!({"code": REQUEST_CANCELLED, "message": message});
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    } else {
        // These clients show errors to the user, and the end of an old request is none.
        json!({"jsonrpc": "2.0", "id": id, "result": {"completions": []}})
    }
}

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn bytes(message: &Value) -> Vec<u8> {
    message.to_string().into_bytes()
}

fn version(document: &Value) -> i32 {
    document["version"].as_i64().and_then(|version| version.try_into().ok()).unwrap_or(0)
}

fn position(value: &Value) -> Option<Position> {
    let number = |name: &str| value[name].as_u64().and_then(|number| number.try_into().ok());
    Some(Position { line: number("line")?, column: number("character")? })
}

#[cfg(test)]
mod two_readers;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::messages::REPORTS;

    const URI: &str = "file:///a.rs";

    fn notify(state: &mut EditorState, message: Value) {
        state.from_editor(&bytes(&message));
    }

    fn asks(state: &mut EditorState, id: u32, method: &str) {
        notify(state, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}));
    }

    fn answers(state: &mut EditorState, id: u32, result: Value) -> bool {
        state.from_daemon(&bytes(&json!({"jsonrpc": "2.0", "id": id, "result": result})))
    }

    /// The state of an editor whose handshake is done.
    fn state(encoding: &str) -> EditorState {
        let mut state = EditorState::default();
        asks(&mut state, 1, "initialize");
        assert!(answers(&mut state, 1, json!({"capabilities": {"positionEncoding": encoding}})));
        notify(&mut state, notification("initialized", json!({})));
        state
    }

    fn open(state: &mut EditorState, text: &str) {
        let document = json!({"uri": URI, "languageId": "rust", "version": 1, "text": text});
        notify(state, notification("textDocument/didOpen", json!({"textDocument": document})));
    }

    fn change(state: &mut EditorState, from: u32, to: u32, text: &str) {
        let at = |character: u32| json!({"line": 0, "character": character});
        let change = json!({"range": {"start": at(from), "end": at(to)}, "text": text});
        let params =
            json!({"textDocument": {"uri": URI, "version": 2}, "contentChanges": [change]});
        notify(state, notification("textDocument/didChange", params));
    }

    fn messages(bodies: &[Vec<u8>]) -> Vec<Value> {
        bodies.iter().map(|body| serde_json::from_slice(body).unwrap()).collect()
    }

    fn methods(replay: &Replay) -> Vec<Value> {
        messages(&replay.to_daemon).into_iter().map(|message| message["method"].clone()).collect()
    }

    #[test]
    fn documents_are_opened_again_with_their_current_text() {
        for (encoding, column) in [("utf-16", 3), ("utf-8", 5)] {
            let mut state = state(encoding);
            open(&mut state, "a😀b\n");
            change(&mut state, column, column, "é");
            let replay = state.replay();
            assert_eq!(methods(&replay), ["initialized", "textDocument/didOpen"]);
            let opened = &messages(&replay.to_daemon)[1]["params"]["textDocument"];
            let expected =
                json!({"uri": URI, "languageId": "rust", "version": 2, "text": "a😀éb\n"});
            assert_eq!(opened, &expected);
        }
    }

    /// A new daemon would index the folders that were open when the editor started.
    #[test]
    fn a_new_daemon_gets_the_folders_that_are_open_now() {
        let mut state = state("utf-16");
        let folder = |name: &str| json!({"uri": format!("file:///{name}"), "name": name});
        let mut change = |removed: &[&str], added: &[&str]| {
            let all = |names: &[&str]| names.iter().map(|name| folder(name)).collect::<Vec<_>>();
            let event = json!({"event": {"removed": all(removed), "added": all(added)}});
            notify(&mut state, notification("workspace/didChangeWorkspaceFolders", event));
        };
        change(&[], &["a", "b"]);
        change(&["a"], &["b", "c"]);
        let handshake = state.replay().handshake.unwrap();
        let handshake: Value = serde_json::from_slice(&handshake).unwrap();
        assert_eq!(handshake["params"]["workspaceFolders"], json!([folder("b"), folder("c")]));
    }

    fn cell(name: &str, text: &str) -> Value {
        json!({"uri": format!("cell:/{name}"), "languageId": "python", "version": 1, "text": text})
    }

    fn kind(name: &str) -> Value {
        json!({"kind": 2, "document": format!("cell:/{name}")})
    }

    #[test]
    fn notebooks_are_opened_again_with_their_cells_as_they_are_now() {
        let mut state = state("utf-16");
        let notebook = json!({"uri": "file:///[n].ipynb", "version": 1, "notebookType": "jupyter",
            "cells": [kind("a"), kind("b")]});
        let opened = json!({"notebookDocument": notebook,
            "cellTextDocuments": [cell("a", "a = 1\n"), cell("b", "b = 1\n")]});
        notify(&mut state, notification("notebookDocument/didOpen", opened));
        open(&mut state, "alone");
        let at = json!({"line": 0, "character": 0});
        let changes = json!([{"range": {"start": at, "end": at}, "text": "# \n"}]);
        let changed = json!({
            "notebookDocument": {"uri": "file:///%5Bn%5D.ipynb", "version": 2},
            "change": {"cells": {
                "structure": {"array": {"start": 1, "deleteCount": 1, "cells": [kind("c")]},
                    "didOpen": [cell("c", "c = 1\n")], "didClose": [{"uri": "cell:/b"}]},
                "data": [{"kind": 1, "document": "cell:/a"}],
                "textContent": [{"document": {"uri": "cell:/a", "version": 5}, "changes": changes}],
            }},
        });
        notify(&mut state, notification("notebookDocument/didChange", changed));
        let replay = state.replay();
        let expected = ["initialized", "notebookDocument/didOpen", "textDocument/didOpen"];
        assert_eq!(methods(&replay), expected);
        let opened = &messages(&replay.to_daemon)[1]["params"];
        let cells = json!([{"kind": 1, "document": "cell:/a"}, kind("c")]);
        assert_eq!(opened["notebookDocument"]["cells"], cells);
        let (mut first, second) = (cell("a", "# \na = 1\n"), cell("c", "c = 1\n"));
        first["version"] = 5.into();
        assert_eq!(opened["cellTextDocuments"], json!([first, second]));

        let documents = json!([{"uri": "cell:/a"}, {"uri": "cell:/c"}]);
        let closed = json!({"notebookDocument": {"uri": "file:///[n].ipynb"},
            "cellTextDocuments": documents});
        notify(&mut state, notification("notebookDocument/didClose", closed));
        assert_eq!(methods(&state.replay()), ["initialized", "textDocument/didOpen"]);
    }

    #[test]
    fn a_document_has_one_name_however_its_address_is_written() {
        let mut state = state("utf-16");
        let document = |uri: &str| json!({"uri": uri, "languageId": "", "version": 1, "text": "a"});
        let opened = json!({"textDocument": document("file:///[id].ts")});
        notify(&mut state, notification("textDocument/didOpen", opened));
        let change = json!({"textDocument": document("file:///%5Bid%5D.ts"),
            "contentChanges": [{"text": "b"}]});
        notify(&mut state, notification("textDocument/didChange", change));
        let replayed = messages(&state.replay().to_daemon)[1]["params"]["textDocument"].clone();
        assert_eq!(replayed["text"], "b");
        assert_eq!(replayed["uri"], "file:///%5Bid%5D.ts");
    }

    /// A text that misses a change is not what the editor shows, and a new daemon would complete
    /// in it.
    #[test]
    fn a_document_of_which_a_message_was_lost_is_not_opened_again() {
        let mut state = state("utf-16");
        open(&mut state, "a");
        let lost = format!(
            r#"{{"method":"textDocument/didChange","params":{{"textDocument":{{"uri":"{URI}"}},"#
        );
        state.from_editor(lost.as_bytes());
        let replay = state.replay();
        assert_eq!(methods(&replay), ["initialized", LOST]);
        assert_eq!(messages(&replay.to_daemon)[1]["params"]["uri"], URI);
        open(&mut state, "b");
        assert_eq!(methods(&state.replay()), ["initialized", "textDocument/didOpen"]);
    }

    #[test]
    fn half_a_character_does_not_lose_its_change() {
        let mut state = state("utf-16");
        open(&mut state, "a");
        let raw = notification(
            "textDocument/didChange",
            json!({"textDocument": {"uri": URI},
            "contentChanges": [{"text": "a-HALF-"}]}),
        );
        state.from_editor(raw.to_string().replace("-HALF-", r"\ud83d").as_bytes());
        let opened = messages(&state.replay().to_daemon)[1]["params"]["textDocument"].clone();
        assert_eq!(opened["text"], "a\u{fffd}");
    }

    #[test]
    fn a_closed_document_stays_closed() {
        let mut state = state("utf-16");
        open(&mut state, "a");
        let closed = json!({"textDocument": {"uri": URI}});
        notify(&mut state, notification("textDocument/didClose", closed));
        assert_eq!(methods(&state.replay()), ["initialized"]);
    }

    #[test]
    fn the_editor_does_not_get_the_answer_to_the_forwarders_handshake() {
        let mut state = state("utf-16");
        let again = state.replay().handshake.expect("a handshake");
        let again: Value = serde_json::from_slice(&again).unwrap();
        assert_eq!((&again["method"], &again["id"]), (&json!("initialize"), &json!(OWN_ID)));
        assert!(!state.from_daemon(&bytes(&json!({"id": OWN_ID, "result": {}}))));
        assert!(!state.take_served(), "that is no answer to the editor");
        assert!(state.from_daemon(br#"{"method":"didChangeStatus"}"#));
    }

    #[test]
    fn an_unanswered_handshake_is_sent_again_as_the_editors_own() {
        let mut state = EditorState::default();
        asks(&mut state, 1, "initialize");
        let replay = state.replay();
        assert_eq!(
            (replay.handshake.is_none(), methods(&replay)),
            (true, vec!["initialize".into()])
        );
    }

    #[test]
    fn requests_are_sent_again_unless_they_are_superseded() {
        let mut state = state("utf-16");
        open(&mut state, "");
        asks(&mut state, 2, "hone/status");
        asks(&mut state, 3, INLINE_COMPLETION);
        asks(&mut state, 4, "getCompletions");
        change(&mut state, 0, 0, "x");
        asks(&mut state, 5, INLINE_COMPLETION);
        asks(&mut state, 6, "workspace/executeCommand");
        assert!(answers(&mut state, 2, json!({})));
        assert!(state.take_served());
        let replay = state.replay();
        let expected =
            ["initialized", "textDocument/didOpen", INLINE_COMPLETION, "workspace/executeCommand"];
        assert_eq!(methods(&replay), expected);
        let sent = messages(&replay.to_editor);
        assert_eq!((&sent[0]["id"], &sent[0]["error"]["code"]), (&json!(3), &json!(-32800)));
        assert_eq!((&sent[1]["id"], &sent[1]["result"]["completions"]), (&json!(4), &json!([])));
        assert!(!state.take_served());
        assert_eq!(state.replay().to_editor.len(), 0, "it is answered once");
    }

    #[test]
    fn a_new_daemon_knows_that_the_editor_reports_what_it_shows() {
        let item = json!({"item": {"command": {"arguments": ["o-1"]}}});
        let turned_to = json!({"item": item["item"], "turnedTo": true});
        let none = json!({"item": {"command": {"arguments": []}}});
        let (completion, edit) =
            ("textDocument/didShowCompletion", "textDocument/didShowInlineEdit");
        for (method, params, reports) in [
            (completion, &item, json!({"completions": true, "edits": false})),
            (edit, &item, json!({"completions": false, "edits": true})),
            (completion, &turned_to, Value::Null),
            (completion, &none, Value::Null),
            (edit, &json!({}), Value::Null),
        ] {
            let mut state = state("utf-16");
            notify(&mut state, notification(method, params.clone()));
            let replayed = messages(&state.replay().to_daemon);
            let said = replayed.iter().find(|message| message["method"] == REPORTS);
            assert_eq!(said.map_or(Value::Null, |said| said["params"].clone()), reports);
        }
        let mut state = state("utf-16");
        let mut shown = notification("notifyShown", json!({"uuid": "o-1"}));
        shown["id"] = 2.into();
        notify(&mut state, shown);
        assert_eq!(methods(&state.replay()), ["initialized", REPORTS, "notifyShown"]);
    }

    #[test]
    fn invalid_messages_change_nothing() {
        let mut state = state("utf-16");
        for noise in [&b"{"[..], b"[]", b"7", b"{\"method\":7,\"id\":8}", b"\xff"] {
            state.from_editor(noise);
            assert!(state.from_daemon(noise));
        }
        assert_eq!(methods(&state.replay()), ["initialized"]);
    }
}
