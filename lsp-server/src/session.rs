//! One editor connection: its documents, its live offer, its newest request.
//!
//! Every message is taken in order under one lock, and none awaits before it
//! has been; only the engine's answer is waited for, with the lock free.

use crate::aftermath::{Aftermath, Finding};
use crate::broken::broken;
use crate::config::{CompletionConfig, Config};
use crate::daemon::{Daemon, lock};
use crate::document::{Document, Edit, Encoding, PastTheEnd, Position};
use crate::engine::{Answer, EngineError, Generated, Request};
use crate::extent::{Extent, Setting};
use crate::gate::features::{Surroundings, features};
use crate::gate::{Gate, Recent};
use crate::imports;
use crate::postprocess::{Around, breaks_line, repeats_closing, shown_lines};
use crate::privacy::{self, Nearby};
use crate::prompt::{FimPrompt, Window};
use crate::prompts::{self, Prompts};
use crate::rhythm::{Rhythm, Stand};
use crate::tracker::{Judgement, Offer, Tracker};
use crate::unshown::{Rest, Unshown};
use feedback::event::{
    ArmRecord, Completion, Decision, EventKind, GateRecord, OfferId, Outcome, Sampling, Timing,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
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
}

/// How often the user turned an offer down on the line that is being written.
#[derive(Default)]
struct RejectsHere {
    place: (String, usize),
    count: u32,
}

/// What made the client ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Typing.
    Automatic,
    /// The user, by hand: always answered.
    Invoked,
}

/// Offers beside the first, where the user asks by hand.
const ALTERNATIVES: usize = 2;

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
    /// Before the engine is asked.
    wait: Duration,
    uri: String,
    path: String,
    language: String,
    cursor: usize,
    position: Position,
    around: Around,
    trigger: Trigger,
    idle_ms: u64,
    rejects_here: u32,
    arm: Option<ArmRecord>,
    /// Uniform in [0, 1): what the gate decides by.
    draw: f64,
    /// The text as it was asked about; a clone costs nothing.
    text: Rope,
    window: Window,
    request: Request,
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
        let terms = self.terms(&config);
        if terms.context_chars == 0 {
            return;
        }
        let document = lock(&self.state).documents.get(uri).cloned();
        let Some(document) = document else { return };
        for file in imports::read(&document.path, &document.text) {
            lock(&self.state).prompts.add(&file, &terms);
        }
    }

    pub fn close(&self, uri: &str) {
        let now_ms = self.daemon.clock.now_ms();
        let mut state = lock(&self.state);
        let events = state.tracker.closed(uri, now_ms);
        self.conclude(&mut state, events, None, now_ms);
        if let Some(document) = state.documents.remove(uri) {
            state.prompts.close(uri, &document, &self.terms(&self.daemon.config()));
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
        for (range, text) in changes {
            let State { documents, tracker, unshown, encoding, aftermath, prompts, .. } =
                &mut *state;
            let document = documents
                .get_mut(uri)
                .ok_or_else(|| SessionError::NotOpen { uri: uri.to_owned() })?;
            document.version = version;
            prompts.visit(document);
            let cursor = tracker.cursor(uri);
            let edit = document.apply(range, text, *encoding);
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
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let document = state
            .documents
            .get(uri)
            .ok_or_else(|| SessionError::NotOpen { uri: uri.to_owned() })?;
        let cursor = document.offset(position, state.encoding)?;
        if state.newest.is_none() && self.daemon.completes(&document.path, &document.language) {
            state.prompts.visit(document);
            let terms = self.terms(&config);
            if let Some(prompt) = state.prompts.at(&state.documents, uri, cursor, &terms) {
                self.daemon.engine.warm(as_set(&config.completion, prompt));
            }
        }
        Ok(())
    }

    fn terms<'a>(&'a self, config: &'a Config) -> prompts::Terms<'a> {
        let reads_files = self.daemon.engine.info().reads_files;
        prompts::Terms {
            window: prompts::window(&config.completion),
            context_chars: if reads_files { config.completion.context_chars } else { 0 },
            privacy: &self.daemon.privacy,
            ignore: &config.privacy.ignore,
        }
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
            !repeats_closing(text, rest_of_line) && !breaks_line(text, rest_of_line)
        });
        let goes_on = live.is_some();
        let beside_a_line = live.as_ref().is_some_and(|(_, text)| !text.contains('\n'));
        let known = match trigger {
            Trigger::Automatic => live.map(|live| vec![live]),
            Trigger::Invoked if goes_on => state.tracker.continuations(uri, cursor),
            Trigger::Invoked => None,
        };
        if let Some(known) = known {
            let known = known.into_iter().map(|(id, text)| Suggestion { id, position, text });
            return Ok(Begun::Known(known.collect()));
        }
        let is_wanted = self.daemon.completes(&document.path, &document.language);
        if trigger == Trigger::Automatic && !is_wanted {
            let now_ms = self.daemon.clock.now_ms();
            let events = state.tracker.supersede(now_ms);
            self.conclude(state, events, None, now_ms);
            return Ok(Begun::Silent);
        }
        let terms = self.terms(&config);
        let abort = Arc::new(AtomicBool::new(false));
        let now_ms = self.daemon.clock.now_ms();
        let mut draws = draws(&document.text, cursor, state.asked);
        let (adapter, arm) = self.daemon.draw_arm(draws.random());
        let line = document.text.char_to_line(cursor);
        let here = (uri.to_owned(), line);
        let rejects_here = if state.rejects.place == here { state.rejects.count } else { 0 };
        let (idle_ms, draw) = (now_ms.saturating_sub(state.last_edit_ms), draws.random());
        let unshown = state.unshown.as_ref().filter(|unshown| unshown.adapter == adapter);
        if trigger == Trigger::Automatic
            && let Some(unshown) = unshown
            && let Some(rest) = unshown.rest(uri, cursor)
            && !self.may_be_worth_it(&rest, draw, |recent| Surroundings {
                logprobs: &rest.logprobs,
                text: rest.text,
                stop: unshown.stop,
                line_before: &around.line_before,
                rest_of_line: &around.rest_of_line,
                language: &document.language,
                idle_ms,
                rejects_here,
                recent,
            })
        {
            let events = state.tracker.supersede(now_ms);
            self.conclude(state, events, None, now_ms);
            return Ok(Begun::Silent);
        }
        let wait = state.rhythm.wait(Stand::behind(&around.line_before), rejects_here);
        let waits = completion.follow_rhythm && trigger == Trigger::Automatic;
        let prompt = state.prompts.at(&state.documents, uri, cursor, &terms);
        let prompt = prompt.map(|prompt| as_set(completion, prompt));
        let extent = match beside_a_line {
            // Whoever turns to others of a line compares lines, and soon.
            true => Extent::LINE,
            false => extent(document, cursor, trigger, completion),
        };
        let request = Request {
            prompt: prompt.ok_or_else(|| SessionError::NotOpen { uri: uri.to_owned() })?,
            adapter,
            sampling: sampling(completion.temperature, &document.text, cursor),
            max_tokens: completion.max_tokens,
            extent,
            budget: Duration::from_millis(completion.budget_ms),
            // Who asks by hand wants to see how it goes on, sure or not.
            min_probability: match trigger {
                Trigger::Automatic => completion.min_probability,
                Trigger::Invoked => 0.0,
            },
            alternatives: if trigger == Trigger::Invoked { ALTERNATIVES } else { 0 },
        };
        let asked = Asked {
            abort: abort.clone(),
            arrived: Instant::now(),
            // In a rehearsal nobody's time passes.
            wait: if waits && self.daemon.clock.passes() { wait } else { Duration::ZERO },
            uri: uri.to_owned(),
            path: document.path.clone(),
            language: document.language.clone(),
            cursor,
            position,
            around,
            trigger,
            idle_ms,
            rejects_here,
            arm,
            draw,
            text: document.text.clone(),
            window: terms.window,
            request,
        };
        state.newest = Some(abort);
        state.asked += 1;
        if !goes_on {
            let events = state.tracker.supersede(now_ms);
            self.conclude(state, events, None, now_ms);
        }
        Ok(Begun::Asked(Box::new(asked)))
    }

    /// Records what the engine did and makes offers of it, if the user is still there.
    fn finish(&self, asked: Asked, generated: Generated) -> Result<Vec<Suggestion>, SessionError> {
        let may_store = self.may_store(&asked, &generated);
        let mut state = lock(&self.state);
        // An edit or a newer request has taken this one's place.
        let current = state.newest.take_if(|newest| Arc::ptr_eq(newest, &asked.abort));
        if current.is_none() {
            return Err(SessionError::Superseded);
        }
        // What is on screen comes first, and is not offered twice.
        let live = state.tracker.continuation(&asked.uri, asked.cursor);
        let live = live.filter(|_| asked.trigger == Trigger::Invoked);
        let goes_on = live.is_some();
        let position = asked.position;
        let suggestion = |(id, text)| Suggestion { id, position, text };
        let now_ms = self.daemon.clock.now_ms();
        let mut suggestions: Vec<_> = live.into_iter().map(suggestion).collect();
        let (mut events, mut offers) = (vec![], vec![]);
        for (index, answer) in generated.answers.iter().enumerate() {
            let completion = self.completion(&asked, &generated, answer, may_store);
            if index == 0 {
                state.unshown = unshown(&asked, answer, &completion);
            }
            let (id, text) = (completion.id.clone(), completion.shown.clone());
            let healing = completion.healing.clone();
            let is_known = suggestions.iter().any(|known| known.text == text);
            if is_known || suggestions.len() > ALTERNATIVES || (index > 0 && text.is_empty()) {
                continue;
            }
            events.push(EventKind::Completion(Box::new(completion)));
            let (uri, start) = (asked.uri.clone(), asked.cursor);
            if !text.is_empty() {
                offers.push(Offer { id: id.clone(), uri, start, text: text.clone(), healing });
                suggestions.push(Suggestion { id, position, text });
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
        let State { tracker, aftermath, documents, rejects, .. } = state;
        for Judgement { offer, outcome, standing } in tracker.take_judged() {
            let Offer { id, uri, start, text, healing } = offer;
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

    /// Whether an answer may be shown, and on what grounds.
    fn decide(&self, asked: &Asked, text: &str, answer: &Answer) -> Decision {
        let by_hand = asked.trigger == Trigger::Invoked;
        let healing = asked.request.prompt.healing.len();
        let generated = answer.offered().get(healing..).unwrap_or_default();
        let broken = broken(generated, text);
        let gate = (!text.is_empty()).then(|| {
            let new = answer.tokens.iter().skip(answer.healed);
            let logprobs: Vec<f32> = new.map(|token| token.logprob).collect();
            let mut record = self.ask_gate(|recent| Surroundings {
                logprobs: &logprobs,
                text,
                stop: answer.stop,
                line_before: &asked.around.line_before,
                rest_of_line: &asked.around.rest_of_line,
                language: &asked.language,
                idle_ms: asked.idle_ms,
                rejects_here: asked.rejects_here,
                recent,
            });
            if by_hand {
                record.propensity = 1.0;
            }
            let held_back = asked.draw >= f64::from(record.propensity);
            record.held_back = held_back.then(|| text.to_owned());
            record
        });
        Decision { by_hand, gate, arm: asked.arm, broken }
    }

    /// What the gate says of an offer among these surroundings.
    fn ask_gate<'a>(&self, seen: impl FnOnce(Recent) -> Surroundings<'a>) -> GateRecord {
        let config = self.daemon.config();
        let threshold = config.gate.threshold;
        let judge = |gate: &Gate| gate.judge(&features(&seen(gate.recent())), threshold);
        let mut record = self.daemon.ask_gate(judge);
        if !config.gate.enabled {
            record.propensity = 1.0;
        }
        record
    }

    /// False where what is left of an answer that was not shown is not to be shown
    /// either.
    fn may_be_worth_it<'a>(
        &self,
        rest: &Rest,
        draw: f64,
        seen: impl FnOnce(Recent) -> Surroundings<'a>,
    ) -> bool {
        let likely = rest.probability() >= self.daemon.config().completion.min_probability;
        likely && draw < f64::from(self.ask_gate(seen).propensity)
    }

    /// Whether the record of these answers, prompt and all, may be stored.
    fn may_store(&self, asked: &Asked, generated: &Generated) -> bool {
        let (privacy, config) = (&self.daemon.privacy, self.daemon.config());
        if privacy.ignores(&asked.path, &asked.language, &config.privacy.ignore) {
            return false;
        }
        let around = Nearby::of(&asked.text, asked.cursor, asked.window);
        let healing = asked.request.prompt.healing.len();
        // All that was generated, shown or not: its tokens are stored.
        !generated.answers.iter().any(|answer| {
            let new = answer.text.get(healing..).unwrap_or_default();
            around.holds_secret_with(&String::from_utf8_lossy(new))
        })
    }

    /// The record of one answer, and which part of it may be shown.
    fn completion(
        &self,
        asked: &Asked,
        generated: &Generated,
        answer: &Answer,
        may_store: bool,
    ) -> Completion {
        let healing = asked.request.prompt.healing.clone();
        let extent = &asked.request.extent;
        let offered = answer.offered();
        let length = shown_lines(offered, healing.len(), extent, &asked.around);
        let shown_from = healing.len().min(offered.len());
        let shown = String::from_utf8_lossy(&offered[shown_from..shown_from + length]);
        let decision = self.decide(asked, &shown, answer);
        let held_back = decision.gate.as_ref().is_some_and(|gate| gate.held_back.is_some());
        let ms = |time: Duration| time.as_secs_f32() * 1000.0;
        let id = self.daemon.next_offer_id();
        let context = asked.request.prompt.context.iter().flat_map(|context| &context.excerpts);
        let mut context: Vec<String> = context.map(|excerpt| excerpt.source.clone()).collect();
        context.retain(|path| *path != asked.path);
        context.dedup();
        Completion {
            id: if may_store { id } else { privacy::unstored(id) },
            path: asked.path.clone(),
            context,
            language: asked.language.clone(),
            model_sha256: self.daemon.model.sha256.clone(),
            adapter: asked.request.adapter,
            sampling: asked.request.sampling,
            prompt: generated.prompt.clone(),
            adapter_from: generated.adapter_from,
            healing,
            tokens: answer.tokens.clone(),
            stop: answer.stop,
            shown: if held_back { String::new() } else { shown.into_owned() },
            shown_from,
            timing: Timing {
                prompt_reused: generated.prompt_reused,
                prompt_evaluated: generated.prompt_evaluated,
                prompt_ms: ms(generated.prompt_time),
                decode_ms: ms(answer.decode_time),
                total_ms: ms(asked.arrived.elapsed()),
            },
            decision,
        }
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

/// What is known of an answer that was not worth showing, if it would be the same again.
fn unshown(asked: &Asked, answer: &Answer, completion: &Completion) -> Option<Unshown> {
    let gate = completion.decision.gate.as_ref();
    let held_back = gate.is_some_and(|gate| gate.held_back.is_some());
    let is_line = asked.request.extent.lines() == 1;
    let is_greedy = asked.request.sampling == Sampling::GREEDY;
    let known = (held_back || answer.given_up.is_some()) && is_line && is_greedy;
    let healing = completion.healing.len();
    known.then(|| Unshown::of(answer, healing, completion.adapter, &asked.uri, asked.cursor))
}

/// How far the answer to a request may reach.
fn extent(
    document: &Document,
    cursor: usize,
    trigger: Trigger,
    config: &CompletionConfig,
) -> Extent {
    let by_hand = trigger == Trigger::Invoked;
    let setting = Setting { multiline: config.multiline, max_lines: config.max_lines };
    Extent::at(&document.text, cursor, &document.language, by_hand, setting)
}

/// A prompt without what is switched off.
fn as_set(config: &CompletionConfig, mut prompt: FimPrompt) -> FimPrompt {
    if !config.token_healing {
        prompt = prompt.unhealed();
    }
    if !config.line_behind_middle {
        prompt = prompt.line_before_suffix();
    }
    prompt
}

/// Draws that depend on nothing but the place and on how many came before: a
/// replay draws the same, and who comes back to a place does not.
fn draws(text: &Rope, cursor: usize, before: u64) -> StdRng {
    StdRng::seed_from_u64(place_seed(text, cursor) ^ before.rotate_right(16))
}

fn place_seed(text: &Rope, cursor: usize) -> u64 {
    (text.len_chars() as u64) << 32 | cursor as u64
}

fn sampling(temperature: f32, text: &Rope, cursor: usize) -> Sampling {
    if temperature == 0.0 {
        return Sampling::GREEDY;
    }
    Sampling { temperature, seed: place_seed(text, cursor) }
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
    use crate::adapters::Entry;
    use crate::config::Config;
    use crate::daemon::ServedModel;
    use crate::engine::scripted::ScriptedEngine;
    use crate::engine::worker::EngineHandle;
    use crate::home::Home;
    use feedback::clock::ManualClock;
    use feedback::event::AdapterVersion;
    use feedback::log::MemoryLog;
    use std::time::Duration;

    const URI: &str = "file:///a.rs";
    const CURSOR: Position = Position { line: 1, column: 4 };
    const ANSWERS: &[&str] = &["call(x);", "call(y);", "close();"];
    const AUTOMATIC: Trigger = Trigger::Automatic;

    /// A session on `fn a() {\n    |\n}\n` whose engine always answers the same.
    async fn session(takes: Duration) -> (tempfile::TempDir, Arc<Session>) {
        session_with(ScriptedEngine { answers: ANSWERS, learned: None, takes }).await
    }

    async fn session_with(engine: ScriptedEngine) -> (tempfile::TempDir, Arc<Session>) {
        session_behind(false, engine).await
    }

    /// The same behind the gate, or not.
    async fn session_behind(
        gate: bool,
        engine: ScriptedEngine,
    ) -> (tempfile::TempDir, Arc<Session>) {
        let folder = tempfile::tempdir().unwrap();
        let model = ServedModel {
            name: "scripted".into(),
            architecture: "none".into(),
            path: "none.gguf".into(),
            sha256: "base".into(),
        };
        let engine = EngineHandle::start(move || Ok(engine)).unwrap();
        let (home, clock) = (Home::at(folder.path().into()), ManualClock::starting_at(0));
        home.create().unwrap();
        let log = Arc::new(MemoryLog::default());
        let mut config = Config::default();
        config.gate.enabled = gate;
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
        let (_folder, session) = session_behind(true, engine).await;
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
        let path = lock(&daemon.registry).adapter_file(1);
        std::fs::write(&path, "adapter").unwrap();
        let entry = Entry {
            version: 1,
            parent: 0,
            sha256: models::file::sha256(&path).unwrap(),
            base_sha256: "base".into(),
            created_at_ms: 0,
            labels: (0, 0),
            offers: None,
            forgotten: false,
            verdict: None,
            report: Default::default(),
        };
        assert_eq!(daemon.try_out(entry, |_| Ok(())).await.unwrap(), None);
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
