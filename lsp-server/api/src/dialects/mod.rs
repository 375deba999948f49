//! The dialects: which path asks for what in which of them, and how each writes an answer and an
//! error.

mod fields;
mod llama;
mod ollama;
mod openai;

use crate::fim_prompt::ForeignPrompt;
use crate::limits::NAME_BYTES;
use crate::{Answer, Asks, Client, Model, Request, Unavailable};
use fields::Fields;
use hyper::{Method, StatusCode};
use serde_json::Value;

pub const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const LINES: &str = "application/x-ndjson";

/// An answer to a client.
#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub body: String,
}

/// Why there is no answer. The text is for the user of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub status: StatusCode,
    pub message: String,
    /// The field of the request that is wrong.
    pub field: Option<&'static str>,
}

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    Running,
    Health,
    Models,
    Completions,
    Infill,
    Completion,
    Generate,
    Tags,
    Show,
    Version,
    /// No such path, in the dialect that its beginning belongs to.
    Unknown(Dialect),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    OpenAi,
    Llama,
    Ollama,
}

/// A request for a completion, and how its answer is written.
#[derive(Debug)]
pub struct Asked {
    pub request: Request,
    form: Form,
}

#[derive(Debug)]
enum Form {
    OpenAi(openai::Form),
    Llama(llama::Form),
    Ollama(ollama::Form),
}

impl Reply {
    fn json(body: &Value) -> Reply {
        Reply { status: StatusCode::OK, content_type: JSON, body: body.to_string() }
    }

    /// A stream of server-sent events, of which the last may be no JSON.
    fn events(events: impl IntoIterator<Item = String>) -> Reply {
        let body = events.into_iter().map(|event| format!("data: {event}\n\n")).collect();
        Reply { status: StatusCode::OK, content_type: EVENTS, body }
    }

    fn lines(lines: impl IntoIterator<Item = Value>) -> Reply {
        let body = lines.into_iter().map(|line| format!("{line}\n")).collect();
        Reply { status: StatusCode::OK, content_type: LINES, body }
    }
}

impl Trouble {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Trouble {
        Trouble { status, message: message.into(), field: None }
    }

    fn field(field: &'static str, message: impl std::fmt::Display) -> Trouble {
        let message = format!("{field}: {message}");
        Trouble { field: Some(field), ..Trouble::new(StatusCode::BAD_REQUEST, message) }
    }
}

impl From<ForeignPrompt> for Trouble {
    fn from(error: ForeignPrompt) -> Trouble {
        Trouble::field("prompt", error)
    }
}

impl From<Unavailable> for Trouble {
    fn from(error: Unavailable) -> Trouble {
        Trouble::new(StatusCode::SERVICE_UNAVAILABLE, error.0)
    }
}

impl Route {
    pub fn of(path: &str) -> Route {
        match path {
            "" | "/" => Route::Running,
            "/health" | "/v1/health" => Route::Health,
            "/models" | "/v1/models" => Route::Models,
            "/v1/completions" => Route::Completions,
            "/infill" => Route::Infill,
            "/completion" | "/completions" => Route::Completion,
            "/api/generate" => Route::Generate,
            "/api/tags" => Route::Tags,
            "/api/show" => Route::Show,
            "/api/version" => Route::Version,
            path if path.starts_with("/v1/") => Route::Unknown(Dialect::OpenAi),
            path if path.starts_with("/api/") => Route::Unknown(Dialect::Ollama),
            _ => Route::Unknown(Dialect::Llama),
        }
    }

    pub fn dialect(self) -> Dialect {
        match self {
            Route::Completions | Route::Models => Dialect::OpenAi,
            Route::Running | Route::Health | Route::Infill | Route::Completion => Dialect::Llama,
            Route::Generate | Route::Tags | Route::Show | Route::Version => Dialect::Ollama,
            Route::Unknown(dialect) => dialect,
        }
    }

    /// The method by which it is asked.
    fn method(self) -> Method {
        match self {
            Route::Completions
            | Route::Infill
            | Route::Completion
            | Route::Generate
            | Route::Show => Method::POST,
            _ => Method::GET,
        }
    }

    pub fn check(self, method: &Method) -> Result<(), Trouble> {
        if let Route::Unknown(_) = self {
            let message = "there is no such path; see the page on the HTTP API in Hone's book";
            return Err(Trouble::new(StatusCode::NOT_FOUND, message));
        }
        let is_head = *method == Method::HEAD && self.method() == Method::GET;
        if *method == self.method() || is_head {
            return Ok(());
        }
        let message = format!("the method must be {}", self.method());
        Err(Trouble::new(StatusCode::METHOD_NOT_ALLOWED, message))
    }

    /// Returns the answer to what needs no completion. `None` for a request for one.
    pub fn answer(self, model: &Model) -> Option<Reply> {
        Some(match self {
            Route::Running => Reply {
                status: StatusCode::OK,
                content_type: "text/plain",
                body: "Hone is running".into(),
            },
            Route::Health => Reply::json(&serde_json::json!({"status": "ok"})),
            Route::Models => openai::models(model),
            Route::Tags => ollama::tags(model),
            Route::Show => ollama::show(model),
            Route::Version => ollama::version(),
            Route::Completions | Route::Infill | Route::Completion | Route::Generate => {
                return None;
            }
            Route::Unknown(_) => return None,
        })
    }

    /// Reads a request for a completion.
    ///
    /// # Errors
    /// A field is wrong, or the prompt cannot be read.
    pub fn read(self, body: &[u8], client: &str, model: &Model) -> Result<Asked, Trouble> {
        let fields = Fields::read(body)?;
        // Several programs call themselves `curl`, so their dialects tell them apart too.
        let name = format!("{}/{client}", self.name());
        let asks = match (self, client) {
            // llama.vim sends its requests by curl.
            (Route::Infill, "curl") => Asks::AheadAtEachKey,
            (Route::Infill, _) => Asks::AheadAtNewText,
            _ => Asks::Plainly,
        };
        let client = Client { name, asks };
        let (request, form) = match self {
            Route::Infill => {
                let (request, form) = llama::infill(&fields, client)?;
                (request, Form::Llama(form))
            }
            Route::Completion => {
                let (request, form) = llama::completion(&fields, client, model)?;
                (request, Form::Llama(form))
            }
            Route::Generate => {
                let (request, form) = ollama::generate(&fields, client, model)?;
                (request, Form::Ollama(form))
            }
            _ => {
                let (request, form) = openai::completions(&fields, client, model)?;
                (request, Form::OpenAi(form))
            }
        };
        Ok(Asked { request, form })
    }

    fn name(self) -> &'static str {
        match self {
            Route::Infill => "infill",
            Route::Completion => "completion",
            Route::Generate => "generate",
            _ => "completions",
        }
    }
}

impl Asked {
    pub fn reply(&self, answer: &Answer, model: &Model) -> Reply {
        match &self.form {
            Form::OpenAi(form) => form.reply(answer, model),
            Form::Llama(form) => form.reply(answer, model),
            Form::Ollama(form) => form.reply(answer, model),
        }
    }
}

impl Dialect {
    pub fn error(self, trouble: &Trouble) -> Reply {
        let body = match self {
            Dialect::OpenAi => openai::error(trouble),
            Dialect::Llama => llama::error(trouble),
            Dialect::Ollama => ollama::error(trouble),
        };
        Reply { status: trouble.status, content_type: JSON, body: body.to_string() }
    }
}

/// Returns the name of a client: the product in its `User-Agent`, as far as that is plain.
pub fn client_name(user_agent: Option<&str>) -> String {
    let product = user_agent.unwrap_or_default().split_whitespace().next().unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = product
        .split('/')
        .next()
        .unwrap_or_default()
        .chars()
        .filter(plain)
        .take(NAME_BYTES)
        .collect();
    if name.is_empty() { "client".into() } else { name }
}

#[cfg(test)]
mod tests;
