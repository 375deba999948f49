//! Copilot's messages for next edits, which sidekick.nvim and copilot.lua send. An answer has one
//! edit or none, because clients differ in what they do with several, and is never `null`.

use super::messages::{ACCEPT_COMMAND, ReasonNote};
use completion::document::Position;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use services::reason::Reason;
use session::request::Trigger;
use session::{LastChange, OfferedEdit};
use tower_lsp::ls_types::{self as lsp, Command, InlineCompletionTriggerKind, Range, Uri};

/// `textDocument/copilotInlineEdit`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InlineEditParams {
    pub text_document: DocumentVersion,
    pub position: lsp::Position,
    #[serde(default)]
    context: Option<EditContext>,
}

#[derive(Debug, Deserialize)]
pub struct DocumentVersion {
    pub uri: Uri,
    #[serde(default)]
    pub version: Option<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EditContext {
    #[serde(default)]
    trigger_kind: Option<InlineCompletionTriggerKind>,
    /// For Hone's own clients: what happened last.
    #[serde(default)]
    after: Option<String>,
}

impl InlineEditParams {
    /// A client that says nothing of it asks as the user types.
    pub fn trigger(&self) -> Trigger {
        let kind = self.context.as_ref().and_then(|context| context.trigger_kind);
        if kind == Some(InlineCompletionTriggerKind::INVOKED) {
            Trigger::Invoked
        } else {
            Trigger::Automatic
        }
    }

    /// What the client says that happened last. A word that is not known says nothing.
    pub fn last_change(&self) -> Option<LastChange> {
        match self.context.as_ref()?.after.as_deref()? {
            "typing" => Some(LastChange::Typing),
            "paste" => Some(LastChange::Paste),
            "undo" => Some(LastChange::Undo),
            "accept" => Some(LastChange::Accept),
            _ => None,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct InlineEdits {
    edits: Vec<InlineEdit>,
    /// For Hone's own clients: why the answer is as it is.
    #[serde(rename = "_hone")]
    hone: ReasonNote,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineEdit {
    text: String,
    text_document: Value,
    range: Range,
    command: Command,
    /// For Hone's own clients: what must stand in the range for the edit to be made.
    #[serde(rename = "_hone")]
    hone: Value,
}

impl From<Result<OfferedEdit, Reason>> for InlineEdits {
    fn from(found: Result<OfferedEdit, Reason>) -> InlineEdits {
        let reason = found.as_ref().err().cloned().unwrap_or(Reason::Shown);
        let edits = found.into_iter().map(edit).collect();
        InlineEdits { edits, hone: ReasonNote::of(reason) }
    }
}

fn edit(edit: OfferedEdit) -> InlineEdit {
    let at = |position: Position| lsp::Position::new(position.line, position.column);
    InlineEdit {
        text: edit.new,
        text_document: json!({ "uri": edit.uri, "version": edit.version }),
        range: Range::new(at(edit.range.0), at(edit.range.1)),
        command: Command {
            title: "Accepted".into(),
            command: ACCEPT_COMMAND.into(),
            arguments: Some(vec![edit.id.into()]),
        },
        hone: json!({ "old": edit.old }),
    }
}

/// The capability, which has no place of its own in LSP.
pub fn capability() -> Value {
    json!({ "copilotInlineEditProvider": true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(context: Value) -> InlineEditParams {
        let document = json!({ "uri": "file:///a.rs", "version": 3 });
        let position = json!({ "line": 0, "character": 1 });
        let all = json!({ "textDocument": document, "position": position, "context": context });
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn only_a_key_invokes_a_request() {
        assert_eq!(params(json!({ "triggerKind": 1 })).trigger(), Trigger::Invoked);
        assert_eq!(params(json!({ "triggerKind": 2 })).trigger(), Trigger::Automatic);
        assert_eq!(params(json!({})).trigger(), Trigger::Automatic);
        assert_eq!(params(Value::Null).trigger(), Trigger::Automatic);
    }

    #[test]
    fn a_client_may_tell_what_happened_last() {
        let told = |after: &str| params(json!({ "after": after })).last_change();
        assert_eq!(told("typing"), Some(LastChange::Typing));
        assert_eq!(told("paste"), Some(LastChange::Paste));
        assert_eq!(told("undo"), Some(LastChange::Undo));
        assert_eq!(told("accept"), Some(LastChange::Accept));
        assert_eq!(told("something later"), None);
        assert_eq!(params(json!({ "triggerKind": 1 })).last_change(), None);
        assert_eq!(params(Value::Null).last_change(), None);
    }

    #[test]
    fn no_edit_is_an_empty_list() {
        let answer = InlineEdits::from(Err(Reason::NothingAlike));
        let answer = serde_json::to_value(answer).unwrap();
        assert_eq!(answer["edits"], json!([]));
        assert_eq!(answer["_hone"]["reason"], "nothing_alike");
    }

    #[test]
    fn an_edit_has_what_clients_of_copilot_read() {
        let at = |line, column| Position { line, column };
        let offered = OfferedEdit {
            id: "e-1".into(),
            uri: "file:///a.rs".into(),
            version: 3,
            range: (at(2, 4), at(2, 8)),
            old: "load".into(),
            new: "fetch".into(),
        };
        let answer = serde_json::to_value(InlineEdits::from(Ok(offered))).unwrap();
        let edit = &answer["edits"][0];
        assert_eq!(edit["text"], "fetch");
        assert_eq!(edit["textDocument"], json!({ "uri": "file:///a.rs", "version": 3 }));
        assert_eq!(edit["range"]["end"], json!({ "line": 2, "character": 8 }));
        assert_eq!(edit["command"]["command"], ACCEPT_COMMAND);
        assert_eq!(edit["command"]["arguments"], json!(["e-1"]));
    }
}
