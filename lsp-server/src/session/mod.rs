//! One editor connection: its documents, its live offer, its newest request.
//!
//! Every message is taken in order under one lock, and none awaits before it
//! has been; only the engine's answer is waited for, with the lock free. Which files a
//! prompt may quote is read from the disk before the lock is taken.

mod imports;
pub mod request;
mod response;
mod suppressed;
mod survival;
pub mod tracker;

use crate::config::Config;
use crate::privacy::QuotableFiles;
use crate::services::Services;
use crate::services::settings::Current;
use crate::session::request::{ALTERNATIVES, Asked, Place, Trigger, as_set, extent};
use crate::session::response::{Answered, ask_gate};
use crate::session::suppressed::{Rest, Unshown};
use crate::session::survival::{Aftermath, Finding};
use crate::session::tracker::{Judgement, Offer, Tracker};
use completion::debounce::{Rhythm, Stand};
use completion::document::{Document, Edit, Encoding, PastTheEnd, Position};
use completion::postprocess::{Around, breaks_line, repeats_closing, replaced};
use completion::prompt_builder::{PromptBuilder, Terms};
use completion::stop_rule::Extent;
use engine::{EngineError, Generated};
use feedback::event::{EventKind, OfferId, Outcome, StopReason};
use parking_lot::Mutex;
use rand::Rng;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub struct Session {
    services: Arc<Services>,
    state: Mutex<State>,
}

struct State {
    encoding: Encoding,
    documents: HashMap<String, Document>,
    prompts: PromptBuilder,
    tracker: Tracker,
    unshown: Option<Unshown>,
    aftermath: Aftermath,
    last_edit_ms: Option<u64>,
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
        self.state.lock().newest.take_if(|newest| Arc::ptr_eq(newest, &self.abort));
    }
}

enum Begun {
    /// The user wants none here, or none is worth showing.
    Silent,
    Known(Vec<Suggestion>),
    Asked(Box<Asked>),
}

impl Session {
    pub fn new(services: Arc<Services>) -> Session {
        let state = State {
            encoding: Encoding::Utf16,
            documents: HashMap::new(),
            prompts: PromptBuilder::default(),
            tracker: Tracker::default(),
            unshown: None,
            aftermath: Aftermath::default(),
            last_edit_ms: None,
            rhythm: Rhythm::default(),
            asked: 0,
            rejects: RejectsHere::default(),
            newest: None,
            forgets: 0,
            forgotten: HashSet::new(),
        };
        Session { services, state: Mutex::new(state) }
    }

    pub fn use_encoding(&self, encoding: Encoding) {
        self.state.lock().encoding = encoding;
    }

    pub fn open(&self, uri: String, document: Document) {
        let mut state = self.state.lock();
        state.prompts.visit(&document);
        state.documents.insert(uri, document);
    }

    /// Reads the files that a document imports, for prompts to quote. Waits for the
    /// disk, the session does not.
    pub fn look_at_imports(&self, uri: &str) {
        let config = self.services.settings.current();
        if self.context_chars(&config) == 0 {
            return;
        }
        let document = self.state.lock().documents.get(uri).cloned();
        let Some(document) = document else { return };
        let files = imports::read(&document.path, &document.text);
        let paths = files.iter().map(|file| file.path.clone()).collect();
        let rules = self.services.privacy.quotable(paths, &config.not_stored);
        let terms = self.terms(&config, &rules);
        for file in files {
            self.state.lock().prompts.add(&file, &terms);
        }
    }

    pub fn close(&self, uri: &str) {
        let now_ms = self.services.clock.elapsed_ms();
        let mut state = self.state.lock();
        let events = state.tracker.closed(uri, now_ms);
        self.conclude(&mut state, events, None, now_ms);
        if let Some(document) = state.documents.remove(uri) {
            let rules = QuotableFiles::default();
            let config = self.services.settings.current();
            state.prompts.close(uri, &document, &self.terms(&config, &rules));
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
        let now_ms = self.services.clock.elapsed_ms();
        let mut state = self.state.lock();
        state.abort_newest();
        state.last_edit_ms = Some(now_ms);
        state.rhythm.key(now_ms);
        if !state.documents.contains_key(uri) {
            return Err(SessionError::NotOpen { uri: uri.to_owned() });
        }
        let quotes = self.context_chars(&self.services.settings.current()) > 0;
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
        let config = self.services.settings.current();
        let rules = self.quotable(uri, &config);
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let document = state
            .documents
            .get(uri)
            .ok_or_else(|| SessionError::NotOpen { uri: uri.to_owned() })?;
        let cursor = document.offset(position, state.encoding)?;
        if state.newest.is_none() && config.completes(&document.path, &document.language) {
            state.prompts.visit(document);
            let terms = self.terms(&config, &rules);
            if let Some(prompt) = state.prompts.at(&state.documents, uri, cursor, &terms) {
                self.services.engine.warm(as_set(&config.lab, prompt));
            }
        }
        Ok(())
    }

    fn terms<'a>(&self, config: &Config, rules: &'a QuotableFiles) -> Terms<'a> {
        Terms { window: config.lab.window(), context_chars: self.context_chars(config), rules }
    }

    /// Characters of other code that a prompt may hold.
    fn context_chars(&self, config: &Config) -> usize {
        let reads_files = self.services.engine.info().reads_files;
        if reads_files { config.completion.context_chars } else { 0 }
    }

    /// Which files a prompt in this document may quote. Waits for the disk, the session does
    /// not: it is asked before the state's lock is taken.
    fn quotable(&self, uri: &str, config: &Current) -> QuotableFiles {
        if self.context_chars(config) == 0 {
            return QuotableFiles::default();
        }
        let paths = {
            let state = self.state.lock();
            let mut paths = state.prompts.sources();
            // The prompt may quote other parts of the document itself.
            paths.extend(state.documents.get(uri).map(|document| document.path.clone()));
            paths
        };
        self.services.privacy.quotable(paths, &config.not_stored)
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
            self.services.engine.warm(asked.request.prompt.clone());
            tokio::time::sleep(asked.wait).await;
            if asked.abort.load(Ordering::Relaxed) {
                return Err(SessionError::Superseded);
            }
        }
        let started = Instant::now();
        let answer =
            self.services.engine.generate(asked.request.clone(), asked.abort.clone()).await;
        self.state.lock().rhythm.answered(started.elapsed(), answer.is_ok());
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
        let config = self.services.settings.current();
        let completion = &config.completion;
        let rules = self.quotable(uri, &config);
        let mut guard = self.state.lock();
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
        let is_wanted = config.completes(&document.path, &document.language);
        if trigger == Trigger::Automatic && !is_wanted {
            let now_ms = self.services.clock.elapsed_ms();
            let events = state.tracker.supersede(now_ms);
            self.conclude(state, events, None, now_ms);
            return Ok(Begun::Silent);
        }
        let now_ms = self.services.clock.elapsed_ms();
        let here = (uri.to_owned(), document.text.char_to_line(cursor));
        let place = Place {
            uri: uri.to_owned(),
            path: document.path.clone(),
            language: document.language.clone(),
            text: document.text.clone(),
            cursor,
            position,
            around,
            idle_ms: state.last_edit_ms.map_or(u64::MAX, |last| now_ms.saturating_sub(last)),
            rejects_here: if state.rejects.place == here { state.rejects.count } else { 0 },
        };
        let mut draws = place.draws(state.asked);
        let (adapter, arm) = self.services.adapters.draw_arm(draws.random(), config.learning.trial);
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
        let waits = completion.adaptive_debounce && trigger == Trigger::Automatic;
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
            wait: if waits && self.services.clock.passes() { wait } else { Duration::ZERO },
            trigger,
            arm,
            draw,
            window: terms.window,
            request: place.request(prompt, adapter, extent, trigger, &config),
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
        let likely =
            rest.probability() >= self.services.settings.current().completion.min_probability;
        let seen = |recent| place.surroundings(rest.text, &rest.logprobs, stop, recent);
        likely && draw < f64::from(ask_gate(&self.services, seen).propensity)
    }

    /// Records what the engine did and makes offers of it, if the user is still there.
    fn finish(&self, asked: Asked, generated: Generated) -> Result<Vec<Suggestion>, SessionError> {
        let answered = Answered::new(&self.services, &asked, &generated);
        let place = &asked.place;
        let mut state = self.state.lock();
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
        let now_ms = self.services.clock.elapsed_ms();
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
        self.services.recorder.record(events);
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
                EventKind::Replacement { id, tokens: self.services.engine.tokenize(&text) }
            }
        });
        self.services.recorder.record(events.collect());
    }

    /// # Errors
    /// Nothing is recorded of this offer, so that it was taken is not either.
    pub fn accepted(&self, id: &str) -> anyhow::Result<()> {
        self.track(|tracker, _| tracker.accepted(id));
        self.services.recorder.record_late_acceptance(id)
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
        let state = self.state.lock();
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
        self.look(&mut self.state.lock(), self.services.clock.elapsed_ms());
    }

    /// Records under the session's lock, so that the log has its messages' order.
    fn track(&self, step: impl FnOnce(&mut Tracker, u64) -> Vec<EventKind>) {
        let mut state = self.state.lock();
        let now_ms = self.services.clock.elapsed_ms();
        let events = step(&mut state.tracker, now_ms);
        self.conclude(&mut state, events, None, now_ms);
    }

    /// Lets go of the code that prompts quote: changes, and documents other than the
    /// open ones. What is on screen stays, and can be taken.
    pub fn forget(&self) {
        let mut state = self.state.lock();
        state.prompts = PromptBuilder::default();
        state.unshown = None;
        state.forgets += 1;
    }

    /// Looks no further at what becomes of these in the document. One that is on
    /// screen can still be taken; what is written instead is not told.
    pub fn forget_offers(&self, offers: &HashSet<OfferId>) {
        let mut state = self.state.lock();
        state.aftermath.forget(offers);
        let is_forgotten = |id: &&OfferId| offers.contains(*id) || state.forgotten.contains(*id);
        state.forgotten = state.tracker.live().filter(is_forgotten).cloned().collect();
    }

    /// The editor has gone: nothing it was offered can be judged any more.
    pub fn end(&self) {
        {
            let mut state = self.state.lock();
            state.abort_newest();
            let now_ms = self.services.clock.elapsed_ms();
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
mod tests;
