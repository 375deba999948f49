//! What an editor reports as shown. Its silence about an offer then means that the offer was not on
//! screen, which a new daemon has to know.

use crate::protocol::messages::{ItemParams, REPORTS, ReportsParams};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Default)]
pub struct Reports(ReportsParams);

impl Reports {
    /// Notes a message of the editor.
    pub fn note(&mut self, method: &str, params: &Value) {
        let item = || ItemParams::deserialize(params).ok().filter(|item| item.id().is_some());
        match method {
            "notifyShown" => self.0.completions |= params["uuid"].is_string(),
            "textDocument/didShowCompletion" => {
                self.0.completions |= item().is_some_and(|item| !item.turned_to);
            }
            "textDocument/didShowInlineEdit" => self.0.edits |= item().is_some(),
            _ => {}
        }
    }

    /// Returns the message that says so to a new daemon, if there is anything to say.
    pub fn message(&self) -> Option<Value> {
        let ReportsParams { completions, edits } = self.0;
        (completions || edits).then(|| super::notification(REPORTS, json!(self.0)))
    }
}
