//! One editor connection: its documents, its live offer and its current request.
//!
//! Messages are taken in their order under one lock, and none of them awaits before that. Only the
//! engine's answer is waited for, and the lock is free meanwhile. What a prompt may quote is looked
//! for before the lock is taken.
//!
//! The lock is taken in this file alone: for a [`Turn`] of a message ([`Session::turn`]), or to
//! look at something ([`Session::read`]). What a message does is a plain function on [`State`]. A
//! request that reaches the engine takes three turns: it arrives, its prompt is prepared, and its
//! answer is finished.

// As in `lsp-server/src/lib.rs`: nothing is printed, and a module that starts a program says so.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::disallowed_types)]
// The disk is asked by the crate `files` alone, and no task is without an owner: clippy.toml.
#![warn(clippy::disallowed_methods)]

mod ahead;
mod as_if;
mod asking;
mod completed;
mod documents;
mod gate;
pub mod imports;
mod next_edit;
pub mod notebooks;
mod other_code;
mod prompt_names;
mod reports;
pub mod request;
mod response;
mod selected;
mod unserved;

pub use as_if::AheadAnswer;
pub use completed::Completed;
pub use next_edit::{LastChange, OfferedEdit};
pub use selected::{Entry, Selected};

use crate::completed::OpenRequest;
use crate::notebooks::Notebooks;
use crate::request::{Arrived, ArrivedRequest, ClientRequest, PendingRequest, Start, Trigger};
use crate::response::ResponseBuilder;
use completion::debounce::Debounce;
use completion::document::{Document, Encoding, PastTheEnd, Position, Source};
use completion::indentation::Indentation;
use completion::prompt_builder::PromptBuilder;
use engine::unloading::Resident;
use engine::{EngineError, Generated};
use feedback::event::{EventKind, OfferId};
use files::disk::Disk;
use offers::{LogEntry, Offers};
use parking_lot::{Mutex, MutexGuard};
use privacy::may_tell;
use services::Services;
use services::reason::Reason;
use services::recent_requests::AskedFor;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The threads of one connection that may wait for the disk at a time.
const DISK_THREADS_MAX: usize = 4;

pub struct Session {
    services: Arc<Services>,
    state: Locked,
    search: next_edit::Search,
    /// The folders that the editor has open.
    roots: Mutex<Vec<PathBuf>>,
    /// The threads that read files for this connection. Those of another one are not waited for.
    disk: Disk,
}

/// The state behind its lock.
struct Locked {
    state: Mutex<State>,
    /// How often the lock was taken.
    #[cfg(test)]
    times: std::sync::atomic::AtomicUsize,
}

impl Locked {
    fn lock(&self) -> MutexGuard<'_, State> {
        #[cfg(test)]
        self.times.fetch_add(1, Ordering::Relaxed);
        self.state.lock()
    }
}

/// The turn of one message under the session's lock.
struct Turn<'a> {
    services: &'a Services,
    /// When it began, in milliseconds.
    now_ms: u64,
    /// The events so far. They are recorded at the end of the turn, while the lock is still held,
    /// so that the log keeps the order of the messages.
    events: Vec<EventKind>,
}

struct State {
    editor: Editor,
    documents: HashMap<String, Document>,
    notebooks: Notebooks,
    /// Documents that are not served, and why.
    unserved: HashMap<String, String>,
    prompts: PromptBuilder,
    offers: Offers,
    /// Why the last answer was not shown, if it was not.
    why_suppressed: Reason,
    next_edits: next_edit::Inbox,
    debounce: Debounce,
    /// Requests that went to the engine.
    asked: u64,
    /// The request that is being computed.
    current: Option<Computing>,
    /// How often it was told to forget.
    forgets: u64,
}

/// How an editor counts and indents.
struct Editor {
    encoding: Encoding,
    /// The indentation that the editor has named last, and the document that it is for.
    indentation: Option<(String, Indentation)>,
    /// It shows marks behind the cursor twice if an offer brings them again.
    keeps_marks: bool,
}

/// A request that is being computed, and the document that it is about.
struct Computing {
    uri: String,
    abort: Arc<AtomicBool>,
}

/// What goes into an inline completion item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    pub id: OfferId,
    pub position: Position,
    pub text: String,
    /// Columns behind `position` that the text takes the place of.
    pub replaces: u32,
    /// The entry of the suggestion list that continues the text.
    pub entry: Option<Entry>,
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("{uri}: {}", unserved::NEVER_OPENED)]
    NotOpen { uri: String },
    #[error("{uri}: {why}")]
    Unserved { uri: String, why: String },
    #[error(transparent)]
    PastTheEnd(#[from] PastTheEnd),
    #[error("superseded")]
    Superseded,
    #[error("superseded while the model was being loaded")]
    Loading,
    #[error(transparent)]
    Engine(EngineError),
}

/// The request that is being computed. However it ends, the session does not take it for one under
/// way any more, so that prompts are prepared again.
struct CurrentRequest {
    abort: Arc<AtomicBool>,
}

impl Drop for CurrentRequest {
    fn drop(&mut self) {
        self.abort.store(true, Ordering::Relaxed);
    }
}

impl Session {
    pub fn new(services: Arc<Services>) -> Session {
        let state = State {
            editor: Editor { encoding: Encoding::Utf16, indentation: None, keeps_marks: false },
            documents: HashMap::new(),
            notebooks: Notebooks::default(),
            unserved: HashMap::new(),
            prompts: PromptBuilder::default(),
            offers: Offers::new(may_tell),
            why_suppressed: Reason::NothingToAdd,
            next_edits: next_edit::Inbox::new(services.next_edit_model.is_some()),
            debounce: Debounce::default(),
            asked: 0,
            current: None,
            forgets: 0,
        };
        let (search, roots) = (next_edit::Search::default(), Mutex::default());
        let state = Locked {
            state: Mutex::new(state),
            #[cfg(test)]
            times: Default::default(),
        };
        Session { services, state, search, roots, disk: Disk::new(DISK_THREADS_MAX) }
    }

    /// Gives a message its turn: the events that come of it are recorded before the next message
    /// has its own.
    fn turn<T>(&self, message: impl FnOnce(&mut State, &mut Turn) -> T) -> T {
        let mut state = self.state.lock();
        let now_ms = self.services.clock.elapsed_ms();
        let mut turn = Turn { services: &self.services, now_ms, events: vec![] };
        let answer = message(&mut state, &mut turn);
        self.services.recorder.record(turn.events);
        answer
    }

    /// Looks at the state, which stays as it is.
    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    pub fn use_encoding(&self, encoding: Encoding) {
        self.turn(|state, _| state.editor.encoding = encoding);
    }

    /// Leaves out of offers what would replace marks behind the cursor.
    pub fn keep_marks(&self) {
        self.turn(|state, _| state.editor.keeps_marks = true);
    }

    /// Notes how the editor indents lines of a document about which it asks next.
    pub fn use_indentation(&self, uri: &str, indentation: Option<Indentation>) {
        let indentation = indentation.map(|level| (uri.to_owned(), level));
        self.turn(|state, _| state.editor.indentation = indentation);
    }

    /// Answers a request for an inline completion: with one offer, with several to choose from if
    /// the user invoked the request, and with none if nothing is worth showing. Why it ended so is
    /// remembered.
    pub async fn complete(
        &self,
        uri: &str,
        position: Position,
        trigger: Trigger,
        selected: Option<Selected>,
    ) -> Result<Completed, SessionError> {
        let since = Instant::now();
        self.services.touch();
        let (path, start) = self.arrive(uri, position, trigger, selected);
        let asked = (path.unwrap_or_else(|| uri.to_owned()), position, trigger);
        let open = OpenRequest::new(&self.services, AskedFor::Completion, asked, since);
        let answer = match start {
            Ok(Start::Answered(completed)) => Ok(completed),
            Ok(Start::Pending(pending)) => self.answer(*pending).await,
            Err(error) => Err(error),
        };
        open.end(match &answer {
            Ok(completed) => Some(completed.reason.clone()),
            Err(error) => error.reason(),
        });
        answer
    }

    #[cfg(test)]
    fn begin(
        &self,
        uri: &str,
        position: Position,
        trigger: Trigger,
        selected: Option<Selected>,
    ) -> Result<Start, SessionError> {
        self.arrive(uri, position, trigger, selected).1
    }

    /// Does everything of a request that must happen in the order of the messages, so there is no
    /// await before it or in it. Returns the path of its document too, if that is open.
    fn arrive(
        &self,
        uri: &str,
        position: Position,
        trigger: Trigger,
        selected: Option<Selected>,
    ) -> (Option<String>, Result<Start, SessionError>) {
        let settings = self.services.settings.current();
        let asked = ClientRequest { uri, position, trigger, selected, settings };
        let (path, arrived) =
            self.turn(|state, turn| (state.path_of(uri), state.arrive(turn, asked)));
        let pending = match arrived {
            Ok(Arrived::Here(place)) => self.prepare(*place),
            Ok(Arrived::Answered(completed)) => return (path, Ok(Start::Answered(completed))),
            Err(error) => return (path, Err(error)),
        };
        (path, pending.map(|pending| Start::Pending(Box::new(pending))))
    }

    /// Lays out the prompt of a request that has arrived, once it is known what that may quote.
    fn prepare(&self, mut place: ArrivedRequest) -> Result<PendingRequest, SessionError> {
        let sources = std::mem::take(&mut place.sources);
        let rules = other_code::quotable(&self.services, sources, &place.settings);
        self.turn(|state, turn| state.prepare(turn, place, &rules))
    }

    async fn answer(&self, mut pending: PendingRequest) -> Result<Completed, SessionError> {
        // It is made before the first await, because a client that cancels drops this future at
        // an await.
        let _current = CurrentRequest { abort: pending.abort.clone() };
        let was_loaded = self.services.engine.resident() == Resident::Loaded;
        asking::debounce(&self.services, &pending).await?;
        let completed = match asking::ask(&self.services, &mut pending).await {
            Ok(generated) => self.finish(pending, generated),
            Err(error) => {
                self.turn(|state, _| state.fail(&pending));
                match error {
                    EngineError::Aborted if was_loaded => Err(SessionError::Superseded),
                    EngineError::Aborted => Err(SessionError::Loading),
                    EngineError::OverBudget => {
                        let budget_ms = pending.settings.lab.budget_ms;
                        Ok(Completed::nothing(Reason::TooSlow { budget_ms }))
                    }
                    error => Err(SessionError::Engine(error)),
                }
            }
        };
        completed.map(|completed| match completed.reason {
            // The time went into loading the model.
            Reason::TooSlow { .. } if !was_loaded => Completed::nothing(Reason::Loading),
            _ => completed,
        })
    }

    /// Records what the engine did and makes offers of it, if the user is still there.
    fn finish(
        &self,
        asked: PendingRequest,
        generated: Generated,
    ) -> Result<Completed, SessionError> {
        let response = ResponseBuilder::new(&self.services, &asked, &generated);
        self.turn(|state, turn| state.finish(turn, &response))
    }

    /// The part of a line before this position.
    pub fn line_before(&self, uri: &str, position: Position) -> Option<String> {
        self.read(|state| {
            let document = state.documents.get(uri)?;
            let cursor = document.offset(position, state.editor.encoding).ok()?;
            let line = document.text.char_to_line(cursor);
            Some(document.text.slice(document.text.line_to_char(line)..cursor).to_string())
        })
    }

    pub fn tick(&self) {
        self.turn(|state, turn| {
            let entries = state.offers.tick(&state.documents, turn.now_ms);
            turn.log(entries);
        });
    }

    /// Forgets the code that prompts quote, the recent edits and all documents that are not open,
    /// and the edits that next edits are found by.
    /// What is on screen stays, and can be accepted.
    pub fn forget(&self) {
        self.turn(|state, _| {
            state.next_edits.forget();
            state.prompts = PromptBuilder::default();
            state.offers.forget();
            state.forgets += 1;
        });
        // The search comes behind it, because one that is under way tells its finder of the queued
        // edits.
        self.search.forget();
        // Whatever the model is asked from now on has nothing of what is forgotten.
        self.services.next_edit_model.iter().for_each(|model| model.interrupt());
    }

    /// Stops watching what becomes of these offers in the document. One that is on screen can still
    /// be accepted, but nothing that becomes of it is recorded.
    pub fn forget_offers(&self, offers: &HashSet<OfferId>) {
        self.turn(|state, _| state.offers.forget_offers(offers));
    }

    /// Stops watching offers in documents of which nothing may be stored any more, because a rule
    /// was set since they were made. This waits for the disk, and no message waits meanwhile.
    pub fn follow_rules(&self) {
        let setting = &self.services.settings.current().not_stored;
        let mut pending = self.read(State::pending);
        pending.retain(|(source, _)| {
            self.services.privacy.ignores(&source.path, &source.language, setting)
        });
        let offers: HashSet<OfferId> = pending.into_iter().flat_map(|(_, ids)| ids).collect();
        if !offers.is_empty() {
            self.forget_offers(&offers);
        }
    }

    /// The same on another thread. If too many of this connection wait for the disk, the next call
    /// does it.
    pub fn follow_rules_aside(self: &Arc<Session>) {
        if !self.read(State::pending).is_empty() {
            let session = self.clone();
            self.disk.start(move || session.follow_rules());
        }
    }

    /// The editor has gone, so none of its offers can get a verdict any more.
    pub fn end(&self) {
        self.turn(|state, turn| {
            state.abort_current();
            for (uri, document) in std::mem::take(&mut state.documents) {
                let entries = state.offers.closed(&uri, &document, turn.now_ms);
                turn.log(entries);
                turn.events.extend(state.next_edits.left(&uri));
            }
            state.supersede(turn);
            // Whatever is said of them from now on, the log follows.
            state.offers = Offers::new(may_tell);
            state.next_edits = next_edit::Inbox::new(self.services.next_edit_model.is_some());
        });
        self.roots.lock().clear();
    }
}

impl Turn<'_> {
    /// Notes what the log gets at the end of the turn.
    fn log(&mut self, entries: Vec<LogEntry>) {
        let engine = &self.services.engine;
        self.events.extend(entries.into_iter().map(|entry| match entry {
            LogEntry::Event(event) => event,
            LogEntry::Instead { id, text } => {
                EventKind::Replacement { id, tokens: engine.tokenize(&text) }
            }
        }));
    }
}

impl State {
    /// Ends the live offer without a verdict.
    fn supersede(&mut self, turn: &mut Turn) {
        let entries = self.offers.supersede(&self.documents, turn.now_ms);
        turn.log(entries);
    }

    /// Returns the path under which a document is recorded, if it is open.
    fn path_of(&self, uri: &str) -> Option<String> {
        self.documents.get(uri).map(|document| document.path.clone())
    }

    /// Returns the documents with offers of which more may be recorded, and these offers.
    fn pending(&self) -> Vec<(Source, Vec<OfferId>)> {
        let of = |(uri, document): (&String, &Document)| {
            let ids: Vec<OfferId> = self.offers.pending_in(uri).cloned().collect();
            (!ids.is_empty()).then(|| (document.source(), ids))
        };
        self.documents.iter().filter_map(of).collect()
    }

    /// Returns true if a request is being computed.
    fn is_computing(&self) -> bool {
        self.current.as_ref().is_some_and(|current| !current.abort.load(Ordering::Relaxed))
    }

    fn abort_current(&mut self) {
        if let Some(current) = self.current.take() {
            current.abort.store(true, Ordering::Relaxed);
        }
    }

    /// The document is not the one any more that the request was about.
    fn abort_current_in(&mut self, uri: &str) {
        if self.current.as_ref().is_some_and(|current| current.uri == uri) {
            self.abort_current();
        }
    }

    /// Ends a request. Returns true if no edit and no newer request has taken its place.
    fn end_request(&mut self, asked: &PendingRequest) -> bool {
        self.current.take_if(|current| Arc::ptr_eq(&current.abort, &asked.abort)).is_some()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod fuzzing;
#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests;
