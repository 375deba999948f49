//! Reads messages as they are meant, before the language server sees them. It would drop a
//! notification without a word if an address in it lacks its percent-encoding, or if a field is
//! missing.

use super::lost::{LOST, LostParams};
use host::addresses;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower_lsp::jsonrpc::{Request, Response};
use tower_lsp::ls_types as lsp;
use tower_service::Service;

/// The names of fields that hold an address.
const ADDRESSES: &[&str] = &["uri", "rootUri", "document"];

/// What is said of parameters that cannot be read.
const UNREADABLE: &str = "cannot be read (a wrong type)";

/// What clients say of a notebook that Hone has no use for, in forms that differ from LSP's.
const UNUSED: &[&str] = &["metadata", "executionSummary"];

/// How the errors about parameters begin that cannot be read. Behind that they may quote a value,
/// which may be code.
const QUOTING: &[&str] = &[
    "invalid type",
    "invalid value",
    "invalid length",
    "unknown variant",
    "unknown field",
    "data did not match",
    "Unexpected params",
];

/// Passes messages on in their readable form, and answers without what stood in them.
pub struct Lenient<S>(pub S);

impl<S> Service<Request> for Lenient<S>
where
    S: Service<Request, Response = Option<Response>, Future: Send + 'static>,
{
    type Response = Option<Response>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Option<Response>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let answer = self.0.call(readable(request));
        Box::pin(async { Ok(answer.await?.map(without_values)) })
    }
}

/// Returns an answer that says of unreadable parameters only that they are.
fn without_values(answer: Response) -> Response {
    let (id, result) = answer.into_parts();
    let result = result.map_err(|mut error| {
        if QUOTING.iter().any(|beginning| error.message.starts_with(beginning)) {
            error.message = UNREADABLE.into();
        }
        error
    });
    Response::from_parts(id, result)
}

fn readable(request: Request) -> Request {
    if request.params().is_none() {
        return request;
    }
    let (method, id, params) = request.into_parts();
    let mut params = params.unwrap_or_default();
    match id {
        Some(id) => {
            normalise(&mut params, false);
            Request::build(method).params(params).id(id).finish()
        }
        None => {
            let (method, params) = notification(method, params);
            Request::build(method).params(params).finish()
        }
    }
}

/// Reads a notification as it is meant: its method and its parameters, or [`LOST`] with its own if
/// it is about a document and cannot be read. The forwarder, which keeps an editor's state for the
/// next daemon, calls it too, so that both hold the same documents.
pub fn notification(method: Cow<'static, str>, mut params: Value) -> (Cow<'static, str>, Value) {
    normalise(
        &mut params,
        method.starts_with("textDocument/") || method.starts_with("notebookDocument/"),
    );
    match problem(&method, &params) {
        Some(problem) => (LOST.into(), lost(&method, &params, problem)),
        None => (method, params),
    }
}

/// Gives every address its normal form, so that a document has one name however it is written, and
/// every document that a notification is about what it can do without. A request may leave a
/// version out to say that it names none.
fn normalise(value: &mut Value, notifies: bool) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| normalise(value, notifies)),
        Value::Object(fields) => {
            if notifies && fields.contains_key("uri") {
                complete(fields);
            }
            UNUSED.iter().for_each(|unused| drop(fields.remove(*unused)));
            for (name, value) in fields {
                match value {
                    Value::String(text) if ADDRESSES.contains(&name.as_str()) => {
                        *text = addresses::normal(text);
                    }
                    Value::Array(_) | Value::Object(_) => normalise(value, notifies),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Adds what a document can do without: some clients send no version or no language.
fn complete(fields: &mut Map<String, Value>) {
    let version = fields.get("version").and_then(Value::as_i64);
    if version.is_none_or(|version| i32::try_from(version).is_err()) {
        fields.insert("version".into(), 0.into());
    }
    if fields.contains_key("text") && !fields.get("languageId").is_some_and(Value::is_string) {
        fields.insert("languageId".into(), "".into());
    }
}

/// Returns what is wrong with a notification about a document.
fn problem(method: &str, params: &Value) -> Option<String> {
    match method {
        "textDocument/didOpen" => wrong::<lsp::DidOpenTextDocumentParams>(params),
        "textDocument/didChange" => wrong::<lsp::DidChangeTextDocumentParams>(params),
        "textDocument/didClose" => wrong::<lsp::DidCloseTextDocumentParams>(params),
        "notebookDocument/didOpen" => wrong::<lsp::DidOpenNotebookDocumentParams>(params),
        "notebookDocument/didChange" => wrong::<lsp::DidChangeNotebookDocumentParams>(params),
        "notebookDocument/didClose" => wrong::<lsp::DidCloseNotebookDocumentParams>(params),
        LOST => wrong::<LostParams>(params),
        _ => None,
    }
}

fn wrong<'a, T: Deserialize<'a>>(params: &'a Value) -> Option<String> {
    let error = T::deserialize(params).err()?.to_string();
    // Other errors may quote a value, which may be code.
    let is_named = error.starts_with("missing field");
    Some(if is_named { format!("cannot be read ({error})") } else { UNREADABLE.into() })
}

/// Returns the parameters of [`LOST`] for a notification that cannot be read.
fn lost(method: &str, params: &Value, problem: String) -> Value {
    let uri = |document: &str| params.get(document)?.get("uri")?.as_str();
    let uri = uri("textDocument").or_else(|| uri("notebookDocument")).unwrap_or_default();
    json!(LostParams { method: method.to_owned(), uri: uri.to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &'static str, params: Value) -> (String, Value) {
        let (method, _, params) =
            readable(Request::build(method).params(params).finish()).into_parts();
        (method.into_owned(), params.unwrap())
    }

    fn opened(document: Value) -> (String, Value) {
        read("textDocument/didOpen", json!({"textDocument": document}))
    }

    #[test]
    fn every_address_gets_its_normal_form() {
        let (_, params) = read(
            "notebookDocument/didOpen",
            json!({"notebookDocument": {"uri": "file:///[a].ipynb", "version": 1,
                "notebookType": "x", "cells": [{"kind": 2, "document": "cell:/[a]#ü"}]},
                "cellTextDocuments": []}),
        );
        assert_eq!(params["notebookDocument"]["uri"], "file:///%5Ba%5D.ipynb");
        assert_eq!(params["notebookDocument"]["cells"][0]["document"], "cell:/%5Ba%5D#%C3%BC");
        let (_, params) = read("initialize", json!({"rootUri": "/a b", "text": "/a b"}));
        assert_eq!(params, json!({"rootUri": "file:///a%20b", "text": "/a b"}));
    }

    #[test]
    fn a_document_without_version_or_language_is_read() {
        for version in [json!(null), json!(1.5), json!(u64::MAX)] {
            let (method, params) = opened(json!({"uri": "x:a", "version": version, "text": ""}));
            assert_eq!(method, "textDocument/didOpen");
            assert_eq!(params["textDocument"]["version"], 0);
            assert_eq!(params["textDocument"]["languageId"], "");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_without_its_text() {
        let code = "let password = 1;";
        let (method, params) = opened(json!({"uri": "x:a", "languageId": "rust"}));
        assert_eq!((method.as_str(), &params["uri"]), (LOST, &json!("x:a")));
        assert_eq!(params["problem"], "cannot be read (missing field `text`)");
        let document = json!({"uri": "x:a"});
        for changes in [json!(code), json!([code]), json!([{"range": code, "text": ""}])] {
            let params = json!({"textDocument": document, "contentChanges": changes});
            let (method, params) = read("textDocument/didChange", params);
            assert_eq!(
                (method.as_str(), &params["method"]),
                (LOST, &"textDocument/didChange".into())
            );
            assert!(!params.to_string().contains("password"), "{params}");
        }
        for params in [json!(null), json!([]), json!("x"), json!({"textDocument": 1})] {
            assert_eq!(read("textDocument/didOpen", params).1["uri"], "");
        }
    }

    #[test]
    fn an_answer_about_unreadable_parameters_quotes_none_of_them() {
        use tower_lsp::jsonrpc::Error;
        let code = "let password = 1;";
        let said = |error: serde_json::Error| {
            let answer = Response::from_error(7.into(), Error::invalid_params(error.to_string()));
            without_values(answer).error().unwrap().message.to_string()
        };
        let position = |params: Value| serde_json::from_value::<lsp::Position>(params).unwrap_err();
        let kind = |params: Value| serde_json::from_value::<Kind>(params).unwrap_err();
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        enum Kind {}
        for error in [
            position(json!(code)),
            position(json!({"line": code, "character": 0})),
            position(json!({"line": -1, "character": 0})),
            position(json!([1])),
            kind(json!(code)),
        ] {
            assert_eq!(said(error), UNREADABLE);
        }
        assert_eq!(said(position(json!({"line": 1}))), "missing field `character`");
    }

    #[test]
    fn requests_keep_their_ids_and_unknown_notifications_their_names() {
        let request = Request::build("hone/status").params(json!({"uri": "[a]"})).id(7).finish();
        assert_eq!(readable(request).id(), Some(&7.into()));
        assert_eq!(read("$/setTrace", json!({"value": "off"})).0, "$/setTrace");
        // A request that names no version asks about the document as it is.
        let about = json!({"textDocument": {"uri": "x:a"}});
        let request = Request::build("textDocument/copilotInlineEdit").params(about.clone()).id(8);
        assert_eq!(readable(request.finish()).params(), Some(&about));
    }
}
