//! Messages that cannot be read. The client is told of each, and the session learns which document
//! it was about, because it no longer knows what the editor shows there.

use super::framing;
use super::outline::Outline;
use host::addresses;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The notification that takes the place of a message that cannot be read. It reaches the session
/// in the order of the messages, and a new daemon gets it again.
pub const LOST: &str = "hone/lost";

/// The parameters of [`LOST`]. The address is empty if the message has none.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LostParams {
    pub method: String,
    pub uri: String,
    /// What is wrong with the message, as the predicate of a sentence.
    pub problem: String,
}

/// What is wrong with a change that is none of the document, as the predicate of a sentence.
pub const PAST_THE_END: &str = "begins past the end of the document";

impl LostParams {
    /// Returns true if the message was to close the document, so that nothing is lost.
    pub fn is_about_closed(&self) -> bool {
        self.method.ends_with("/didClose") && !self.uri.is_empty()
    }

    /// Returns what it means for the document, and what to do about it.
    pub fn consequence(&self) -> String {
        let LostParams { method, problem, .. } = self;
        if method.ends_with("/didOpen") {
            format!("{method} {problem}, so nothing is completed there")
        } else {
            format!(
                "{method} {problem}, so editor and server are out of step: close and open the \
                 file again"
            )
        }
    }
}

/// What takes the place of a message that cannot be read.
#[derive(Debug, Default, PartialEq)]
pub struct Instead {
    /// For the client. Its id is null if the message has none.
    pub answer: Option<Vec<u8>>,
    /// For the session: [`LOST`], if the message told something of a document.
    pub message: Option<Vec<u8>>,
}

/// For a message of more bytes than are read.
pub fn instead_of_too_long(bytes: usize, outline: &Outline) -> Instead {
    const INVALID_REQUEST: i32 = -32600;
    instead(outline, INVALID_REQUEST, &framing::too_long(bytes))
}

/// For bytes that are no message.
pub fn instead_of_noise(outline: &Outline) -> Instead {
    const PARSE_ERROR: i32 = -32700;
    instead(outline, PARSE_ERROR, "is no JSON-RPC message")
}

fn instead(outline: &Outline, code: i32, problem: &str) -> Instead {
    let subject = match (outline.method.as_deref(), outline.uri.as_deref()) {
        (Some(method), Some(uri)) => format!("{method} of {uri}"),
        (Some(method), None) => method.to_owned(),
        (None, _) => "this".to_owned(),
    };
    let error = json!({"code": code, "message": format!("{subject} {problem}")});
    let answer = json!({"jsonrpc": "2.0", "id": outline.id, "error": error});
    let message = outline.method.clone().zip(outline.uri.clone()).map(|(method, uri)| {
        let params = LostParams { method, uri: addresses::normal(&uri), problem: problem.into() };
        json!({"jsonrpc": "2.0", "method": LOST, "params": params})
    });
    let message = message.filter(|_| outline.id.is_none());
    let bytes = |message: Value| message.to_string().into_bytes();
    Instead { answer: Some(bytes(answer)), message: message.map(bytes) }
}
