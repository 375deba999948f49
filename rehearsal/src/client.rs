//! A small blocking LSP client, which does what an editor does.

mod connection;
pub mod framing;
mod own_home;

pub use connection::{Notification, Pending, RequestError};
pub use own_home::OwnHome;

use crate::document::{Encoding, Position, Range};
use crate::limits;
use connection::Connection;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use url::Url;

/// The command that an item carries and an editor runs when the item is accepted.
pub const ACCEPT_COMMAND: &str = "hone.accept";

/// The method that asks for the next edit.
const NEXT_EDIT: &str = "textDocument/copilotInlineEdit";

/// The way in which an inline completion was asked for (LSP 3.18 `InlineCompletionTriggerKind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerKind {
    Invoked = 1,
    Automatic = 2,
}

/// One offer as the client sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub insert_text: String,
    /// What `insert_text` replaces. `None` inserts at the cursor.
    pub range: Option<Range>,
    /// The id of the offer, which is the first argument of the accept command.
    pub id: String,
    /// The item as the server sent it, for notifications that send it back.
    pub raw: Value,
}

/// An edit elsewhere, as the server offers it.
#[derive(Debug, Clone)]
pub struct OfferedNextEdit {
    pub uri: String,
    pub range: Range,
    pub text: String,
    pub id: String,
    /// The command that an editor runs when the edit was made.
    command: Value,
}

impl OfferedNextEdit {
    fn read(raw: Value) -> Result<OfferedNextEdit, RequestError> {
        let text_of = |value: &Value, what| {
            value.as_str().map(str::to_owned).ok_or_else(|| malformed_edit(what))
        };
        let range = Range::deserialize(&raw["range"]);
        Ok(OfferedNextEdit {
            uri: text_of(&raw["textDocument"]["uri"], "an edit without its document")?,
            range: range.map_err(|_| malformed_edit("an edit with a malformed range"))?,
            text: text_of(&raw["text"], "an edit without a text")?,
            id: text_of(&raw["command"]["arguments"][0], "an edit without an id")?,
            command: raw["command"].clone(),
        })
    }
}

/// The answer to [`Client::learn`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LearnAnswer {
    /// True if a job was started.
    pub started: bool,
    /// How many labelled episodes wait for the next job.
    pub waiting: u64,
}

pub struct Client {
    connection: Connection,
    child: Option<Child>,
    encoding: OnceLock<Encoding>,
    versions: Mutex<HashMap<String, i64>>,
}

impl Client {
    /// Starts a language server and talks to its stdin and stdout. The caller chooses its stderr on
    /// `command`.
    pub fn spawn(command: &mut Command) -> io::Result<Client> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(stdout), Some(stdin)) = (child.stdout.take(), child.stdin.take()) else {
            return Err(io::Error::other("the language server's stdio is not piped"));
        };
        let mut client = Client::over(stdout, stdin);
        client.child = Some(child);
        Ok(client)
    }

    /// Talks to a server over any pair of streams.
    pub fn over(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Client {
        Client {
            connection: Connection::new(reader, writer),
            child: None,
            encoding: OnceLock::new(),
            versions: Mutex::default(),
        }
    }

    /// Process id of the server, if this client started it.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The negotiated position encoding. It is UTF-16 before the handshake.
    pub fn encoding(&self) -> Encoding {
        self.encoding.get().copied().unwrap_or(Encoding::Utf16)
    }

    pub fn request(&self, method: &str, params: Value) -> Result<Value, RequestError> {
        self.connection.request(method, params, limits::REQUEST)
    }

    pub fn request_async(&self, method: &str, params: Value) -> Result<Pending, RequestError> {
        self.connection.request_async(method, params)
    }

    pub fn wait(&self, pending: Pending) -> Result<Value, RequestError> {
        self.connection.wait(pending, limits::REQUEST)
    }

    pub fn wait_for(&self, pending: Pending, limit: Duration) -> Result<Value, RequestError> {
        self.connection.wait(pending, limit)
    }

    pub fn notify(&self, method: &str, params: Value) -> Result<(), RequestError> {
        self.connection.notify(method, params)
    }

    /// Asks the server to abandon a request. The server still answers it.
    pub fn cancel(&self, pending: &Pending) -> Result<(), RequestError> {
        self.notify("$/cancelRequest", json!({"id": pending.id}))
    }

    /// Takes every notification that is kept so far, oldest first. The number is bounded; the
    /// oldest ones are dropped.
    pub fn take_notifications(&self) -> Vec<Notification> {
        self.connection.take_notifications()
    }

    pub fn wait_notification(&self, method: &str, limit: Duration) -> Option<Notification> {
        self.connection.wait_notification(method, limit)
    }

    /// Shakes hands and returns the server's answer. It offers these position encodings in order of
    /// preference; without any, the protocol's default is UTF-16.
    pub fn initialize(&self, encodings: &[Encoding]) -> Result<Value, RequestError> {
        self.initialize_in(encodings, None)
    }

    /// The same for an editor that has this folder open.
    pub fn initialize_in(
        &self,
        encodings: &[Encoding],
        folder: Option<&Path>,
    ) -> Result<Value, RequestError> {
        let method = "initialize";
        let mut capabilities = json!({"textDocument": {"inlineCompletion": {}}});
        if !encodings.is_empty() {
            let names: Vec<_> = encodings.iter().map(|encoding| encoding.name()).collect();
            capabilities["general"] = json!({"positionEncodings": names});
        }
        if folder.is_some() {
            capabilities["workspace"] = json!({"workspaceFolders": true});
        }
        let uri = folder.and_then(|folder| Url::from_file_path(folder).ok()).map(String::from);
        let name = folder.and_then(Path::file_name).map(|name| name.to_string_lossy());
        let folders = uri.as_ref().map(|uri| json!([{"uri": uri, "name": name}]));
        let answer = self.request(
            method,
            json!({
                "processId": std::process::id(),
                "clientInfo": {"name": "hone-rehearse", "version": env!("CARGO_PKG_VERSION")},
                "initializationOptions": {"didChangeStatus": true},
                "rootUri": uri,
                "workspaceFolders": folders,
                "capabilities": capabilities,
            }),
        )?;
        let encoding = match answer["capabilities"]["positionEncoding"].as_str() {
            None => Encoding::Utf16,
            Some(name) => Encoding::from_name(name).ok_or_else(|| RequestError::Protocol {
                method: method.to_owned(),
                what: format!("unknown position encoding {name:?}"),
            })?,
        };
        let _ = self.encoding.set(encoding);
        self.notify("initialized", json!({}))?;
        Ok(answer)
    }

    pub fn open(&self, uri: &str, language: &str, text: &str) -> Result<(), RequestError> {
        let version = self.next_version(uri);
        self.notify(
            "textDocument/didOpen",
            json!({"textDocument":
                {"uri": uri, "languageId": language, "version": version, "text": text}}),
        )
    }

    /// Replaces `range` by `text`. `None` replaces the whole document.
    pub fn change(&self, uri: &str, range: Option<Range>, text: &str) -> Result<(), RequestError> {
        let version = self.next_version(uri);
        let change = match range {
            Some(range) => json!({"range": range, "text": text}),
            None => json!({"text": text}),
        };
        self.notify(
            "textDocument/didChange",
            json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]}),
        )
    }

    /// Several changes in one notification. Each counts positions after the one before.
    pub fn change_all(&self, uri: &str, changes: &[(Range, String)]) -> Result<(), RequestError> {
        let version = self.next_version(uri);
        let changes = changes.iter().map(|(range, text)| json!({"range": range, "text": text}));
        let changes: Vec<_> = changes.collect();
        self.notify(
            "textDocument/didChange",
            json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}),
        )
    }

    /// Reports that the document was written to the disk.
    pub fn save(&self, uri: &str) -> Result<(), RequestError> {
        self.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}}))
    }

    pub fn close(&self, uri: &str) -> Result<(), RequestError> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
        self.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}))
    }

    pub fn inline_completion(
        &self,
        uri: &str,
        position: Position,
        trigger: TriggerKind,
    ) -> Result<Vec<Item>, RequestError> {
        self.explained_completion(uri, position, trigger).map(|(items, _)| items)
    }

    /// The items of an answer, and the name of the reason for which it ended so.
    pub fn explained_completion(
        &self,
        uri: &str,
        position: Position,
        trigger: TriggerKind,
    ) -> Result<(Vec<Item>, Option<String>), RequestError> {
        let pending = self.inline_completion_async(uri, position, trigger)?;
        let answer = self.wait(pending)?;
        let reason = answer["_hone"]["reason"].as_str().map(str::to_owned);
        Ok((items(answer)?, reason))
    }

    pub fn inline_completion_async(
        &self,
        uri: &str,
        position: Position,
        trigger: TriggerKind,
    ) -> Result<Pending, RequestError> {
        self.request_async(
            "textDocument/inlineCompletion",
            json!({
                "textDocument": {"uri": uri},
                "position": position,
                "context": {"triggerKind": trigger as u8},
            }),
        )
    }

    /// Reports that the whole offer was accepted. Send the `didChange` first.
    pub fn accept(&self, id: &str) -> Result<(), RequestError> {
        self.request(
            "workspace/executeCommand",
            json!({"command": ACCEPT_COMMAND, "arguments": [id]}),
        )
        .map(drop)
    }

    pub fn did_show(&self, item: &Item) -> Result<(), RequestError> {
        self.notify("textDocument/didShowCompletion", json!({"item": item.raw}))
    }

    /// Reports that the offer was rejected. An editor gives the reason "esc", or "hidden" where
    /// nobody rejected it.
    pub fn did_reject(&self, id: &str, reason: &str) -> Result<(), RequestError> {
        self.notify("hone/didReject", json!({"id": id, "reason": reason}))
    }

    /// `accepted_length` is in UTF-16 units from the start of the item's text.
    pub fn did_partially_accept(
        &self,
        item: &Item,
        accepted_length: u32,
    ) -> Result<(), RequestError> {
        self.notify(
            "textDocument/didPartiallyAcceptCompletion",
            json!({"item": item.raw, "acceptedLength": accepted_length}),
        )
    }

    /// Asks for the next edit, as clients of Copilot do. Returns the reason too.
    pub fn next_edit(
        &self,
        uri: &str,
        position: Position,
    ) -> Result<(Option<OfferedNextEdit>, Option<String>), RequestError> {
        let version = {
            let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
            versions.get(uri).copied().unwrap_or(0)
        };
        let params = json!({
            "textDocument": {"uri": uri, "version": version},
            "position": position,
        });
        let mut answer = self.request(NEXT_EDIT, params)?;
        let reason = answer["_hone"]["reason"].as_str().map(str::to_owned);
        match answer["edits"].as_array_mut().map(|edits| edits.drain(..).next()) {
            None => Err(malformed_edit("an answer without a list of edits")),
            Some(edit) => Ok((edit.map(OfferedNextEdit::read).transpose()?, reason)),
        }
    }

    pub fn did_show_next_edit(&self, offered: &OfferedNextEdit) -> Result<(), RequestError> {
        let command = json!({"item": {"command": offered.command}});
        self.notify("textDocument/didShowInlineEdit", command)
    }

    /// Reports that the edit was made. Send the `didChange` first.
    pub fn accept_next_edit(&self, offered: &OfferedNextEdit) -> Result<(), RequestError> {
        self.request("workspace/executeCommand", offered.command.clone()).map(drop)
    }

    /// Returns what `hone status --json` prints.
    pub fn status(&self) -> Result<Value, RequestError> {
        self.request("hone/status", Value::Null)
    }

    /// Moves the daemon's manual clock (`hone serve --manual-clock`).
    pub fn advance_clock(&self, ms: u64) -> Result<(), RequestError> {
        self.request("hone/advanceClock", json!({"ms": ms})).map(drop)
    }

    /// Starts a learning job now, with the labelled episodes that wait.
    pub fn learn(&self) -> Result<LearnAnswer, RequestError> {
        let method = "hone/learn";
        let answer = self.request(method, Value::Null)?;
        serde_json::from_value(answer).map_err(|error| RequestError::Protocol {
            method: method.to_owned(),
            what: error.to_string(),
        })
    }

    /// Sends `shutdown` and `exit`, and waits until the server has left.
    pub fn shutdown(mut self) -> Result<(), RequestError> {
        self.request("shutdown", Value::Null)?;
        self.notify("exit", Value::Null)?;
        let Some(child) = &mut self.child else { return Ok(()) };
        let deadline = Instant::now() + limits::EXIT;
        while Instant::now() < deadline {
            if matches!(child.try_wait(), Ok(Some(_))) {
                self.child = None;
                return Ok(());
            }
            std::thread::sleep(limits::EXIT_POLL);
        }
        Err(RequestError::Timeout { method: "exit".to_owned(), after: limits::EXIT })
    }

    fn next_version(&self, uri: &str) -> i64 {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let version = versions.entry(uri.to_owned()).or_insert(0);
        *version += 1;
        *version
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // If the server has ended already, there is nothing to do.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads an inline completion answer: a list, an item list, or null.
pub fn items(answer: Value) -> Result<Vec<Item>, RequestError> {
    let list = match answer {
        Value::Null => Vec::new(),
        Value::Array(list) => list,
        Value::Object(mut object) => match object.remove("items") {
            Some(Value::Array(list)) => list,
            _ => return Err(malformed("an item list without items")),
        },
        _ => return Err(malformed("neither a list nor null")),
    };
    list.into_iter().map(item).collect()
}

fn item(raw: Value) -> Result<Item, RequestError> {
    let insert_text = raw["insertText"]
        .as_str()
        .ok_or_else(|| malformed("an item without insertText"))?
        .to_owned();
    let range = match raw.get("range") {
        None | Some(Value::Null) => None,
        Some(range) => Some(
            Range::deserialize(range).map_err(|_| malformed("an item with a malformed range"))?,
        ),
    };
    let id = raw["command"]["arguments"][0]
        .as_str()
        .ok_or_else(|| malformed("an item without command.arguments[0]"))?
        .to_owned();
    Ok(Item { insert_text, range, id, raw })
}

fn malformed_edit(what: &str) -> RequestError {
    RequestError::Protocol { method: NEXT_EDIT.to_owned(), what: what.to_owned() }
}

fn malformed(what: &str) -> RequestError {
    RequestError::Protocol {
        method: "textDocument/inlineCompletion".to_owned(),
        what: what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer that answers each message with the messages that `answer` returns.
    fn peer(answer: impl Fn(&Value) -> Vec<Value> + Send + 'static) -> Client {
        let (their_reader, our_writer) = io::pipe().unwrap();
        let (our_reader, mut their_writer) = io::pipe().unwrap();
        std::thread::spawn(move || {
            let mut reader = io::BufReader::new(their_reader);
            while let Ok(Some(message)) = framing::read(&mut reader) {
                for reply in answer(&message) {
                    framing::write(&mut their_writer, &reply).unwrap();
                }
            }
        });
        Client::over(our_reader, our_writer)
    }

    #[test]
    fn answers_find_their_request_in_any_order() {
        let held = Mutex::new(Vec::new());
        let client = peer(move |message| {
            let mut held = held.lock().unwrap();
            held.push(json!({"id": message["id"], "result": message["method"]}));
            if held.len() == 3 { held.drain(..).rev().collect() } else { Vec::new() }
        });
        let pending: Vec<_> = ["a", "b", "c"]
            .iter()
            .map(|method| client.request_async(method, Value::Null).unwrap())
            .collect();
        let answers: Vec<_> = pending.into_iter().map(|p| client.wait(p).unwrap()).collect();
        assert_eq!(answers, ["a", "b", "c"]);
    }

    #[test]
    fn a_server_error_keeps_its_code_and_a_closed_pipe_its_method() {
        let client = peer(|message| {
            vec![
                json!({"id": message["id"], "error": {"code": -32800, "message": "superseded"}}),
                json!("not an object: ignored"),
            ]
        });
        let error = client.request("x", Value::Null).unwrap_err();
        assert_eq!(error.code(), Some(-32800));

        let (reader, writer) = io::pipe().unwrap();
        let (_unread, our_writer) = io::pipe().unwrap();
        drop(writer);
        let client = Client::over(reader, our_writer);
        let error = client.request("hone/status", Value::Null).unwrap_err();
        assert!(error.to_string().starts_with("hone/status: the server closed"), "{error}");
    }

    #[test]
    fn a_server_that_does_not_answer_costs_a_timeout() {
        let client = peer(|_| Vec::new());
        let pending = client.request_async("x", Value::Null).unwrap();
        let error = client.wait_for(pending, Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, RequestError::Timeout { .. }));
    }

    #[test]
    fn server_requests_are_answered_and_the_last_notifications_kept() {
        let client = peer(|message| match message["method"].as_str() {
            Some("go") => {
                let mut out = vec![json!({"id": 77, "method": "client/registerCapability"})];
                out.extend((0..300).map(|n| json!({"method": "n", "params": n})));
                out.push(json!({"id": message["id"], "result": null}));
                out
            }
            // This is the client's answer to request 77.
            None if message["id"] == 77 => vec![json!({"method": "answered", "params": null})],
            _ => Vec::new(),
        });
        client.request("go", Value::Null).unwrap();
        assert!(client.wait_notification("answered", Duration::from_secs(10)).is_some());
        let kept = client.take_notifications();
        assert_eq!(kept.last().map(|n| n.params.clone()), Some(json!(299)));
        assert!(kept.len() <= 256);
    }

    #[test]
    fn items_come_as_a_list_an_object_or_null() {
        let one = json!({
            "insertText": "x()",
            "range": {"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 1}},
            "command": {"title": "", "command": ACCEPT_COMMAND, "arguments": ["7"]},
        });
        for answer in [json!([one]), json!({"items": [one]})] {
            let items = items(answer).unwrap();
            assert_eq!((items[0].insert_text.as_str(), items[0].id.as_str()), ("x()", "7"));
        }
        assert!(items(Value::Null).unwrap().is_empty());
        assert!(items(json!({"items": []})).unwrap().is_empty());
        assert!(items(json!({"items": [{"insertText": "x"}]})).is_err());
    }
}
