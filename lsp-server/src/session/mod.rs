//! One editor connection: its documents, its live offer and its current request.
//!
//! Messages are taken in their order under one lock, and none of them awaits before that. Only the
//! engine's answer is waited for, and the lock is free meanwhile. What a prompt may quote is looked
//! for before the lock is taken.

// The disk is asked by the crate `files` alone, and no task is without an owner: clippy.toml.
#![warn(clippy::disallowed_methods)]

mod ahead;
mod completed;
mod documents;
mod gate;
mod imports;
mod next_edit;
pub mod notebooks;
mod other_code;
mod prompt_names;
mod reports;
pub mod request;
mod response;
mod selected;
mod suppressed;
mod survival;
mod tool_edits;
pub mod tracker;
mod typed;
mod unserved;

pub use completed::Completed;
pub use next_edit::OfferedEdit;
pub use selected::{Entry, Selected};

use crate::services::Services;
use crate::services::health::Source;
use crate::services::reason::Reason;
use crate::services::recent_requests::AskedFor;
use crate::session::notebooks::Notebooks;
use crate::session::request::{CursorContext, PendingRequest, Start, Trigger};
use crate::session::suppressed::Suppressed;
use crate::session::survival::{Finding, SurvivalWatch};
use crate::session::tracker::{Decided, Offer, Tracker};
use crate::session::typed::TypedCounts;
use completion::debounce::Debounce;
use completion::document::{Document, Edit, Encoding, PastTheEnd, Position};
use completion::indentation::Indentation;
use completion::postprocess::replaced_suffix;
use completion::prompt_builder::PromptBuilder;
use engine::unloading::Resident;
use engine::{EngineError, Generated};
use feedback::event::{AdapterVersion, EventKind, OfferId, Outcome};
use files::disk::Disk;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The threads of one connection that may wait for the disk at a time.
const DISK_THREADS_MAX: usize = 4;

pub struct Session {
    services: Arc<Services>,
    state: Mutex<State>,
    search: next_edit::Search,
    /// The folders that the editor has open.
    roots: Mutex<Vec<PathBuf>>,
    /// The threads that read files for this connection. Those of another one are not waited for.
    disk: Disk,
}

struct State {
    encoding: Encoding,
    documents: HashMap<String, Document>,
    notebooks: Notebooks,
    /// The indentation that the editor has named last, and the document that it is for.
    indentation: Option<(String, Indentation)>,
    /// Documents that are not served, and why.
    unserved: HashMap<String, String>,
    prompts: PromptBuilder,
    tracker: Tracker,
    suppressed: Option<Suppressed>,
    survival: SurvivalWatch,
    next_edits: next_edit::Inbox,
    last_edit_ms: Option<u64>,
    debounce: Debounce,
    typed: TypedCounts,
    /// Requests that went to the engine.
    asked: u64,
    rejects: RejectsHere,
    /// The document and the character behind the text that was accepted last.
    accepted_until: Option<(String, usize)>,
    /// The request that is being computed.
    current: Option<Computing>,
    /// How often it was told to forget.
    forgets: u64,
    /// Offers that were on screen when they were forgotten.
    forgotten: HashSet<OfferId>,
}

/// A request that is being computed, and the document that it is about.
struct Computing {
    uri: String,
    abort: Arc<AtomicBool>,
}

/// How often the user turned an offer down on the line that is being written.
#[derive(Default)]
struct RejectsHere {
    place: (String, usize),
    count: u32,
}

/// What goes into an inline completion item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    pub id: OfferId,
    pub position: Position,
    pub text: String,
    /// Columns behind `position` that the text takes the place of.
    pub replaces: u32,
    /// The entry of the suggestion list that the text goes on with.
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

/// The request that is being computed. When it is dropped, however the request ended, the session
/// lets go of it if it is still the current one, so that prompts are prepared again.
struct CurrentRequest<'a> {
    state: &'a Mutex<State>,
    abort: Arc<AtomicBool>,
}

impl Drop for CurrentRequest<'_> {
    fn drop(&mut self) {
        self.state.lock().current.take_if(|current| Arc::ptr_eq(&current.abort, &self.abort));
    }
}

/// How a trouble with this adapter begins.
fn about(version: AdapterVersion) -> String {
    format!("adapter v{version} cannot answer")
}

/// What is told where another adapter answers in the place of one that cannot. Nobody is told to
/// choose the candidate of a trial, because that would end its trial.
fn missing(version: AdapterVersion, instead: AdapterVersion, on_trial: bool) -> String {
    let about = about(version);
    match instead {
        0 if on_trial => format!("{about}, so the model does; its trial waits meanwhile"),
        0 => format!(
            "{about}, so the model completes alone; `hone adapter use {version}` tries it again, \
             and `hone adapter rollback` goes back to the one before"
        ),
        instead => format!("{about}, so v{instead} does"),
    }
}

impl Session {
    pub fn new(services: Arc<Services>) -> Session {
        let state = State {
            encoding: Encoding::Utf16,
            documents: HashMap::new(),
            notebooks: Notebooks::default(),
            indentation: None,
            unserved: HashMap::new(),
            prompts: PromptBuilder::default(),
            tracker: Tracker::default(),
            suppressed: None,
            survival: SurvivalWatch::default(),
            next_edits: next_edit::Inbox::default(),
            last_edit_ms: None,
            debounce: Debounce::default(),
            typed: TypedCounts::default(),
            asked: 0,
            rejects: RejectsHere::default(),
            accepted_until: None,
            current: None,
            forgets: 0,
            forgotten: HashSet::new(),
        };
        let (search, roots) = (next_edit::Search::default(), Mutex::default());
        Session {
            services,
            state: Mutex::new(state),
            search,
            roots,
            disk: Disk::new(DISK_THREADS_MAX),
        }
    }

    pub fn use_encoding(&self, encoding: Encoding) {
        self.state.lock().encoding = encoding;
    }

    /// Notes how the editor indents lines of a document about which it asks next.
    pub fn use_indentation(&self, uri: &str, indentation: Option<Indentation>) {
        self.state.lock().indentation = indentation.map(|level| (uri.to_owned(), level));
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
        let arrived = Instant::now();
        let answer = self.answer(uri, position, trigger, selected).await;
        let reason = match &answer {
            Ok(completed) => completed.reason.clone(),
            Err(error) => error.reason(),
        };
        let asked = (uri, position, trigger);
        self.remember(AskedFor::Completion, asked, reason, arrived.elapsed());
        answer
    }

    async fn answer(
        &self,
        uri: &str,
        position: Position,
        trigger: Trigger,
        selected: Option<Selected>,
    ) -> Result<Completed, SessionError> {
        self.services.activity.touch();
        let mut pending = match self.begin(uri, position, trigger, selected)? {
            Start::Answered(completed) => return Ok(completed),
            Start::Pending(pending) => pending,
        };
        // It is made before the first await, because a client that cancels drops this future at
        // an await.
        let _current = CurrentRequest { state: &self.state, abort: pending.abort.clone() };
        let was_loaded = self.services.engine.resident() == Resident::Loaded;
        self.debounce(&pending).await?;
        let started = Instant::now();
        let answer = self.generate(&mut pending).await;
        self.state.lock().debounce.answered(started.elapsed(), answer.is_ok());
        let completed = match answer {
            Ok(generated) => {
                if generated.without_context {
                    pending.request.prompt.context = None;
                }
                self.finish(*pending, generated)
            }
            Err(EngineError::Aborted) if was_loaded => Err(SessionError::Superseded),
            Err(EngineError::Aborted) => Err(SessionError::Loading),
            Err(EngineError::OverBudget) => {
                let budget_ms = self.services.settings.current().lab.budget_ms;
                Ok(Completed::nothing(Reason::TooSlow { budget_ms }))
            }
            Err(error) => Err(SessionError::Engine(error)),
        };
        completed.map(|completed| match completed.reason {
            // The time went into loading the model.
            Reason::TooSlow { .. } if !was_loaded => Completed::nothing(Reason::Loading),
            _ => completed,
        })
    }

    /// Asks the engine. If the adapter cannot answer, the one that serves does, or else the model
    /// alone, outside of any trial. An adapter may be missing after the model was loaded again with
    /// too little memory for both.
    async fn generate(&self, pending: &mut PendingRequest) -> Result<Generated, EngineError> {
        let Services { engine, adapters, health, .. } = &*self.services;
        let ask = |pending: &PendingRequest| {
            engine.generate(pending.request.clone(), pending.abort.clone())
        };
        let answer = ask(pending).await;
        let version = pending.request.adapter;
        let error = match answer {
            Err(error @ (EngineError::NotLoaded(_) | EngineError::NotFinite(_))) if version > 0 => {
                error
            }
            answer => {
                if answer.is_ok() && version > 0 {
                    health.clear_if(Source::Answers, |reason| reason.starts_with(&about(version)));
                }
                return answer;
            }
        };
        let serving = adapters.serving().active();
        let instead = if serving == version { 0 } else { serving };
        let trouble = missing(version, instead, pending.arm.is_some());
        if health.report(Source::Answers, trouble.clone()) {
            tracing::warn!("{trouble}: {error}");
        }
        (pending.request.adapter, pending.arm) = (instead, None);
        match ask(pending).await {
            Err(EngineError::NotLoaded(_) | EngineError::NotFinite(_)) if instead > 0 => {
                pending.request.adapter = 0;
                ask(pending).await
            }
            answer => answer,
        }
    }

    /// Waits for the user's next key, if one is likely soon.
    async fn debounce(&self, pending: &PendingRequest) -> Result<(), SessionError> {
        if pending.wait.is_zero() {
            return Ok(());
        }
        // Whatever the next key is, most of the prompt will be the same.
        self.services.engine.warm(pending.request.prompt.clone());
        tokio::time::sleep(pending.wait).await;
        if pending.abort.load(Ordering::Relaxed) {
            return Err(SessionError::Superseded);
        }
        Ok(())
    }

    /// The live offer gives way without a verdict.
    fn supersede(&self, state: &mut State) {
        let now_ms = self.services.clock.elapsed_ms();
        let events = state.tracker.supersede(now_ms);
        self.conclude(state, events, None, now_ms);
    }

    /// Records events. From now on it watches the places of the offers that they decide. `edit` is
    /// the edit that caused them, if one did.
    fn conclude(
        &self,
        state: &mut State,
        events: Vec<EventKind>,
        edit: Option<&Edit>,
        now_ms: u64,
    ) {
        self.services.recorder.record(events);
        let State { tracker, survival, documents, rejects, forgotten, accepted_until, .. } = state;
        for Decided { offer, outcome, chars_in_document } in tracker.take_decided() {
            let Offer { id, uri, start, text, healing, entry_chars, before: _ } = offer;
            if forgotten.remove(&id) {
                continue;
            }
            match outcome {
                Outcome::Accepted => {
                    *accepted_until = Some((uri.clone(), start + text.chars().count()));
                    survival.taken(id, uri, start, text, chars_in_document, now_ms)
                }
                Outcome::RejectedEsc | Outcome::RejectedTimeout | Outcome::RejectedEdit => {
                    if let Some(document) = documents.get(&uri) {
                        let at = start.min(document.text.len_chars());
                        let place = (uri.clone(), document.text.char_to_line(at));
                        let again = rejects.place == place;
                        rejects.count = if again { rejects.count.saturating_add(1) } else { 1 };
                        rejects.place = place;
                    }
                    let typed: String = text.chars().take(chars_in_document).collect();
                    // The prompt of an offer behind an entry holds the entry, which the user did
                    // not choose, so what is written instead says nothing about that prompt.
                    if entry_chars == 0 {
                        survival.not_taken(id, uri, start, &typed, healing, now_ms);
                        if let Some(edit) = edit {
                            survival.edit_newest(edit, now_ms);
                        }
                    }
                }
                Outcome::PartlyAccepted { .. }
                | Outcome::TypedThrough { .. }
                | Outcome::Superseded
                | Outcome::Unseen => {}
            }
        }
    }

    /// Records what stands by now where offers were made.
    fn look(&self, state: &mut State, now_ms: u64) {
        let State { survival, documents, .. } = state;
        self.tell(survival.look(documents, now_ms));
    }

    fn tell(&self, findings: Vec<Finding>) {
        let events = findings.into_iter().map(|finding| match finding {
            Finding::Kept { id, check, share } => EventKind::Kept { id, check, share },
            Finding::Instead { id, text } => {
                EventKind::Replacement { id, tokens: self.services.engine.tokenize(&text) }
            }
        });
        self.services.recorder.record(events.collect());
    }

    /// The part of a line before this position.
    pub fn line_before(&self, uri: &str, position: Position) -> Option<String> {
        let state = self.state.lock();
        let document = state.documents.get(uri)?;
        let cursor = document.offset(position, state.encoding).ok()?;
        let line = document.text.char_to_line(cursor);
        Some(document.text.slice(document.text.line_to_char(line)..cursor).to_string())
    }

    pub fn tick(&self) {
        self.track(Tracker::tick);
        self.look(&mut self.state.lock(), self.services.clock.elapsed_ms());
    }

    /// Forgets the code that prompts quote, the recent edits and all documents that are not open,
    /// and the edits that next edits are found by.
    /// What is on screen stays, and can be accepted.
    pub fn forget(&self) {
        let mut state = self.state.lock();
        state.next_edits.forget();
        state.prompts = PromptBuilder::default();
        state.suppressed = None;
        state.forgets += 1;
        drop(state);
        // The search comes last, because one that is under way tells its finder of the queued
        // edits.
        self.search.forget();
    }

    /// Stops watching what becomes of these offers in the document. One that is on screen can still
    /// be accepted, but what the user writes instead of it is not recorded.
    pub fn forget_offers(&self, offers: &HashSet<OfferId>) {
        let mut state = self.state.lock();
        state.survival.forget(offers);
        let is_forgotten = |id: &&OfferId| offers.contains(*id) || state.forgotten.contains(*id);
        state.forgotten = state.tracker.live().filter(is_forgotten).cloned().collect();
    }

    /// The editor has gone, so none of its offers can get a verdict any more.
    pub fn end(&self) {
        {
            let mut state = self.state.lock();
            state.abort_current();
            let now_ms = self.services.clock.elapsed_ms();
            for (uri, document) in std::mem::take(&mut state.documents) {
                let findings = state.survival.close(&uri, &document, now_ms);
                self.tell(findings);
                self.services.recorder.record(state.next_edits.left(&uri));
            }
        }
        self.track(Tracker::supersede);
        self.roots.lock().clear();
    }
}

impl State {
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
}

/// What remains of an offer, as the client gets it. The tracker then expects the same.
fn suggestion(
    tracker: &mut Tracker,
    (id, text): (OfferId, String),
    context: &CursorContext,
) -> Suggestion {
    let marks = replaced_suffix(&text, &context.around);
    let (position, entry) = (context.position, context.entry.clone());
    tracker.told(&id, marks, entry.as_ref().map_or("", |entry| &entry.typed));
    Suggestion { id, position, replaces: marks.len() as u32, text, entry }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod fuzzing;
#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests;
