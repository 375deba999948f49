//! The answer to `initialize`. It depends on what the client can do, and on nothing that is loaded or
//! learned, so that it can be given before the model is in memory.

use super::messages::{ACCEPT_COMMAND, DidChangeStatus};
use super::{copilot, next_edit};
use crate::report::status::StatusLine;
use completion::document::Encoding;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::ls_types::notification::Notification;
use tower_lsp::ls_types::{
    ClientCapabilities, ExecuteCommandOptions, InitializeParams, InitializeResult,
    InlineCompletionOptions, Notebook, NotebookDocumentSyncOptions,
    NotebookDocumentSyncRegistrationOptions, NotebookSelector, OneOf, PositionEncodingKind,
    ServerCapabilities, ServerInfo, TextDocumentSyncCapability, TextDocumentSyncKind,
};

/// What a client says of itself, as far as the answer depends on it.
pub struct ClientAbilities {
    encodings: Vec<PositionEncodingKind>,
    has_notebooks: bool,
}

impl ClientAbilities {
    pub fn new(capabilities: ClientCapabilities, options: Option<&Value>) -> ClientAbilities {
        let has_notebooks = capabilities.notebook_document.is_some();
        let offered = capabilities.general.and_then(|general| general.position_encodings);
        let mut encodings = offered.unwrap_or_default();
        if copilot::speaks_agent(options) {
            encodings.clear();
        }
        ClientAbilities { encodings, has_notebooks }
    }

    /// The abilities in a message, if it is a whole `initialize` request.
    fn of_request(message: &Value) -> Option<ClientAbilities> {
        if message["method"] != "initialize" || message["id"].is_null() {
            return None;
        }
        let params = InitializeParams::deserialize(&message["params"]).ok()?;
        Some(ClientAbilities::new(params.capabilities, params.initialization_options.as_ref()))
    }

    /// The unit of the columns in all messages that follow.
    pub fn encoding(&self) -> Encoding {
        self.choose_encoding().0
    }

    /// The client's first choice of the encodings that Hone knows; UTF-16 is LSP's default.
    fn choose_encoding(&self) -> (Encoding, PositionEncodingKind) {
        for kind in &self.encodings {
            if *kind == PositionEncodingKind::UTF8 {
                return (Encoding::Utf8, PositionEncodingKind::UTF8);
            }
            if *kind == PositionEncodingKind::UTF16 {
                break;
            }
        }
        (Encoding::Utf16, PositionEncodingKind::UTF16)
    }
}

/// Returns the answer to a client.
pub fn result(client: &ClientAbilities) -> InitializeResult {
    InitializeResult {
        capabilities: ServerCapabilities {
            position_encoding: Some(client.choose_encoding().1),
            // Only for clients that have them: others need not know of it.
            notebook_document_sync: client.has_notebooks.then(notebook_sync),
            text_document_sync: Some(TextDocumentSyncCapability::Kind(
                TextDocumentSyncKind::INCREMENTAL,
            )),
            execute_command_provider: Some(ExecuteCommandOptions {
                commands: vec![ACCEPT_COMMAND.into()],
                ..ExecuteCommandOptions::default()
            }),
            inline_completion_provider: Some(OneOf::Right(InlineCompletionOptions::default())),
            experimental: Some(next_edit::capability()),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo {
            name: "hone".into(),
            version: Some(env!("CARGO_PKG_VERSION").into()),
        }),
        ..InitializeResult::default()
    }
}

/// What a client gets whose daemon still loads the model.
pub struct EarlyAnswer {
    /// The result of `initialize`.
    pub result: Value,
    /// The answer, and a status line that says what the daemon does.
    pub messages: [Value; 2],
}

/// The answer to a message, if that is a whole `initialize` request.
pub fn early_answer(message: &Value) -> Option<EarlyAnswer> {
    let abilities = ClientAbilities::of_request(message)?;
    let result = json!(result(&abilities));
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let (method, params) = (DidChangeStatus::METHOD, StatusLine::loading());
    let status = json!({"jsonrpc": "2.0", "method": method, "params": params});
    Some(EarlyAnswer { result, messages: [answer, status] })
}

/// The capability by which a client tells of every notebook, of any type and with all its cells.
fn notebook_sync() -> OneOf<NotebookDocumentSyncOptions, NotebookDocumentSyncRegistrationOptions> {
    let every =
        NotebookSelector::ByNotebook { notebook: Notebook::String("*".into()), cells: None };
    OneOf::Left(NotebookDocumentSyncOptions { notebook_selector: vec![every], save: Some(true) })
}
