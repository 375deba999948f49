//! One editor connection: its documents, its live offer, its newest request.
//!
//! Every message is taken in order under one lock, and none awaits before it
//! has been; only the engine's answer is waited for, with the lock free. Which files a
//! prompt may quote is read from the disk before the lock is taken.

use crate::aftermath::{Aftermath, Finding};
use crate::answered::{Answered, ask_gate};
use crate::asked::{ALTERNATIVES, Asked, Place, Trigger, as_set, extent};
use crate::config::Config;
use crate::daemon::{Daemon, lock};
use crate::document::{Document, Edit, Encoding, PastTheEnd, Position};
use crate::engine::{EngineError, Generated};
use crate::extent::Extent;
use crate::imports;
use crate::postprocess::{Around, breaks_line, repeats_closing, replaced};
use crate::privacy::QuotableFiles;
use crate::prompts::{self, Prompts};
use crate::rhythm::{Rhythm, Stand};
use crate::tracker::{Judgement, Offer, Tracker};
use crate::unshown::{Rest, Unshown};
use feedback::event::{EventKind, OfferId, Outcome, StopReason};
use rand::Rng;
use std::collections::{HashMap, HashSet};
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
    prompts: Prompts,
    tracker: Tracker,
    unshown: Option<Unshown>,
    aftermath: Aftermath,
    last_edit_ms: u64,
    rhythm: Rhythm,
    /// Requests that went to the engine.
    asked: u64,
    rejects: RejectsHere,
    /// Abort flag of the request that is being computed.
    newest: Option<Arc<AtomicBool>>,
    /// How often it was told to forget.
    forgets: u64,
    /// Offers that were on screen when they were forgotten.
    forgotten: HashSet<OfferId>,
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

/// The request that is being computed. Dropping it, however the request ends, takes it out
/// of the session if it is still the newest there, so that prompts are prepared again.
struct CurrentRequest<'a> {
    state: &'a Mutex<State>,
    abort: Arc<AtomicBool>,
}

impl Drop for CurrentRequest<'_> {
    fn drop(&mut self) {
        lock(self.state).newest.take_if(|newest| Arc::ptr_eq(newest, &self.abort));
    }
}

enum Begun {
    /// The user wants none here, or none is worth showing.
    Silent,
    Known(Vec<Suggestion>),
    Asked(Box<Asked>),
}

impl Session {
    pub fn new(daemon: Arc<Daemon>) -> Session {
        let state = State {
            encoding: Encoding::Utf16,
            documents: HashMap::new(),
            prompts: Prompts::default(),
            tracker: Tracker::default(),
            unshown: None,
            aftermath: Aftermath::default(),
            last_edit_ms: 0,
            rhythm: Rhythm::default(),
            asked: 0,
            rejects: RejectsHere::default(),
            newest: None,
            forgets: 0,
            forgotten: HashSet::new(),
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
        let mut state = lock(&self.state);
        state.prompts.visit(&document);
        state.documents.insert(uri, document);
    }

    /// Reads the files that a document imports, for prompts to quote. Waits for the
    /// disk, the session does not.
    pub fn look_at_imports(&self, uri: &str) {
        let config = self.daemon.config();
        if self.context_chars(&config) == 0 {
            return;
        }
        let document = lock(&self.state).documents.get(uri).cloned();
        let Some(document) = document else { return };
        let files = imports::read(&document.path, &document.text);
        let paths = files.iter().map(|file| file.path.clone()).collect();
        let rules = self.daemon.privacy.quotable(paths, &config.privacy.ignore);
        let terms = self.terms(&config, &rules);
        for file in files {
            lock(&self.state).prompts.add(&file, &terms);
        }
    }

    pub fn close(&self, uri: &str) {
        let now_ms = self.daemon.clock.now_ms();
        let mut state = lock(&self.state);
        let events = state.tracker.closed(uri, now_ms);
        self.conclude(&mut state, events, None, now_ms);
        if let Some(document) = state.documents.remove(uri) {
            let rules = QuotableFiles::default();
            state.prompts.close(uri, &document, &self.terms(&self.daemon.config(), &rules));
            let findings = state.aftermath.close(uri, &document, now_ms);
            self.tell(findings);
        }
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
        state.last_edit_ms = now_ms;
        state.rhythm.key(now_ms);
        if !state.documents.contains_key(uri) {
            return Err(SessionError::NotOpen { uri: uri.to_owned() });
        }
        let quotes = self.context_chars(&self.daemon.config()) > 0;
        for (range, text) in changes {
            let State { documents, tracker, unshown, encoding, aftermath, prompts, .. } =
                &mut *state;
            let document = documents
                .get_mut(uri)
                .ok_or_else(|| SessionError::NotOpen { uri: uri.to_owned() })?;
            document.version = version;
            prompts.visit(document);
            let (cursor, was) = (tracker.cursor(uri), document.text.clone());
            let edit = document.apply(range, text, *encoding);
            if quotes {
                prompts.edit(document, was, &edit);
            }
            let edit = match cursor {
                Some(cursor) => document.seen_at(edit, cursor),
                None => edit,
            };
            aftermath.edit(uri, &edit, now_ms);
            unshown.take_if(|unshown| !unshown.survives(uri, &edit));
            let events = tracker.edit(uri, &edit, now_ms);
            self.conclude(&mut state, events, Some(&edit), now_ms);
        }
        self.look(&mut state, now_ms);
        Ok(())
    }

    /// The user has put the cursor here: what a request would need computed is
    /// computed now, while they look around.
    pub fn focus(&self, uri: &str, position: Position) -> Result<(), SessionError> {
        let config = self.daemon.config();
        let rules = self.quotable(uri, &config);
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let document = state
            .documents
            .get(uri)
            .ok_or_else(|| SessionError::NotOpen { uri: uri.to_owned() })?;
        let cursor = document.offset(position, state.encoding)?;
        if state.newest.is_none() && self.daemon.completes(&document.path, &document.language) {
            state.prompts.visit(document);
            let terms = self.terms(&config, &rules);
            if let Some(prompt) = state.prompts.at(&state.documents, uri, cursor, &terms) {
                self.daemon.engine.warm(as_set(&config.completion, prompt));
            }
        }
        Ok(())
    }

    fn terms<'a>(&self, config: &Config, rules: &'a QuotableFiles) -> prompts::Terms<'a> {
        prompts::Terms {
            window: prompts::window(&config.completion),
            context_chars: self.context_chars(config),
            rules,
        }
    }

    /// Characters of other code that a prompt may hold.
    fn context_chars(&self, config: &Config) -> usize {
        let reads_files = self.daemon.engine.info().reads_files;
        if reads_files { config.completion.context_chars } else { 0 }
    }

    /// Which files a prompt in this document may quote. Waits for the disk, the session does
    /// not: it is asked before the state's lock is taken.
    fn quotable(&self, uri: &str, config: &Config) -> QuotableFiles {
        if self.context_chars(config) == 0 {
            return QuotableFiles::default();
        }
        let paths = {
            let state = lock(&self.state);
            let mut paths = state.prompts.sources();
            // The prompt may quote other parts of the document itself.
            paths.extend(state.documents.get(uri).map(|document| document.path.clone()));
            paths
        };
        self.daemon.privacy.quotable(paths, &config.privacy.ignore)
    }

    /// Answers a request for an inline completion: one offer, more to choose from
    /// where the user asked, none for silence.
    pub async fn complete(
        &self,
        uri: &str,
        position: Position,
        trigger: Trigger,
    ) -> Result<Vec<Suggestion>, SessionError> {
        let asked = match self.begin(uri, position, trigger)? {
            Begun::Silent => return Ok(vec![]),
            Begun::Known(suggestions) => return Ok(suggestions),
            Begun::Asked(asked) => asked,
        };
        // Before the first await: a client that cancels drops this future at one.
        let _current = CurrentRequest { state: &self.state, abort: asked.abort.clone() };
        if !asked.wait.is_zero() {
            // Whatever the next key is, most of the prompt will be the same.
            self.daemon.engine.warm(asked.request.prompt.clone());
            tokio::time::sleep(asked.wait).await;
            if asked.abort.load(Ordering::Relaxed) {
                return Err(SessionError::Superseded);
            }
        }
        let started = Instant::now();
        let answer = self.daemon.engine.generate(asked.request.clone(), asked.abort.clone()).await;
        lock(&self.state).rhythm.answered(started.elapsed(), answer.is_ok());
        match answer {
            Ok(generated) => self.finish(*asked, generated),
            Err(EngineError::Aborted) => Err(SessionError::Superseded),
            Err(EngineError::OverBudget) => Ok(vec![]),
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
        let rules = self.quotable(uri, &config);
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        state.abort_newest();
        let document = state
            .documents
            .get(uri)
            .ok_or_else(|| SessionError::NotOpen { uri: uri.to_owned() })?;
        let cursor = document.offset(position, state.encoding)?;
        let around = Around::of(&document.text, cursor);
        let live = state.tracker.continuation(uri, cursor);
        let rest_of_line = &around.rest_of_line;
        let live = live.filter(|(_, text)| {
            let doubles = repeats_closing(text, rest_of_line) && replaced(text, &around).is_empty();
            !doubles && !breaks_line(text, rest_of_line)
        });
        let goes_on = live.is_some();
        let beside_a_line = live.as_ref().is_some_and(|(_, text)| !text.contains('\n'));
        let known = match trigger {
            Trigger::Automatic => live.map(|live| vec![live]),
            Trigger::Invoked if goes_on => state.tracker.continuations(uri, cursor),
            Trigger::Invoked => None,
        };
        if let Some(known) = known {
            let tracker = &mut state.tracker;
            let known = known.into_iter().map(|one| suggestion(tracker, one, position, &around));
            return Ok(Begun::Known(known.collect()));
        }
        let is_wanted = self.daemon.completes(&document.path, &document.language);
        if trigger == Trigger::Automatic && !is_wanted {
            let now_ms = self.daemon.clock.now_ms();
            let events = state.tracker.supersede(now_ms);
            self.conclude(state, events, None, now_ms);
            return Ok(Begun::Silent);
        }
        let now_ms = self.daemon.clock.now_ms();
        let here = (uri.to_owned(), document.text.char_to_line(cursor));
        let place = Place {
            uri: uri.to_owned(),
            path: document.path.clone(),
            language: document.language.clone(),
            text: document.text.clone(),
            cursor,
            position,
            around,
            idle_ms: now_ms.saturating_sub(state.last_edit_ms),
            rejects_here: if state.rejects.place == here { state.rejects.count } else { 0 },
        };
        let mut draws = place.draws(state.asked);
        let (adapter, arm) = self.daemon.draw_arm(draws.random());
        let draw = draws.random();
        if trigger == Trigger::Automatic
            && let Some(unshown) = state.unshown.as_ref()
            && unshown.adapter == adapter
            && let Some(rest) = unshown.rest(uri, cursor)
            && !self.may_be_worth_it(&rest, unshown.stop, &place, draw)
        {
            let events = state.tracker.supersede(now_ms);
            self.conclude(state, events, None, now_ms);
            return Ok(Begun::Silent);
        }
        let wait = state.rhythm.wait(Stand::behind(&place.around.line_before), place.rejects_here);
        let waits = completion.follow_rhythm && trigger == Trigger::Automatic;
        let extent = match beside_a_line {
            // Whoever turns to others of a line compares lines, and soon.
            true => Extent::LINE,
            false => extent(document, cursor, trigger, completion),
        };
        let terms = self.terms(&config, &rules);
        let prompt = state.prompts.at(&state.documents, uri, cursor, &terms);
        let prompt = prompt.ok_or_else(|| SessionError::NotOpen { uri: uri.to_owned() })?;
        let abort = Arc::new(AtomicBool::new(false));
        let asked = Asked {
            abort: abort.clone(),
            forgets: state.forgets,
            arrived: Instant::now(),
            // In a rehearsal nobody's time passes.
            wait: if waits && self.daemon.clock.passes() { wait } else { Duration::ZERO },
            trigger,
            arm,
            draw,
            window: terms.window,
            request: place.request(prompt, adapter, extent, trigger, completion),
            place,
        };
        state.newest = Some(abort);
        state.asked += 1;
        if !goes_on {
            let events = state.tracker.supersede(now_ms);
            self.conclude(state, events, None, now_ms);
        }
        Ok(Begun::Asked(Box::new(asked)))
    }

    /// False where what is left of an answer that was not shown is not to be shown
    /// either.
    fn may_be_worth_it(&self, rest: &Rest, stop: StopReason, place: &Place, draw: f64) -> bool {
        let likely = rest.probability() >= self.daemon.config().completion.min_probability;
        let seen = |recent| place.surroundings(rest.text, &rest.logprobs, stop, recent);
        likely && draw < f64::from(ask_gate(&self.daemon, seen).propensity)
    }

    /// Records what the engine did and makes offers of it, if the user is still there.
    fn finish(&self, asked: Asked, generated: Generated) -> Result<Vec<Suggestion>, SessionError> {
        let answered = Answered::new(&self.daemon, &asked, &generated);
        let place = &asked.place;
        let mut state = lock(&self.state);
        // An edit or a newer request has taken this one's place.
        let current = state.newest.take_if(|newest| Arc::ptr_eq(newest, &asked.abort));
        if current.is_none() {
            return Err(SessionError::Superseded);
        }
        // Its prompt may quote what is forgotten. The user did nothing that supersedes it.
        if asked.forgets < state.forgets {
            return Ok(vec![]);
        }
        // What is on screen comes first, and is not offered twice.
        let live = state.tracker.continuation(&place.uri, place.cursor);
        let live = live.filter(|_| asked.trigger == Trigger::Invoked);
        let goes_on = live.is_some();
        let position = place.position;
        let now_ms = self.daemon.clock.now_ms();
        let mut texts: Vec<(OfferId, String)> = live.into_iter().collect();
        let (mut events, mut offers) = (vec![], vec![]);
        for (index, answer) in generated.answers.iter().enumerate() {
            let completion = answered.completion(answer);
            if index == 0 {
                state.unshown = answered.unshown(answer, &completion);
            }
            let (id, text) = (completion.id.clone(), completion.shown.clone());
            let healing = completion.healing.clone();
            let is_known = texts.iter().any(|(_, known)| *known == text);
            if is_known || texts.len() > ALTERNATIVES || (index > 0 && text.is_empty()) {
                continue;
            }
            events.push(EventKind::Completion(Box::new(completion)));
            let (uri, start) = (place.uri.clone(), place.cursor);
            if !text.is_empty() {
                offers.push(Offer { id: id.clone(), uri, start, text: text.clone(), healing });
                texts.push((id, text));
            } else if !state.aftermath.awaits(&uri, start) {
                state.aftermath.not_taken(id, uri, start, "", healing, now_ms);
            }
        }
        if goes_on {
            state.tracker.complete(offers, now_ms);
        } else {
            let is_complete = asked.trigger == Trigger::Invoked;
            events.extend(state.tracker.serve(offers, is_complete, now_ms));
        }
        let tracker = &mut state.tracker;
        let suggestions =
            texts.into_iter().map(|one| suggestion(tracker, one, position, &place.around));
        let suggestions = suggestions.collect();
        self.conclude(&mut state, events, None, now_ms);
        Ok(suggestions)
    }

    /// Records events, and has what was judged watched from now on. `edit` is
    /// the one that brought them, if one did.
    fn conclude(
        &self,
        state: &mut State,
        events: Vec<EventKind>,
        edit: Option<&Edit>,
        now_ms: u64,
    ) {
        self.daemon.record(events);
        let State { tracker, aftermath, documents, rejects, forgotten, .. } = state;
        for Judgement { offer, outcome, standing } in tracker.take_judged() {
            let Offer { id, uri, start, text, healing } = offer;
            if forgotten.remove(&id) {
                continue;
            }
            match outcome {
                Outcome::Accepted => aftermath.taken(id, uri, start, text, standing, now_ms),
                Outcome::RejectedEsc | Outcome::RejectedTimeout | Outcome::RejectedEdit => {
                    if let Some(document) = documents.get(&uri) {
                        let at = start.min(document.text.len_chars());
                        let place = (uri.clone(), document.text.char_to_line(at));
                        let again = rejects.place == place;
                        rejects.count = if again { rejects.count.saturating_add(1) } else { 1 };
                        rejects.place = place;
                    }
                    let standing: String = text.chars().take(standing).collect();
                    aftermath.not_taken(id, uri, start, &standing, healing, now_ms);
                    if let Some(edit) = edit {
                        aftermath.edit_newest(edit, now_ms);
                    }
                }
                Outcome::PartlyAccepted { .. }
                | Outcome::TypedThrough { .. }
                | Outcome::Superseded
                | Outcome::Unseen => {}
            }
        }
    }

    /// Tells what stands by now where offers were made.
    fn look(&self, state: &mut State, now_ms: u64) {
        let State { aftermath, documents, .. } = state;
        self.tell(aftermath.look(documents, now_ms));
    }

    fn tell(&self, findings: Vec<Finding>) {
        let events = findings.into_iter().map(|finding| match finding {
            Finding::Kept { id, check, share } => EventKind::Kept { id, check, share },
            Finding::Instead { id, text } => {
                EventKind::TypedInstead { id, tokens: self.daemon.engine.tokenize(&text) }
            }
        });
        self.daemon.record(events.collect());
    }

    /// # Errors
    /// Nothing is recorded of this offer, so that it was taken is not either.
    pub fn accepted(&self, id: &str) -> anyhow::Result<()> {
        self.track(|tracker, _| tracker.accepted(id));
        self.daemon.accepted_later(id)
    }

    pub fn shown(&self, id: &str) {
        self.track(|tracker, now_ms| tracker.shown(id, now_ms));
    }

    pub fn partly_accepted(&self, id: &str, utf16: u32) {
        self.track(|tracker, _| tracker.partly_accepted(id, utf16));
    }

    /// The client is about to put the offer, or a part of it, into the document.
    pub fn taking(&self, id: &str) {
        self.track(|tracker, now_ms| tracker.taking(id, now_ms));
    }

    /// The user dismissed whichever of these is on screen.
    pub fn dismissed(&self, ids: &[OfferId]) {
        self.track(|tracker, now_ms| match tracker.on_screen() {
            Some(id) if ids.contains(&id) => tracker.rejected(&id, Outcome::RejectedEsc, now_ms),
            _ => vec![],
        });
    }

    /// What stands on a line before a place in it.
    pub fn line_before(&self, uri: &str, position: Position) -> Option<String> {
        let state = lock(&self.state);
        let document = state.documents.get(uri)?;
        let cursor = document.offset(position, state.encoding).ok()?;
        let line = document.text.char_to_line(cursor);
        Some(document.text.slice(document.text.line_to_char(line)..cursor).to_string())
    }

    pub fn rejected(&self, id: &str, reason: Outcome) {
        self.track(|tracker, now_ms| tracker.rejected(id, reason, now_ms));
    }

    pub fn tick(&self) {
        self.track(Tracker::tick);
        self.look(&mut lock(&self.state), self.daemon.clock.now_ms());
    }

    /// Records under the session's lock, so that the log has its messages' order.
    fn track(&self, step: impl FnOnce(&mut Tracker, u64) -> Vec<EventKind>) {
        let mut state = lock(&self.state);
        let now_ms = self.daemon.clock.now_ms();
        let events = step(&mut state.tracker, now_ms);
        self.conclude(&mut state, events, None, now_ms);
    }

    /// Lets go of the code that prompts quote: changes, and documents other than the
    /// open ones. What is on screen stays, and can be taken.
    pub fn forget(&self) {
        let mut state = lock(&self.state);
        state.prompts = Prompts::default();
        state.unshown = None;
        state.forgets += 1;
    }

    /// Looks no further at what becomes of these in the document. One that is on
    /// screen can still be taken; what is written instead is not told.
    pub fn forget_offers(&self, offers: &HashSet<OfferId>) {
        let mut state = lock(&self.state);
        state.aftermath.forget(offers);
        let is_forgotten = |id: &&OfferId| offers.contains(*id) || state.forgotten.contains(*id);
        state.forgotten = state.tracker.live().filter(is_forgotten).cloned().collect();
    }

    /// The editor has gone: nothing it was offered can be judged any more.
    pub fn end(&self) {
        {
            let mut state = lock(&self.state);
            state.abort_newest();
            let now_ms = self.daemon.clock.now_ms();
            for (uri, document) in std::mem::take(&mut state.documents) {
                let findings = state.aftermath.close(&uri, &document, now_ms);
                self.tell(findings);
            }
        }
        self.track(Tracker::supersede);
    }
}

impl State {
    fn abort_newest(&mut self) {
        if let Some(abort) = self.newest.take() {
            abort.store(true, Ordering::Relaxed);
        }
    }
}

/// What remains of an offer, as the client is told, and as the tracker expects it then.
fn suggestion(
    tracker: &mut Tracker,
    (id, text): (OfferId, String),
    position: Position,
    around: &Around,
) -> Suggestion {
    let marks = replaced(&text, around);
    tracker.replaces(&id, marks);
    Suggestion { id, position, replaces: marks.len() as u32, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::engine::scripted::ScriptedEngine;
    use crate::engine::worker::EngineHandle;
    use crate::engine::{Engine, EngineInfo, Request, Score, ScoreRequest, Tokenizer};
    use crate::home::Home;
    use crate::prompt::FimPrompt;
    use crate::rig::{scripted_model, try_first_adapter};
    use feedback::clock::ManualClock;
    use feedback::event::{AdapterVersion, Event};
    use feedback::log::MemoryLog;
    use ropey::Rope;
    use std::ops::ControlFlow;
    use std::path::Path;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    const URI: &str = "file:///a.rs";
    const CURSOR: Position = Position { line: 1, column: 4 };
    const ANSWERS: &[&str] = &["call(x);", "call(y);", "close();"];
    const AUTOMATIC: Trigger = Trigger::Automatic;

    /// A session on `fn a() {\n    |\n}\n` whose engine always answers the same.
    async fn session(takes: Duration) -> (tempfile::TempDir, Arc<Session>) {
        session_with(ScriptedEngine { answers: ANSWERS, learned: None, takes }).await
    }

    async fn session_with(
        engine: impl Engine + Send + 'static,
    ) -> (tempfile::TempDir, Arc<Session>) {
        let mut config = Config::default();
        config.gate.enabled = false;
        session_as_set(config, engine).await
    }

    async fn session_as_set(
        config: Config,
        engine: impl Engine + Send + 'static,
    ) -> (tempfile::TempDir, Arc<Session>) {
        let folder = tempfile::tempdir().unwrap();
        let engine = EngineHandle::start(move || Ok(engine)).unwrap();
        let (home, clock) = (Home::at(folder.path().into()), ManualClock::starting_at(0));
        home.create().unwrap();
        let log = Arc::new(MemoryLog::default());
        let daemon = Daemon::start(&home, config, scripted_model(), engine, Arc::new(clock), log)
            .await
            .unwrap();
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
        let offer = session.complete(URI, CURSOR, AUTOMATIC).await.unwrap().remove(0);
        assert_eq!(offer.text, "call(x);");
        type_at_cursor(&session, "cal");
        let rest = session
            .complete(URI, Position { line: 1, column: 7 }, AUTOMATIC)
            .await
            .unwrap()
            .remove(0);
        assert_eq!((rest.id, rest.text.as_str()), (offer.id, "l(x);"));
        assert_eq!(session.daemon().counts().total, 1);
    }

    #[tokio::test]
    async fn what_was_held_back_is_not_asked_again_until_its_rest_may_be_worth_it() {
        // Every byte is a token, and together they are unlikely.
        const LONG: &str = "let unlikely = this_and_that(and_the_rest, of_it, and_more);";
        let engine = ScriptedEngine { answers: &[LONG], learned: None, takes: Duration::ZERO };
        let (_folder, session) = session_as_set(Config::default(), engine).await;
        let ask = async |column| {
            let position = Position { line: 1, column };
            texts(&session.complete(URI, position, AUTOMATIC).await.unwrap()).join("")
        };
        assert_eq!(ask(4).await, "");
        let answers = || session.daemon().counts().silent;
        assert_eq!(answers(), 1);
        type_at_cursor(&session, "let unlikely");
        assert_eq!(ask(16).await, "");
        assert_eq!(answers(), 1, "the model would say the same");
        let cursor = Position { line: 1, column: 16 };
        let most = &LONG[12..LONG.len() - 2];
        session.change(URI, 3, vec![(Some((cursor, cursor)), most.into())]).unwrap();
        ask(4 + LONG.len() as u32 - 2).await;
        assert_eq!(answers(), 2, "what is left is likely: the engine is asked");
    }

    fn texts(suggestions: &[Suggestion]) -> Vec<&str> {
        suggestions.iter().map(|suggestion| suggestion.text.as_str()).collect()
    }

    #[tokio::test]
    async fn asking_by_hand_offers_others_beside_what_is_on_screen() {
        let (_folder, session) = session(Duration::ZERO).await;
        let first = session.complete(URI, CURSOR, AUTOMATIC).await.unwrap();
        assert_eq!(texts(&first), ["call(x);"], "one as the user types");
        let all = session.complete(URI, CURSOR, Trigger::Invoked).await.unwrap();
        assert_eq!(texts(&all), ANSWERS);
        assert_eq!(all[0].id, first[0].id, "what is on screen stays the same offer");
        assert_eq!(session.daemon().counts().total, 3);
        let again = session.complete(URI, CURSOR, Trigger::Invoked).await.unwrap();
        assert_eq!(again, all, "and asks the engine nothing");

        session.shown(&all[1].id);
        type_at_cursor(&session, "call(y);");
        let counts = session.daemon().counts();
        assert_eq!((counts.accepted, counts.unseen, counts.unlabelled), (1, 2, 0));
    }

    #[tokio::test]
    async fn asking_by_hand_where_nothing_stands_offers_all_at_once() {
        let (_folder, session) = session(Duration::ZERO).await;
        let all = session.complete(URI, CURSOR, Trigger::Invoked).await.unwrap();
        assert_eq!(texts(&all), ANSWERS);
        type_at_cursor(&session, "cal");
        let after = Position { line: 1, column: 7 };
        let one = session.complete(URI, after, AUTOMATIC).await.unwrap();
        assert_eq!(texts(&one), ["l(x);"]);
        let fitting = session.complete(URI, after, Trigger::Invoked).await.unwrap();
        assert_eq!(texts(&fitting), ["l(x);", "l(y);"]);
    }

    const LINES: &[&str] = &[
        "for x in y {\n        call(x);\n    }\n}\n\nfn b() {",
        "for x in y {\n        close(x);\n    }\n}",
        "for x in y {\n        call(x);\n    }\n}\n\nfn c() {",
    ];

    #[tokio::test]
    async fn asking_by_hand_in_an_empty_block_offers_its_lines_and_typing_one() {
        let engine = ScriptedEngine { answers: LINES, learned: None, takes: Duration::ZERO };
        let (_folder, session) = session_with(engine).await;
        let all = session.complete(URI, CURSOR, Trigger::Invoked).await.unwrap();
        let first = "for x in y {\n        call(x);\n    }";
        let second = "for x in y {\n        close(x);\n    }";
        assert_eq!(texts(&all), [first, second], "to the brace that stands below, each once");

        type_at_cursor(&session, "for x in y {");
        let end = Position { line: 1, column: 16 };
        session.change(URI, 3, vec![(Some((end, end)), "\n        ".into())]).unwrap();
        let next = Position { line: 2, column: 8 };
        let rest = session.complete(URI, next, AUTOMATIC).await.unwrap();
        assert_eq!(texts(&rest), ["call(x);\n    }"], "over the line break");
        session.change(URI, 4, vec![(Some((next, next)), rest[0].text.clone())]).unwrap();
        assert_eq!(session.daemon().counts().accepted, 1);
    }

    #[tokio::test]
    async fn as_the_user_types_one_line_is_offered() {
        let engine = ScriptedEngine { answers: LINES, learned: None, takes: Duration::ZERO };
        let (_folder, session) = session_with(engine).await;
        let typed = session.complete(URI, CURSOR, AUTOMATIC).await.unwrap();
        assert_eq!(texts(&typed), ["for x in y {"]);
    }

    #[tokio::test]
    async fn lines_are_not_offered_before_a_bracket_that_the_editor_closed() {
        let engine = ScriptedEngine { answers: LINES, learned: None, takes: Duration::ZERO };
        let (_folder, session) = session_with(engine).await;
        session.complete(URI, CURSOR, Trigger::Invoked).await.unwrap();
        type_at_cursor(&session, "for x in y ");
        let end = Position { line: 1, column: 15 };
        session.change(URI, 3, vec![(Some((end, end)), "{}".into())]).unwrap();
        let within = Position { line: 1, column: 16 };
        let offers = session.complete(URI, within, AUTOMATIC).await.unwrap();
        assert!(offers.iter().all(|offer| !offer.text.contains('\n')), "{offers:?}");
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

    /// A [`ScriptedEngine`] that counts the prompts it prepares.
    struct Counting {
        scripted: ScriptedEngine,
        /// How it answers instead, once it has taken its time.
        fails: Option<fn() -> EngineError>,
        prepared: Arc<AtomicUsize>,
    }

    impl Engine for Counting {
        fn info(&self) -> EngineInfo {
            self.scripted.info()
        }

        fn tokenizer(&self) -> Tokenizer {
            self.scripted.tokenizer()
        }

        fn generate(
            &mut self,
            request: &Request,
            abort: &AtomicBool,
        ) -> Result<Generated, EngineError> {
            let answer = self.scripted.generate(request, abort)?;
            self.fails.map_or(Ok(answer), |fails| Err(fails()))
        }

        fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError> {
            self.prepared.fetch_add(1, Ordering::Relaxed);
            self.scripted.warm(prompt, abort)
        }

        fn score(
            &mut self,
            request: &ScoreRequest,
            abort: &AtomicBool,
        ) -> Result<Vec<Score>, EngineError> {
            self.scripted.score(request, abort)
        }

        fn load_adapter(
            &mut self,
            version: AdapterVersion,
            path: &Path,
            keep: &[AdapterVersion],
        ) -> Result<(), EngineError> {
            self.scripted.load_adapter(version, path, keep)
        }
    }

    /// Whether a cursor that is put somewhere has its prompt prepared once a request has
    /// ended, which `end` waits for.
    async fn prepares_after(
        takes: Duration,
        fails: Option<fn() -> EngineError>,
        end: impl AsyncFnOnce(Arc<Session>),
    ) -> bool {
        const SOON: Duration = Duration::from_secs(2);
        let prepared = Arc::new(AtomicUsize::new(0));
        let scripted = ScriptedEngine { answers: ANSWERS, learned: None, takes };
        let engine = Counting { scripted, fails, prepared: prepared.clone() };
        let (_folder, session) = session_with(engine).await;
        end(session.clone()).await;
        session.focus(URI, CURSOR).unwrap();
        let began = Instant::now();
        while prepared.load(Ordering::Relaxed) == 0 && began.elapsed() < SOON {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        prepared.load(Ordering::Relaxed) > 0
    }

    /// A request that failed, ran out of time or was cancelled by the client stayed the
    /// session's newest. Until the next edit or request, `focus` took it for one under way
    /// and prepared no prompt.
    #[tokio::test]
    async fn prompts_are_prepared_again_however_a_request_has_ended() {
        let answered = async |session: Arc<Session>| {
            let _ = session.complete(URI, CURSOR, AUTOMATIC).await;
        };
        assert!(prepares_after(Duration::ZERO, None, answered).await, "finished");
        let failed = || EngineError::Failed("no memory".into());
        assert!(prepares_after(Duration::ZERO, Some(failed), answered).await, "failed");
        let late = || EngineError::OverBudget;
        assert!(prepares_after(Duration::ZERO, Some(late), answered).await, "over budget");
        let cancelled = async |session: Arc<Session>| {
            let asking = session.clone();
            let asked = tokio::spawn(async move { asking.complete(URI, CURSOR, AUTOMATIC).await });
            while lock(&session.state).newest.is_none() {
                tokio::task::yield_now().await;
            }
            asked.abort();
            assert!(asked.await.unwrap_err().is_cancelled());
        };
        assert!(prepares_after(Duration::from_secs(60), None, cancelled).await, "cancelled");
    }

    /// An older request that ends must leave the newer one in its place: it is the one that
    /// the next key has to abort.
    #[tokio::test]
    async fn a_request_that_was_superseded_leaves_the_newer_one_alone() {
        let (_folder, session) = session(Duration::from_secs(60)).await;
        let ask = |column| {
            let asking = session.clone();
            let at = Position { line: 0, column };
            tokio::spawn(async move { asking.complete(URI, at, AUTOMATIC).await })
        };
        let older = ask(0);
        while lock(&session.state).newest.is_none() {
            tokio::task::yield_now().await;
        }
        let newer = ask(1);
        assert!(matches!(older.await.unwrap(), Err(SessionError::Superseded)));
        assert!(lock(&session.state).newest.is_some());
        type_at_cursor(&session, "x");
        assert!(matches!(newer.await.unwrap(), Err(SessionError::Superseded)));
    }

    /// With `completion.context_chars` above 0 the ignore files were read with the session's
    /// lock held, so a slow disk held up every message of the connection, and the clock of
    /// all others with it. Here the disk never answers: `.honeignore` is a pipe that
    /// nobody writes to.
    #[tokio::test]
    async fn a_session_goes_on_while_the_disk_is_asked_what_may_be_quoted() {
        for asks in [Session::look_at_imports, focus, complete] {
            goes_on_while(asks).await;
        }
    }

    fn focus(session: &Session, uri: &str) {
        session.focus(uri, CURSOR).unwrap();
    }

    fn complete(session: &Session, uri: &str) {
        let begun = session.begin(uri, CURSOR, AUTOMATIC).unwrap();
        assert!(matches!(begun, Begun::Asked(_)));
    }

    async fn goes_on_while(asks: impl Fn(&Session, &str) + Send + 'static) {
        const LONG: Duration = Duration::from_secs(10);
        let project = tempfile::tempdir().unwrap();
        let file = |name: &str| project.path().join(name).to_string_lossy().into_owned();
        let pipe = file(".honeignore");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        std::fs::write(file("ledger.rs"), "pub struct Ledger;\n").unwrap();

        let mut config = Config::default();
        config.completion.context_chars = 1_000;
        let scripted = ScriptedEngine { answers: ANSWERS, learned: None, takes: Duration::ZERO };
        let (_folder, session) = session_as_set(config, scripted).await;
        let text = Rope::from_str("use ledger::Ledger;\n    \n");
        let (path, language) = (file("here.rs"), "rust".into());
        session.open("here".into(), Document { path, language, version: 1, text });

        let (asking, other) = (session.clone(), session.clone());
        let (asked, answered) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            asks(&asking, "here");
            asked.send(()).unwrap();
        });
        let early = answered.recv_timeout(Duration::from_millis(200));
        assert!(early.is_err(), "the disk was not asked");
        let (done, waits) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let end = Position { line: 1, column: 0 };
            other.change("here", 2, vec![(Some((end, end)), "x".into())]).unwrap();
            done.send(()).unwrap();
        });
        let went_on = waits.recv_timeout(LONG);
        // Whoever opens the other end of the pipe lets the reader go.
        std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        assert!(went_on.is_ok(), "the session waits for the disk");
        answered.recv_timeout(LONG).unwrap();
    }

    #[tokio::test]
    async fn what_is_forgotten_while_computing_is_silence_and_no_error() {
        let (_folder, session) = session(Duration::from_millis(50)).await;
        let asking = session.clone();
        let asked = tokio::spawn(async move { asking.complete(URI, CURSOR, AUTOMATIC).await });
        while lock(&session.state).newest.is_none() {
            tokio::task::yield_now().await;
        }
        session.forget();
        assert_eq!(asked.await.unwrap().unwrap(), []);
        assert_eq!(session.daemon().counts().total, 0);
        assert_eq!(session.complete(URI, CURSOR, AUTOMATIC).await.unwrap().len(), 1);
    }

    /// What is written instead of an offer, in events, if `forget` comes in between.
    async fn told_instead(forget: impl Fn(&Session, &OfferId)) -> usize {
        let (_folder, session) = session(Duration::ZERO).await;
        let offer = session.complete(URI, CURSOR, AUTOMATIC).await.unwrap().remove(0);
        session.shown(&offer.id);
        forget(&session, &offer.id);
        session.rejected(&offer.id, Outcome::RejectedEsc);
        forget(&session, &offer.id);
        type_at_cursor(&session, "other();\n");
        session.tick();
        let mut told = 0;
        let count = &mut |event: Event| {
            told += usize::from(matches!(event.kind, EventKind::TypedInstead { .. }));
            ControlFlow::Continue(())
        };
        session.daemon().log().scan(0, count).unwrap();
        told
    }

    #[tokio::test]
    async fn what_is_written_instead_of_a_forgotten_offer_is_not_told() {
        assert_eq!(told_instead(|_, _| {}).await, 1);
        let forget = |session: &Session, id: &OfferId| session.forget_offers(&[id.clone()].into());
        assert_eq!(told_instead(forget).await, 0);
        let on_screen = std::cell::Cell::new(true);
        let first = |session: &Session, id: &OfferId| {
            if on_screen.take() {
                forget(session, id);
                session.forget_offers(&HashSet::new());
            }
        };
        assert_eq!(told_instead(first).await, 0, "nor of one that was on screen");
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
        assert_eq!(newer.unwrap().len(), 1);
    }

    /// Types at many places with a candidate on trial that says `learned`, and
    /// answers which adapter serves afterwards, and what the status says.
    async fn trial_of(learned: &'static [&'static str]) -> (AdapterVersion, String) {
        let takes = Duration::ZERO;
        let engine = ScriptedEngine { answers: ANSWERS, learned: Some(learned), takes };
        let (_folder, session) = session_with(engine).await;
        let daemon = session.daemon().clone();
        assert_eq!(try_first_adapter(&daemon, |_| Ok(())).await.unwrap(), None);
        for place in 0..200 {
            let uri = format!("file:///{place}.rs");
            let text = Rope::from_str(&format!("fn a{place}() {{\n    \n}}\n"));
            let (path, language) = (uri.clone(), "rust".into());
            session.open(uri.clone(), Document { path, language, version: 1, text });
            let offers = session.complete(&uri, CURSOR, AUTOMATIC).await.unwrap();
            if let Some(offer) = offers.first() {
                // A hack pays: whatever is offered is taken.
                session.accepted(&offer.id).unwrap();
            }
            tokio::task::yield_now().await;
            if lock(&daemon.registry).trial().is_none() {
                break;
            }
        }
        let screen = crate::status::screen(&crate::status::of(&daemon));
        (daemon.active_adapter(), screen)
    }

    #[tokio::test]
    async fn planted_hacks_end_their_trial_and_the_status_names_them() {
        let (serves, screen) = trial_of(&["});"]).await;
        assert_eq!(serves, 0);
        assert!(screen.contains("closing brackets"), "{screen}");
        let (serves, screen) = trial_of(&[""]).await;
        assert_eq!(serves, 0);
        assert!(screen.contains("goes silent"), "{screen}");
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
