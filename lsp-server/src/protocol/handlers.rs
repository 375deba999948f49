//! The edge of the protocol: it turns LSP messages into calls of a [`Session`]. No module behind
//! this one knows LSP.
//!
//! Handlers must call their session before any await. The transport polls them in the order of the
//! messages, but only up to the first await.

mod notebooks;
#[cfg(test)]
mod tests;

use super::copilot::{Account, Completions, CompletionsParams, OfferParams, OffersParams};
use super::initialize::{self, ClientAbilities};
use super::leave::{Leave, Noting};
use super::lenient::Lenient;
use super::lost::{LOST, LostParams};
use super::messages::{
    self, ACCEPT_COMMAND, AdvanceClockParams, DidChangeStatus, FocusParams, ForgetParams,
    InlineAnswer, InlineParams, ItemParams, LearnAnswer, REPORTS, ReasonNote, RejectParams,
    ReportsParams,
};
use super::next_edit::{InlineEditParams, InlineEdits};
use crate::app::App;
use completion::document::{Document, Position};
use host::addresses;
use learning::LearnNow;
use parking_lot::Mutex;
use privacy::forget_scope::{self, Forgotten, Scope};
use report::status::{self, StatusLine};
use ropey::Rope;
use serde_json::{Value, json};
use services::reason::Reason;
use services::recent_requests::RecentRequest;
use services::snooze::Snooze;
use session::request::Trigger;
use session::{Completed, Entry, Selected, Session, SessionError, Suggestion};
use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::sync::watch::Receiver;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::ls_types::{
    self as lsp, Command, DidChangeNotebookDocumentParams, DidChangeTextDocumentParams,
    DidChangeWatchedFilesParams, DidChangeWorkspaceFoldersParams, DidCloseNotebookDocumentParams,
    DidCloseTextDocumentParams, DidOpenNotebookDocumentParams, DidOpenTextDocumentParams,
    DidSaveNotebookDocumentParams, DidSaveTextDocumentParams, ExecuteCommandParams,
    InitializeParams, InitializeResult, InitializedParams, InlineCompletionItem,
    InlineCompletionTriggerKind, MessageType, Range, TextDocumentContentChangeEvent,
    TextDocumentItem, VersionedTextDocumentIdentifier,
};
use tower_lsp::{Client, LanguageServer, LspService, Server};

/// The number of messages that are handled at a time. With the transport's default of 4, four slow
/// completions delay every later message.
const CONCURRENT_MESSAGES: usize = 1000;

/// LSP's code for a request that a newer one has replaced.
const REQUEST_CANCELLED: i64 = -32800;

/// LSP's code for a request that is valid and could not be carried out.
const REQUEST_FAILED: i64 = -32803;

struct Backend {
    client: Client,
    /// Notified once the client is ready for status lines.
    follows_status: Arc<Notify>,
    /// True if the client has said that it knows status lines.
    shows_status: AtomicBool,
    app: Arc<App>,
    session: Arc<Session>,
    learn: LearnNow,
}

/// Serves one client until it exits, its stream ends, or the daemon does. Returns how it left.
pub async fn serve(
    app: Arc<App>,
    learn: LearnNow,
    read: impl AsyncRead + Unpin,
    write: impl AsyncWrite,
    daemon_ends: impl Future<Output = ()>,
) -> Leave {
    let session = app.editor_session();
    let (ending, recorder) = (session.clone(), app.services.recorder.clone());
    let (lines, ready) = (app.status_line(), Arc::new(Notify::new()));
    let (follows_status, shows_status) = (ready.clone(), AtomicBool::new(false));
    let backend = |client| Backend { client, follows_status, shows_status, app, session, learn };
    let (service, socket) = LspService::build(backend)
        .custom_method("textDocument/inlineCompletion", Backend::inline_completion)
        .custom_method("textDocument/didShowCompletion", Backend::did_show)
        .custom_method("textDocument/didPartiallyAcceptCompletion", Backend::did_partly_accept)
        .custom_method("textDocument/didFocus", Backend::did_focus)
        .custom_method("textDocument/copilotInlineEdit", Backend::inline_edit)
        .custom_method("textDocument/didShowInlineEdit", Backend::did_show_edit)
        .custom_method("getCompletions", Backend::completions)
        .custom_method("getCompletionsCycling", Backend::completions_cycling)
        .custom_method("notifyShown", Backend::notify_shown)
        .custom_method("notifyAccepted", Backend::notify_accepted)
        .custom_method("notifyRejected", Backend::notify_rejected)
        .custom_method("hone/didReject", Backend::did_reject)
        .custom_method(REPORTS, Backend::reports)
        .custom_method(LOST, Backend::lost)
        .custom_method("hone/forget", Backend::forget)
        .custom_method("hone/status", Backend::status)
        .custom_method("hone/why", Backend::why)
        .custom_method("hone/snooze", Backend::snooze)
        .custom_method("hone/learn", Backend::learn_now)
        .custom_method("hone/advanceClock", Backend::advance_clock)
        .finish();
    let telling = tell_status(service.inner().client.clone(), lines, ready);
    let leave = Arc::new(Mutex::new(Leave::default()));
    let service = Noting { service: Lenient(Account(service)), leave: leave.clone() };
    let served = super::guard::guard(read, write, |read, write| {
        Server::new(read, write, socket).concurrency_level(CONCURRENT_MESSAGES).serve(service)
    });
    tokio::select! {
        _ = served => {}
        () = daemon_ends => {}
        () = async { telling.await; pending().await } => {}
    }
    ending.end();
    // If the flush fails, the reason is in the log. The client is gone and cannot be told.
    let _ = recorder.flush().await;
    *leave.lock()
}

/// Sends every status line to a client, once it is ready for them. It ends with the daemon, and has
/// no task of its own, so that it ends with the connection too.
async fn tell_status(client: Client, mut lines: Receiver<StatusLine>, ready: Arc<Notify>) {
    ready.notified().await;
    loop {
        let line = lines.borrow_and_update().clone();
        client.send_notification::<DidChangeStatus>(line).await;
        if lines.changed().await.is_err() {
            return;
        }
    }
}

impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let options = params.initialization_options.as_ref();
        let abilities = ClientAbilities::new(params.capabilities, options);
        self.session.use_encoding(abilities.encoding());
        if initialize::shows_marks_twice(params.client_info.as_ref()) {
            self.session.keep_marks();
        }
        #[allow(deprecated)] // Some clients say nothing else.
        let root = params.root_uri;
        match params.workspace_folders {
            Some(folders) => {
                folders.iter().for_each(|folder| self.open_folder(&folder.uri));
            }
            None => root.iter().for_each(|root| self.open_folder(root)),
        }
        self.shows_status.store(abilities.shows_status(), Ordering::Relaxed);
        Ok(initialize::result(&abilities))
    }

    async fn initialized(&self, _: InitializedParams) {
        if self.shows_status.load(Ordering::Relaxed) {
            self.follows_status.notify_one();
        }
    }

    async fn shutdown(&self) -> Result<()> {
        // The editor ends in any case, so an error changes nothing.
        let _ = self.app.services.recorder.flush().await;
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let uri = params.text_document.uri.to_string();
        let name = addresses::name(&self.session.recorded_as(&uri));
        self.open(params.text_document, name);
        self.look_at_imports(vec![uri]);
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let changed = self.change(params.text_document, params.content_changes);
        if let Err(error) = changed {
            self.client.log_message(MessageType::WARNING, error).await;
        }
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.session.close(params.text_document.uri.as_str());
    }

    // The next three messages mean nothing to Hone. Clients send them unasked, and without a
    // handler each would be a warning in the log.

    async fn did_save(&self, _: DidSaveTextDocumentParams) {}

    async fn notebook_did_save(&self, _: DidSaveNotebookDocumentParams) {}

    async fn did_change_watched_files(&self, _: DidChangeWatchedFilesParams) {}

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        for folder in params.event.removed {
            self.session.close_folder(Path::new(&addresses::name(folder.uri.as_str())));
        }
        params.event.added.iter().for_each(|folder| self.open_folder(&folder.uri));
    }

    async fn notebook_did_open(&self, params: DidOpenNotebookDocumentParams) {
        let notebook = params.notebook_document;
        let cells = notebook.cells.iter().map(notebooks::cell).collect();
        self.session.open_notebook(notebook.uri.to_string(), cells);
        self.open_cells(&notebook.uri, params.cell_text_documents);
    }

    async fn notebook_did_change(&self, params: DidChangeNotebookDocumentParams) {
        let (uri, cells) = (params.notebook_document.uri, params.change.cells);
        if let Some(cells) = cells {
            let errors = self.change_cells(&uri, cells);
            for error in errors {
                self.client.log_message(MessageType::WARNING, error).await;
            }
        }
    }

    async fn notebook_did_close(&self, params: DidCloseNotebookDocumentParams) {
        self.session.close_notebook(params.notebook_document.uri.as_str());
        params.cell_text_documents.iter().for_each(|cell| self.session.close(cell.uri.as_str()));
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        if params.command != ACCEPT_COMMAND {
            return Err(invalid_params(format!("unknown command {}", params.command)));
        }
        let id = params.arguments.first().and_then(Value::as_str);
        let id = id.ok_or_else(|| {
            invalid_params(format!("{ACCEPT_COMMAND} takes the offer's id as its argument"))
        })?;
        // The answer means that the acceptance is on disk.
        let recorder = &self.app.services.recorder;
        let recorded = recorder.record_durably(|| self.maker(id).accepted(id)).await;
        recorded.map(|()| None).map_err(|error| not_recorded(&error))
    }
}

impl Backend {
    fn open_folder(&self, uri: &lsp::Uri) {
        self.session.open_folder(Path::new(&addresses::name(uri.as_str())));
    }

    /// `name` is what events about the document are recorded under.
    fn open(&self, opened: TextDocumentItem, name: String) {
        let document = Document {
            path: name,
            language: opened.language_id,
            version: opened.version,
            text: Rope::from_str(&opened.text),
        };
        self.session.open(opened.uri.to_string(), document);
    }

    fn look_at_imports(&self, uris: Vec<String>) {
        let session = self.session.clone();
        tokio::task::spawn_blocking(move || {
            uris.iter().for_each(|uri| session.look_at_imports(uri));
        });
    }

    fn change(
        &self,
        document: VersionedTextDocumentIdentifier,
        changes: Vec<TextDocumentContentChangeEvent>,
    ) -> std::result::Result<(), SessionError> {
        let changes = changes.into_iter().map(|change| {
            let range = change.range.map(|range| (position(range.start), position(range.end)));
            (range, change.text)
        });
        self.session.change(document.uri.as_str(), document.version, changes.collect())
    }

    /// A message about a document cannot be read.
    async fn lost(&self, params: LostParams) {
        let (uri, why) = (&params.uri, params.consequence());
        let is_news = if params.is_about_closed() {
            self.session.close_notebook(uri);
            self.session.close(uri);
            false
        } else {
            self.session.stop_serving(uri, &why)
        };
        if is_news {
            let uri = if uri.is_empty() { "a document" } else { uri };
            self.client.log_message(MessageType::WARNING, format!("{uri}: {why}")).await;
        }
    }

    async fn inline_completion(&self, params: InlineParams) -> Result<InlineAnswer> {
        let (indentation, params) = (params.indentation(), params.lsp);
        let place = params.text_document_position;
        let at = position(place.position);
        let trigger = match params.context.trigger_kind {
            InlineCompletionTriggerKind::INVOKED => Trigger::Invoked,
            _ => Trigger::Automatic,
        };
        let uri = place.text_document.uri.as_str();
        self.session.use_indentation(uri, indentation);
        let selected = params.context.selected_completion_info.map(|info| Selected {
            range: (position(info.range.start), position(info.range.end)),
            text: info.text,
        });
        let Completed { suggestions, reason } = self.completed(uri, at, trigger, selected).await?;
        let items = suggestions.into_iter().map(item).collect();
        Ok(InlineAnswer { items, hone: ReasonNote::of(reason) })
    }

    async fn completed(
        &self,
        uri: &str,
        at: Position,
        trigger: Trigger,
        selected: Option<Selected>,
    ) -> Result<Completed> {
        match self.session.complete(uri, at, trigger, selected).await {
            Ok(completed) => Ok(completed),
            Err(SessionError::Superseded | SessionError::Loading) => Err(superseded()),
            Err(
                error @ (SessionError::NotOpen { .. }
                | SessionError::Unserved { .. }
                | SessionError::PastTheEnd(_)),
            ) => Err(invalid_params(error.to_string())),
            Err(SessionError::Engine(error)) => {
                // The error goes to the client's log. An answer with an error would show a message
                // at every keystroke.
                let reason = Reason::Failed { message: error.to_string() };
                self.client.log_message(MessageType::ERROR, error).await;
                Ok(Completed::nothing(reason))
            }
        }
    }

    async fn completions(&self, params: CompletionsParams) -> Result<Completions> {
        self.agent_completions(params, Trigger::Automatic).await
    }

    async fn completions_cycling(&self, params: CompletionsParams) -> Result<Completions> {
        self.agent_completions(params, Trigger::Invoked).await
    }

    async fn agent_completions(
        &self,
        CompletionsParams { doc }: CompletionsParams,
        trigger: Trigger,
    ) -> Result<Completions> {
        let (uri, at) = (doc.uri.as_str(), position(doc.position));
        self.session.use_indentation(uri, messages::indentation(&json!(doc.formatting)));
        let line_before = self.session.line_before(uri, at);
        let suggestions = match self.completed(uri, at, trigger, None).await {
            // These clients show errors to the user, and the end of an old request is none.
            Err(error) if error.code == ErrorCode::ServerError(REQUEST_CANCELLED) => vec![],
            answer => answer?.suggestions,
        };
        Ok(Completions::new(&line_before.unwrap_or_default(), suggestions))
    }

    /// Returns the session that made an offer, which may be another connection's.
    fn maker(&self, id: &str) -> Arc<Session> {
        self.app.session_of(&self.session, &[id])
    }

    fn shown(&self, id: &str) {
        // The offer may be another connection's. This one reports all the same.
        self.maker(id).shown(id);
        self.session.client_reports();
    }

    async fn notify_shown(&self, params: OfferParams) -> Result<&'static str> {
        self.shown(&params.uuid);
        Ok("OK")
    }

    /// The client sends it before the change, and for a word as well as for the whole offer. The
    /// change itself shows how much was accepted.
    async fn notify_accepted(&self, params: OfferParams) -> Result<&'static str> {
        let taken = self.maker(&params.uuid).taking(&params.uuid);
        taken.map_err(|error| not_recorded(&error))?;
        Ok("OK")
    }

    async fn notify_rejected(&self, params: OffersParams) -> Result<&'static str> {
        let ids: Vec<&str> = params.uuids.iter().map(String::as_str).collect();
        self.app.session_of(&self.session, &ids).dismissed(&params.uuids);
        Ok("OK")
    }

    async fn did_show(&self, params: ItemParams) {
        match params.id() {
            Some(id) if params.turned_to => self.maker(id).turned_to(id),
            Some(id) => self.shown(id),
            None => {}
        }
    }

    async fn did_partly_accept(&self, params: ItemParams) {
        if let Some(id) = params.id() {
            self.maker(id).partly_accepted(id, params.accepted_length);
        }
    }

    async fn reports(&self, params: ReportsParams) {
        if params.completions {
            self.session.client_reports();
        }
        if params.edits {
            self.session.client_reports_edits();
        }
    }

    async fn inline_edit(&self, params: InlineEditParams) -> Result<InlineEdits> {
        let (trigger, at) = (params.trigger(), position(params.position));
        let change = params.last_change();
        let document = params.text_document;
        let (uri, version) = (document.uri.as_str(), document.version);
        if let Some(change) = change {
            self.session.tell_last_change(uri, version, change);
        }
        let found = self.session.next_edit(uri, version, at, trigger);
        Ok(found.await.into())
    }

    async fn did_show_edit(&self, params: ItemParams) {
        if let Some(id) = params.id() {
            self.maker(id).next_edit_shown(id);
        }
    }

    /// Clients written for Copilot send it without a position, and also when no document has the
    /// focus.
    async fn did_focus(&self, params: FocusParams) {
        if let (Some(document), None) = (&params.text_document, params.position) {
            self.session.visit(document.uri.as_str());
        }
        if let (Some(document), Some(at)) = (params.text_document, params.position) {
            // A document that was never opened, such as a log, has nothing to compute.
            let _ = self.session.focus(document.uri.as_str(), position(at));
        }
    }

    async fn did_reject(&self, params: RejectParams) {
        self.maker(&params.id).rejected(&params.id, params.reason.into());
    }

    async fn forget(&self, params: ForgetParams) -> Result<Forgotten> {
        let scope = Scope::File { names: forget_scope::names_of(params.uri.as_str()) };
        // A client that cancels, or ends, must not break it off halfway.
        let forgotten = self.app.forget_to_the_end(scope).await;
        forgotten.map_err(|error| failed(format!("{error:#}")))
    }

    async fn status(&self) -> Result<status::Status> {
        Ok(self.app.status())
    }

    async fn snooze(&self, snooze: Snooze) -> Result<()> {
        self.app.services.snoozes.apply(&snooze);
        Ok(())
    }

    async fn why(&self) -> Result<Vec<RecentRequest>> {
        Ok(self.app.services.requests.latest())
    }

    async fn learn_now(&self) -> Result<LearnAnswer> {
        let services = &self.app.services;
        if let Some(reason) = services.adapters.learning_refusal() {
            return Err(failed(reason));
        }
        let waiting = services.recorder.labels_waiting();
        let started = waiting > 0 && self.learn.try_send(()).is_ok();
        Ok(LearnAnswer { started, waiting })
    }

    async fn advance_clock(&self, params: AdvanceClockParams) -> Result<Value> {
        let clock = &self.app.services.clock;
        if !clock.advance(params.ms) {
            return Err(invalid_params("the clock is the system's; start with --manual-clock"));
        }
        self.app.tick();
        Ok(serde_json::json!({ "now_ms": clock.unix_ms() }))
    }
}

fn item(suggestion: Suggestion) -> InlineCompletionItem {
    let Position { line, column } = suggestion.position;
    let end = lsp::Position::new(line, column + suggestion.replaces);
    let (start, insert_text) = match suggestion.entry {
        Some(Entry { from, typed, .. }) => {
            (lsp::Position::new(from.line, from.column), typed + &suggestion.text)
        }
        None => (lsp::Position::new(line, column), suggestion.text),
    };
    InlineCompletionItem {
        insert_text,
        filter_text: None,
        range: Some(Range::new(start, end)),
        command: Some(Command {
            title: "Accepted".into(),
            command: ACCEPT_COMMAND.into(),
            arguments: Some(vec![suggestion.id.into()]),
        }),
        insert_text_format: None,
    }
}

fn position(position: lsp::Position) -> Position {
    Position { line: position.line, column: position.character }
}

fn invalid_params(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error { code: ErrorCode::InvalidParams, message: message.into(), data: None }
}

fn not_recorded(error: &anyhow::Error) -> Error {
    Error {
        code: ErrorCode::ServerError(REQUEST_FAILED),
        message: format!("not recorded: {error:#}").into(),
        data: None,
    }
}

fn failed(message: String) -> Error {
    Error { code: ErrorCode::InternalError, message: message.into(), data: None }
}

fn superseded() -> Error {
    Error {
        code: ErrorCode::ServerError(REQUEST_CANCELLED),
        message: "superseded by a newer request or edit".into(),
        data: None,
    }
}
