//! One editor connection: its documents, its live offer, its newest request.
//!
//! Every message is taken in order under one lock, and none awaits before it
//! has been; only the engine's answer is waited for, with the lock free.

use crate::daemon::{Daemon, lock};
use crate::document::{Document, Encoding, PastTheEnd, Position};
use crate::engine::{EngineError, Generated, Request};
use crate::postprocess::{repeats_closing, shown_bytes};
use crate::prompt::{self, Window};
use crate::tracker::{Offer, Tracker};
use feedback::event::{Completion, EventKind, OfferId, Outcome, Sampling, Timing};
use ropey::Rope;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub struct Session {
    daemon: Arc<Daemon>,
    state: Mutex<State>,
}

struct State {
    encoding: Encoding,
    documents: HashMap<String, Document>,
    tracker: Tracker,
    /// Abort flag of the request that is being computed.
    newest: Option<Arc<AtomicBool>>,
}

/// What made the client ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Typing.
    Automatic,
    /// The user, by hand: always answered.
    Invoked,
}

/// What goes into an inline completion item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    pub id: OfferId,
    pub position: Position,
    pub text: String,
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("{uri}: was never opened here; open the file again")]
    NotOpen { uri: String },
    #[error(transparent)]
    PastTheEnd(#[from] PastTheEnd),
    #[error("superseded")]
    Superseded,
    #[error(transparent)]
    Engine(EngineError),
}

/// A completion under way: what was asked, of which text.
struct Asked {
    abort: Arc<AtomicBool>,
    arrived: Instant,
    uri: String,
    path: String,
    language: String,
    cursor: usize,
    position: Position,
    rest_of_line: String,
    request: Request,
}

enum Begun {
    /// The user wants none here.
    Off,
    Known(Suggestion),
    Asked(Box<Asked>),
}

impl Session {
    pub fn new(daemon: Arc<Daemon>) -> Session {
        let state = State {
            encoding: Encoding::Utf16,
            documents: HashMap::new(),
            tracker: Tracker::default(),
            newest: None,
        };
        Session { daemon, state: Mutex::new(state) }
    }

    pub fn daemon(&self) -> &Arc<Daemon> {
        &self.daemon
    }

    pub fn use_encoding(&self, encoding: Encoding) {
        lock(&self.state).encoding = encoding;
    }

    pub fn open(&self, uri: String, document: Document) {
        lock(&self.state).documents.insert(uri, document);
    }

    pub fn close(&self, uri: &str) {
        lock(&self.state).documents.remove(uri);
        self.track(|tracker, now_ms| tracker.closed(uri, now_ms));
    }

    /// Applies changes in order, each seen by the live offer as it happens.
    pub fn change(
        &self,
        uri: &str,
        version: i32,
        changes: Vec<(Option<(Position, Position)>, String)>,
    ) -> Result<(), SessionError> {
        let now_ms = self.daemon.clock.now_ms();
        let mut state = lock(&self.state);
        state.abort_newest();
        let State { documents, tracker, encoding, .. } = &mut *state;
        let document =
            documents.get_mut(uri).ok_or_else(|| SessionError::NotOpen { uri: uri.to_owned() })?;
        document.version = version;
        let mut events = vec![];
        for (range, text) in changes {
            let cursor = tracker.cursor(uri);
            let edit = document.apply(range, text, *encoding);
            let edit = match cursor {
                Some(cursor) => document.seen_at(edit, cursor),
                None => edit,
            };
            events.extend(tracker.edit(uri, &edit, now_ms));
        }
        self.daemon.record(events);
        Ok(())
    }

    /// Answers a request for an inline completion; `None` is silence.
    pub async fn complete(
        &self,
        uri: &str,
        position: Position,
        trigger: Trigger,
    ) -> Result<Option<Suggestion>, SessionError> {
        let asked = match self.begin(uri, position, trigger)? {
            Begun::Off => return Ok(None),
            Begun::Known(suggestion) => return Ok(Some(suggestion)),
            Begun::Asked(asked) => asked,
        };
        let answer = self.daemon.engine.generate(asked.request.clone(), asked.abort.clone()).await;
        match answer {
            Ok(generated) => self.finish(*asked, generated),
            Err(EngineError::Aborted) => Err(SessionError::Superseded),
            Err(EngineError::OverBudget) => Ok(None),
            Err(error) => Err(SessionError::Engine(error)),
        }
    }

    /// Everything that must see messages in order: no await before or in it.
    fn begin(
        &self,
        uri: &str,
        position: Position,
        trigger: Trigger,
    ) -> Result<Begun, SessionError> {
        let config = self.daemon.config();
        let completion = &config.completion;
        let mut state = lock(&self.state);
        state.abort_newest();
        let encoding = state.encoding;
        let document = state
            .documents
            .get(uri)
            .ok_or_else(|| SessionError::NotOpen { uri: uri.to_owned() })?;
        let cursor = document.offset(position, encoding)?;
        let rest_of_line = document.rest_of_line(cursor);
        if let Some((id, text)) = state.tracker.continuation(uri, cursor)
            && !repeats_closing(&text, &rest_of_line)
        {
            return Ok(Begun::Known(Suggestion { id, position, text }));
        }
        if trigger == Trigger::Automatic && !completion.is_on(&document.language) {
            let events = state.tracker.supersede(self.daemon.clock.now_ms());
            self.daemon.record(events);
            return Ok(Begun::Off);
        }
        let window =
            Window { prefix_chars: completion.prefix_chars, suffix_chars: completion.suffix_chars };
        let abort = Arc::new(AtomicBool::new(false));
        let request = Request {
            prompt: prompt::build(&document.text, cursor, window),
            adapter: self.daemon.active_adapter(),
            sampling: sampling(completion.temperature, &document.text, cursor),
            max_tokens: completion.max_tokens,
            budget: Duration::from_millis(completion.budget_ms),
            min_probability: completion.min_probability,
        };
        let asked = Asked {
            abort: abort.clone(),
            arrived: Instant::now(),
            uri: uri.to_owned(),
            path: document.path.clone(),
            language: document.language.clone(),
            cursor,
            position,
            rest_of_line,
            request,
        };
        state.newest = Some(abort);
        let events = state.tracker.supersede(self.daemon.clock.now_ms());
        self.daemon.record(events);
        Ok(Begun::Asked(Box::new(asked)))
    }

    /// Records what the engine did and makes it an offer, if the user is still there.
    fn finish(
        &self,
        asked: Asked,
        generated: Generated,
    ) -> Result<Option<Suggestion>, SessionError> {
        let mut state = lock(&self.state);
        // An edit or a newer request has taken this one's place.
        let current = state.newest.take_if(|newest| Arc::ptr_eq(newest, &asked.abort));
        if current.is_none() {
            return Err(SessionError::Superseded);
        }
        let healing = asked.request.prompt.healing;
        let length = shown_bytes(&generated.text, healing.len(), &asked.rest_of_line);
        let shown_from = healing.len().min(generated.text.len());
        let shown = &generated.text[shown_from..shown_from + length];
        let text = String::from_utf8_lossy(shown).into_owned();
        let id = self.daemon.next_offer_id();
        let ms = |time: Duration| time.as_secs_f32() * 1000.0;
        let completion = Completion {
            id: id.clone(),
            path: asked.path,
            language: asked.language,
            model_sha256: self.daemon.model.sha256.clone(),
            adapter: asked.request.adapter,
            sampling: asked.request.sampling,
            prompt: generated.prompt,
            adapter_from: generated.adapter_from,
            healing,
            tokens: generated.tokens,
            stop: generated.stop,
            shown: text.clone(),
            shown_from,
            timing: Timing {
                prompt_reused: generated.prompt_reused,
                prompt_evaluated: generated.prompt_evaluated,
                prompt_ms: ms(generated.prompt_time),
                decode_ms: ms(generated.decode_time),
                total_ms: ms(asked.arrived.elapsed()),
            },
        };
        let mut events = vec![EventKind::Completion(Box::new(completion))];
        if !text.is_empty() {
            let offer =
                Offer { id: id.clone(), uri: asked.uri, start: asked.cursor, text: text.clone() };
            events.extend(state.tracker.serve(offer, self.daemon.clock.now_ms()));
        }
        self.daemon.record(events);
        let suggestion = Suggestion { id, position: asked.position, text };
        Ok((!suggestion.text.is_empty()).then_some(suggestion))
    }

    pub fn accepted(&self, id: &str) {
        self.track(|tracker, _| tracker.accepted(id));
    }

    pub fn shown(&self, id: &str) {
        self.track(|tracker, _| tracker.shown(id));
    }

    pub fn partly_accepted(&self, id: &str, utf16: u32) {
        self.track(|tracker, _| tracker.partly_accepted(id, utf16));
    }

    pub fn rejected(&self, id: &str, reason: Outcome) {
        self.track(|tracker, now_ms| tracker.rejected(id, reason, now_ms));
    }

    pub fn tick(&self) {
        self.track(Tracker::tick);
    }

    /// Records under the session's lock, so that the log has its messages' order.
    fn track(&self, step: impl FnOnce(&mut Tracker, u64) -> Vec<EventKind>) {
        let mut state = lock(&self.state);
        let events = step(&mut state.tracker, self.daemon.clock.now_ms());
        self.daemon.record(events);
    }

    /// The editor has gone: nothing it was offered can be judged any more.
    pub fn end(&self) {
        {
            let mut state = lock(&self.state);
            state.abort_newest();
            state.documents.clear();
        }
        self.track(Tracker::supersede);
    }
}

/// The seed depends on nothing but the place: a replay draws the same.
fn sampling(temperature: f32, text: &Rope, cursor: usize) -> Sampling {
    if temperature == 0.0 {
        return Sampling::GREEDY;
    }
    let seed = (text.len_chars() as u64) << 32 | cursor as u64;
    Sampling { temperature, seed }
}

impl State {
    fn abort_newest(&mut self) {
        if let Some(abort) = self.newest.take() {
            abort.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::daemon::ServedModel;
    use crate::engine::scripted::ScriptedEngine;
    use crate::engine::worker::EngineHandle;
    use crate::home::Home;
    use feedback::clock::ManualClock;
    use feedback::log::MemoryLog;
    use std::time::Duration;

    const URI: &str = "file:///a.rs";
    const CURSOR: Position = Position { line: 1, column: 4 };
    const AUTOMATIC: Trigger = Trigger::Automatic;

    /// A session on `fn a() {\n    |\n}\n` whose engine always answers `call(x);`.
    async fn session(takes: Duration) -> (tempfile::TempDir, Arc<Session>) {
        let folder = tempfile::tempdir().unwrap();
        let model = ServedModel {
            name: "scripted".into(),
            architecture: "none".into(),
            path: "none.gguf".into(),
            sha256: "base".into(),
        };
        let engine =
            EngineHandle::start(move || Ok(ScriptedEngine { answer: "call(x);", takes })).unwrap();
        let (home, clock) = (Home::at(folder.path().into()), ManualClock::starting_at(0));
        let log = Arc::new(MemoryLog::default());
        let config = Config::default();
        let daemon =
            Daemon::start(&home, config, model, engine, Arc::new(clock), log).await.unwrap();
        let session = daemon.session();
        let text = Rope::from_str("fn a() {\n    \n}\n");
        let (path, language) = ("/a.rs".into(), "rust".into());
        session.open(URI.into(), Document { path, language, version: 1, text });
        (folder, session)
    }

    fn type_at_cursor(session: &Session, text: &str) {
        session.change(URI, 2, vec![(Some((CURSOR, CURSOR)), text.into())]).unwrap();
    }

    #[tokio::test]
    async fn typing_along_keeps_the_offer_and_asks_the_engine_nothing() {
        let (_folder, session) = session(Duration::ZERO).await;
        let offer = session.complete(URI, CURSOR, AUTOMATIC).await.unwrap().unwrap();
        assert_eq!(offer.text, "call(x);");
        type_at_cursor(&session, "cal");
        let rest = session
            .complete(URI, Position { line: 1, column: 7 }, AUTOMATIC)
            .await
            .unwrap()
            .unwrap();
        assert_eq!((rest.id, rest.text.as_str()), (offer.id, "l(x);"));
        assert_eq!(session.daemon().counts().total, 1);
    }

    #[tokio::test]
    async fn an_edit_while_computing_means_that_nothing_was_offered() {
        let (_folder, session) = session(Duration::from_secs(60)).await;
        let asking = session.clone();
        let asked = tokio::spawn(async move { asking.complete(URI, CURSOR, AUTOMATIC).await });
        while lock(&session.state).newest.is_none() {
            tokio::task::yield_now().await;
        }
        type_at_cursor(&session, "x");
        assert!(matches!(asked.await.unwrap(), Err(SessionError::Superseded)));
        assert_eq!(session.daemon().counts().total, 0);
    }

    #[tokio::test]
    async fn a_newer_request_takes_the_place_of_an_older_one() {
        let (_folder, session) = session(Duration::from_millis(50)).await;
        let newer = Position { line: 0, column: 0 };
        let (older, newer) = tokio::join!(
            session.complete(URI, CURSOR, AUTOMATIC),
            session.complete(URI, newer, AUTOMATIC)
        );
        assert!(matches!(older, Err(SessionError::Superseded)));
        assert!(newer.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_document_that_was_never_opened_is_named() {
        let (_folder, session) = session(Duration::ZERO).await;
        let unknown = "file:///other.rs";
        let error = session.complete(unknown, CURSOR, AUTOMATIC).await.unwrap_err().to_string();
        assert!(error.contains(unknown) && error.contains("open the file again"), "{error}");
        let error = session.change(unknown, 1, vec![]).unwrap_err().to_string();
        assert!(error.contains(unknown), "{error}");
    }
}
