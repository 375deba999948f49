//! The answer to `initialize`. It depends on what the client can do, and on nothing that is loaded
//! or learned, so that it can be given before the model is in memory.

use super::messages::{ACCEPT_COMMAND, DidChangeStatus};
use super::{copilot, next_edit};
use completion::document::Encoding;
use report::status::StatusLine;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::ls_types::notification::Notification;
use tower_lsp::ls_types::{
    ClientCapabilities, ClientInfo, ExecuteCommandOptions, InitializeParams, InitializeResult,
    InlineCompletionOptions, Notebook, NotebookDocumentSyncOptions,
    NotebookDocumentSyncRegistrationOptions, NotebookSelector, OneOf, PositionEncodingKind,
    ServerCapabilities, ServerInfo, TextDocumentSyncCapability, TextDocumentSyncKind,
};

/// What the full names of JetBrains' editors have in them.
const JETBRAINS: [&str; 14] = [
    "Android Studio",
    "Aqua",
    "CLion",
    "DataGrip",
    "DataSpell",
    "GoLand",
    "IntelliJ",
    "JetBrains",
    "PhpStorm",
    "PyCharm",
    "Rider",
    "RubyMine",
    "RustRover",
    "WebStorm",
];

/// What a client says of itself, as far as the answer depends on it.
pub struct ClientAbilities {
    encodings: Vec<PositionEncodingKind>,
    has_notebooks: bool,
    shows_status: bool,
}

impl ClientAbilities {
    pub fn new(capabilities: ClientCapabilities, options: Option<&Value>) -> ClientAbilities {
        let has_notebooks = capabilities.notebook_document.is_some();
        let offered = capabilities.general.and_then(|general| general.position_encodings);
        let mut encodings = offered.unwrap_or_default();
        if copilot::speaks_agent(options) {
            encodings.clear();
        }
        let shows_status = copilot::knows_status(options) || announces_status(options);
        ClientAbilities { encodings, has_notebooks, shows_status }
    }

    /// The abilities in a message, if it is a whole `initialize` request.
    fn of_request(message: &Value) -> Option<ClientAbilities> {
        if message["method"] != "initialize" || message["id"].is_null() {
            return None;
        }
        let params = InitializeParams::deserialize(&message["params"]).ok()?;
        Some(ClientAbilities::new(params.capabilities, params.initialization_options.as_ref()))
    }

    /// Returns true if the client knows the notification of status lines. LSP does not have it, and
    /// clients warn of notifications that they do not know.
    pub fn shows_status(&self) -> bool {
        self.shows_status
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

/// Returns true if a client shows what stands behind the cursor within the range of an item, and
/// then the item's whole text, as LSP4IJ in JetBrains' editors does. An offer for it leaves out the
/// closing marks that stand there, and its range ends at the cursor.
pub fn shows_marks_twice(client: Option<&ClientInfo>) -> bool {
    client.is_some_and(|client| JETBRAINS.iter().any(|name| client.name.contains(name)))
}

/// Returns true if a client announces the notification in its `initializationOptions`, as Hone's
/// own do.
fn announces_status(options: Option<&Value>) -> bool {
    options.is_some_and(|options| options[DidChangeStatus::METHOD] == true)
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
    /// The answer and, for a client that shows it, a status line that says what the daemon does.
    pub messages: Vec<Value>,
}

/// The answer to a message, if that is a whole `initialize` request.
pub fn early_answer(message: &Value) -> Option<EarlyAnswer> {
    let abilities = ClientAbilities::of_request(message)?;
    let result = json!(result(&abilities));
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let mut messages = vec![answer];
    if abilities.shows_status() {
        let (method, params) = (DidChangeStatus::METHOD, StatusLine::loading());
        messages.push(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
    Some(EarlyAnswer { result, messages })
}

/// The capability by which a client reports every notebook, of any type and with all its cells.
fn notebook_sync() -> OneOf<NotebookDocumentSyncOptions, NotebookDocumentSyncRegistrationOptions> {
    let every =
        NotebookSelector::ByNotebook { notebook: Notebook::String("*".into()), cells: None };
    OneOf::Left(NotebookDocumentSyncOptions { notebook_selector: vec![every], save: Some(true) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_editors_of_jetbrains_are_known_by_their_full_names() {
        let shows_twice = |name: &str| {
            let client = ClientInfo { name: name.to_owned(), version: None };
            shows_marks_twice(Some(&client))
        };
        for name in ["IntelliJ IDEA 2026.1.2", "PyCharm 2025.3", "JetBrains Rider 2026.1"] {
            assert!(shows_twice(name), "{name}");
        }
        for name in ["Neovim", "Visual Studio Code", "emacs", "Helix", ""] {
            assert!(!shows_twice(name), "{name}");
        }
        assert!(!shows_marks_twice(None));
    }
}
