//! The messages in addition to LSP that clients written for GitHub's Copilot send: requests about
//! an account, which Hone does not need, and, from clients of the older agent, requests of their
//! own for completions.

use completion::document::Position;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use session::Suggestion;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_lsp::jsonrpc::{Request, Response};
use tower_lsp::ls_types::{self as lsp, Uri};
use tower_service::Service;

/// The user that these clients are told is signed in. Before that they request no completions.
const USER: &str = "hone";

/// The answer to a request about the account or the editor. It is always the same, whatever the
/// parameters are.
fn answer(method: &str) -> Option<Value> {
    Some(match method {
        "checkStatus" | "signInConfirm" => json!({ "status": "OK", "user": USER }),
        "signIn" | "signInInitiate" => json!({ "status": "AlreadySignedIn", "user": USER }),
        "signOut" => json!({ "status": "NotSignedIn" }),
        "getVersion" => json!({ "version": env!("CARGO_PKG_VERSION") }),
        "setEditorInfo" | "notifyChangeConfiguration" => json!("OK"),
        _ => return None,
    })
}

/// Returns whether a client was written for the older agent. Such a client counts in UTF-16, even
/// if its editor offers another encoding.
pub fn speaks_agent(initialization_options: Option<&Value>) -> bool {
    initialization_options.is_some_and(|options| options.get("editorPluginInfo").is_some())
}

/// Returns true if a client was written for Copilot's language server, which sends status lines.
/// All of them name themselves in the same way.
pub fn knows_status(initialization_options: Option<&Value>) -> bool {
    let has = |field| initialization_options.is_some_and(|options| options.get(field).is_some());
    has("editorInfo") || has("editorPluginInfo")
}

/// Answers requests about the account before the language server sees them.
pub struct Account<S>(pub S);

type AccountReply<E> = Ready<Result<Option<Response>, E>>;

/// The answer of either the account or the language server.
pub enum Reply<F, E> {
    Account(AccountReply<E>),
    Server(F),
}

impl<F, E> Future for Reply<F, E>
where
    F: Future<Output = Result<Option<Response>, E>> + Unpin,
    E: Unpin,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match self.get_mut() {
            Reply::Account(reply) => Pin::new(reply).poll(context),
            Reply::Server(answer) => Pin::new(answer).poll(context),
        }
    }
}

impl<S> Service<Request> for Account<S>
where
    S: Service<Request, Response = Option<Response>>,
    S::Future: Unpin,
    S::Error: Unpin,
{
    type Response = Option<Response>;
    type Error = S::Error;
    type Future = Reply<S::Future, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match (request.id(), answer(request.method())) {
            (Some(id), Some(answer)) => {
                Reply::Account(ready(Ok(Some(Response::from_ok(id.clone(), answer)))))
            }
            _ => Reply::Server(self.0.call(request)),
        }
    }
}

/// `getCompletions`, `getCompletionsCycling`
#[derive(Debug, Deserialize)]
pub struct CompletionsParams {
    pub doc: DocumentPosition,
}

#[derive(Debug, Deserialize)]
pub struct DocumentPosition {
    pub uri: Uri,
    pub position: lsp::Position,
    /// What else these clients say of the document, such as how they indent lines.
    #[serde(flatten)]
    pub formatting: Map<String, Value>,
}

#[derive(Debug, Serialize)]
pub struct Completions {
    pub completions: Vec<Completion>,
}

/// A completion that begins at the start of the line: its text has the line's text before the
/// cursor in front, because these clients replace the whole line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Completion {
    uuid: String,
    text: String,
    display_text: String,
    range: lsp::Range,
    position: lsp::Position,
}

impl Completions {
    pub fn new(line_before: &str, suggestions: Vec<Suggestion>) -> Completions {
        let completion = |suggestion: Suggestion| {
            let Position { line, column } = suggestion.position;
            let position = lsp::Position::new(line, column);
            let end = lsp::Position::new(line, column + suggestion.replaces);
            Completion {
                uuid: suggestion.id,
                text: format!("{line_before}{}", suggestion.text),
                display_text: suggestion.text,
                range: lsp::Range::new(lsp::Position::new(line, 0), end),
                position,
            }
        };
        Completions { completions: suggestions.into_iter().map(completion).collect() }
    }
}

/// `notifyShown`, `notifyAccepted`
#[derive(Debug, Deserialize)]
pub struct OfferParams {
    pub uuid: String,
}

/// `notifyRejected` names every offer that was on screen since the last answer.
#[derive(Debug, Deserialize)]
pub struct OffersParams {
    pub uuids: Vec<String>,
}
