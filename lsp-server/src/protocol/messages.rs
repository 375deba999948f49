//! Messages that LSP 3.17 does not have: Copilot's notifications, which existing clients send
//! already, and Hone's own messages.

use completion::indentation::Indentation;
use feedback::event::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use services::reason::Reason;
use tower_lsp::ls_types::notification::Notification;
use tower_lsp::ls_types::{
    InlineCompletionItem, InlineCompletionParams, Position, TextDocumentIdentifier, Uri,
};

/// The command that accepts an offer; `arguments[0]` is its id.
pub const ACCEPT_COMMAND: &str = "hone.accept";

/// The part of an item that matters when a client sends the item back. Some clients send the whole
/// item, others only its command, so the id in `command.arguments` is used.
#[derive(Debug, Deserialize)]
pub struct ItemParams {
    item: ItemReference,
    /// UTF-16 units from the start of `insertText`.
    #[serde(default, rename = "acceptedLength")]
    pub accepted_length: u32,
    /// True if the user turned to the item, and the client cannot report the items that it shows by
    /// itself.
    #[serde(default, rename = "turnedTo")]
    pub turned_to: bool,
}

#[derive(Debug, Deserialize)]
struct ItemReference {
    command: CommandReference,
}

#[derive(Debug, Deserialize)]
struct CommandReference {
    #[serde(default)]
    arguments: Vec<Value>,
}

impl ItemParams {
    pub fn id(&self) -> Option<&str> {
        self.item.command.arguments.first()?.as_str()
    }
}

/// The notification by which the forwarder tells a new daemon what its editor reports as shown.
pub const REPORTS: &str = "hone/reports";

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ReportsParams {
    #[serde(default)]
    pub completions: bool,
    /// Next edits.
    #[serde(default)]
    pub edits: bool,
}

/// `textDocument/inlineCompletion`, with what clients of Copilot add to it.
#[derive(Debug, Deserialize)]
pub struct InlineParams {
    #[serde(flatten)]
    pub lsp: InlineCompletionParams,
    #[serde(default, rename = "formattingOptions")]
    formatting: Value,
}

impl InlineParams {
    /// Returns how the editor indents lines, if the client says so.
    pub fn indentation(&self) -> Option<Indentation> {
        indentation(&self.formatting)
    }
}

/// Reads the fields by which clients say how they indent lines. A client may send anything there.
pub fn indentation(fields: &Value) -> Option<Indentation> {
    let tab_size = fields["tabSize"].as_u64().unwrap_or_default();
    Indentation::of(tab_size.try_into().ok()?, fields["insertSpaces"].as_bool()?)
}

/// The answer to `textDocument/inlineCompletion`: LSP's list of items, and why it is as it is.
#[derive(Debug, Serialize)]
pub struct InlineAnswer {
    pub items: Vec<InlineCompletionItem>,
    #[serde(rename = "_hone")]
    pub hone: ReasonNote,
}

/// Why a request ended as it did, for programs and for people.
#[derive(Debug, Serialize)]
pub struct ReasonNote {
    #[serde(flatten)]
    reason: Reason,
    sentence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl ReasonNote {
    pub fn of(reason: Reason) -> ReasonNote {
        let (sentence, remedy) = (reason.sentence(), reason.remedy());
        ReasonNote { reason, sentence, remedy }
    }
}

/// `textDocument/didFocus` is Copilot's and names only the document. Hone adds an optional
/// position, at which the user is likely to type.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FocusParams {
    pub text_document: Option<TextDocumentIdentifier>,
    pub position: Option<Position>,
}

/// `hone/didReject`
#[derive(Debug, Deserialize)]
pub struct RejectParams {
    pub id: String,
    pub reason: RejectReason,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RejectReason {
    Esc,
    Timeout,
    Edit,
    /// The offer left the screen or never was there, and the user did not reject it.
    Hidden,
}

impl From<RejectReason> for Outcome {
    fn from(reason: RejectReason) -> Outcome {
        match reason {
            RejectReason::Esc => Outcome::RejectedEsc,
            RejectReason::Timeout => Outcome::RejectedTimeout,
            RejectReason::Edit => Outcome::RejectedEdit,
            RejectReason::Hidden => Outcome::Superseded,
        }
    }
}

/// `hone/forget`
#[derive(Debug, Deserialize)]
pub struct ForgetParams {
    pub uri: Uri,
}

/// `hone/advanceClock`, on a daemon whose clock is manual.
#[derive(Debug, Deserialize)]
pub struct AdvanceClockParams {
    pub ms: u64,
}

/// Answer to `hone/learn`.
#[derive(Debug, Serialize)]
pub struct LearnAnswer {
    /// False if no labelled episode waits.
    pub started: bool,
    pub waiting: usize,
}

/// `didChangeStatus`, from the server.
pub enum DidChangeStatus {}

impl Notification for DidChangeStatus {
    type Params = report::status::StatusLine;
    const METHOD: &'static str = "didChangeStatus";
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_editors_indentation_is_read_if_it_makes_sense() {
        let read = |options: Value| indentation(&options);
        let tabs = json!({"tabSize": 8, "insertSpaces": false});
        assert_eq!(read(tabs), Indentation::of(8, false));
        assert_eq!(read(json!({"tabSize": 2, "insertSpaces": true})), Indentation::of(2, true));
        for odd in [json!(null), json!(7), json!({"insertSpaces": true}), json!({"tabSize": 2})] {
            assert_eq!(read(odd), None);
        }
    }

    #[test]
    fn an_item_is_recognised_by_its_command_alone() {
        let whole = json!({"item": {"insertText": "x", "range": {}, "command":
            {"title": "", "command": ACCEPT_COMMAND, "arguments": ["a-1"]}}, "acceptedLength": 3});
        let params: ItemParams = serde_json::from_value(whole).unwrap();
        assert_eq!((params.id(), params.accepted_length), (Some("a-1"), 3));
        let bare = json!({"item": {"command": {"arguments": ["a-1"]}}});
        assert_eq!(serde_json::from_value::<ItemParams>(bare).unwrap().id(), Some("a-1"));
        let none = json!({"item": {"command": {"command": ACCEPT_COMMAND}}});
        assert_eq!(serde_json::from_value::<ItemParams>(none).unwrap().id(), None);
    }
}
