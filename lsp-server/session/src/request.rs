//! A completion that is asked for: where, by what, and what the engine is to do. Some requests are
//! answered from what is on screen or from what was computed before, without the engine.

use super::{Completed, Computing, Entry, Selected, SessionError, State, Suggestion, Turn};
use crate::gate::ask_gate;
use crate::other_code::limits;
use completion::auto_closed::is_between_braces;
use completion::debounce::CursorKind;
use completion::document::{Position, Source};
use completion::indentation::{Indentation, is_indented, is_tabbed};
use completion::postprocess::{NearbyText, breaks_line, closes_again, replaced_suffix};
use completion::prompt::{FimPrompt, Window};
use completion::stop_rule::{MultilineSetting, StopRule};
use engine::{Request, is_too_unlikely};
use feedback::event::{AdapterVersion, ArmRecord, Completion, OfferId, Sampling, StopReason};
use offers::{Offer, Offers, TextBefore};
use policy::gate::Recent;
use policy::gate::features::Surroundings;
use privacy::QuotableFiles;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ropey::Rope;
use services::Services;
use services::reason::Reason;
use services::settings::Current;
use settings::Config;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Offers in addition to the first, if the user invokes the request.
pub const ALTERNATIVES: usize = 2;

/// The time that a prompt's other code may add to an answer while the user types, and to one that
/// the user waits for. Code that takes longer is computed while the user rests.
const CONTEXT_WAIT: Duration = Duration::from_millis(100);
const CONTEXT_WAIT_INVOKED: Duration = Duration::from_secs(1);

/// What made the client ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Typing.
    Automatic,
    /// The user invoked it. Such a request is always answered.
    Invoked,
}

/// Where a completion is asked for, and what the user did there.
pub struct CursorContext {
    pub uri: String,
    pub path: String,
    pub language: String,
    /// The text as it is asked about, with the entry that is chosen in the suggestion list; a
    /// clone costs nothing.
    pub text: Rope,
    /// In characters of `text`.
    pub cursor: usize,
    /// The text that the prompt is made of, and the cursor in it. For a cell of a notebook it has
    /// the other cells too.
    pub read: (Rope, usize),
    /// Where the cursor is in the editor's text. A client may have asked for a column that is not
    /// there.
    pub position: Position,
    /// The entry of the suggestion list behind which the offer stands.
    pub entry: Option<Entry>,
    /// What an offer is indented by. The model's own way stays if this is nothing.
    pub indentation: Option<Indentation>,
    pub around: NearbyText,
    /// Since the last edit, in milliseconds.
    pub idle_ms: u64,
    /// Offers that the user rejected on this line.
    pub rejects_here: u32,
}

impl CursorContext {
    pub(super) fn of(
        state: &State,
        uri: &str,
        position: Position,
        now_ms: u64,
    ) -> Result<CursorContext, SessionError> {
        let document = state.documents.get(uri).ok_or_else(|| state.not_open(uri))?;
        let cursor = document.offset(position, state.editor.encoding)?;
        let line = document.text.char_to_line(cursor);
        Ok(CursorContext {
            uri: uri.to_owned(),
            path: document.path.clone(),
            language: document.language.clone(),
            text: document.text.clone(),
            cursor,
            read: state
                .notebooks
                .around(&state.documents, uri, cursor)
                .unwrap_or_else(|| (document.text.clone(), cursor)),
            position: document.position(cursor, state.editor.encoding),
            entry: None,
            indentation: indentation(state, uri, &document.text),
            around: NearbyText {
                keeps_marks: state.editor.keeps_marks,
                ..NearbyText::of(&document.text, cursor)
            },
            idle_ms: state.debounce.idle_ms(now_ms),
            rejects_here: state.offers.rejects_on(uri, line),
        })
    }

    /// The place behind a text, as if that stood at the cursor already.
    fn with(mut self, inserted: &str) -> CursorContext {
        let length = inserted.chars().count();
        let (read, read_cursor) = &mut self.read;
        for (text, cursor) in [(read, read_cursor), (&mut self.text, &mut self.cursor)] {
            text.insert(*cursor, inserted);
            *cursor += length;
        }
        let keeps_marks = self.around.keeps_marks;
        self.around = NearbyText { keeps_marks, ..NearbyText::of(&self.text, self.cursor) };
        self
    }

    /// The same place as if the chosen entry stood there already.
    fn behind(self, entry: Entry) -> CursorContext {
        let mut behind = self.with(&entry.rest);
        // The editor shows only offers for exactly the range of its entry.
        behind.around.keeps_marks = true;
        behind.entry = Some(entry);
        behind
    }

    /// Returns where an offer's text goes into the document, in characters.
    pub fn start(&self) -> usize {
        self.cursor - self.rest_of_entry().chars().count()
    }

    /// Returns what stands before an answer in the text of its offer.
    pub fn rest_of_entry(&self) -> &str {
        self.entry.as_ref().map_or("", |entry| &entry.rest)
    }

    /// Returns true if the user rejected this answer on this line.
    pub fn was_rejected(&self, offers: &Offers, shown: &str) -> bool {
        let before = &self.around.line_before;
        let before = before.strip_suffix(self.rest_of_entry()).unwrap_or(before);
        let line = self.text.char_to_line(self.start());
        offers.was_rejected(&self.uri, line, before, &self.offered(shown))
    }

    /// The offer of a completion at this place. Its text is empty if nothing is shown.
    pub fn offer(&self, completion: &Completion) -> Offer {
        Offer {
            id: completion.id.clone(),
            uri: self.uri.clone(),
            start: self.start(),
            text: self.offered(&completion.shown),
            before: TextBefore::of(&self.text, self.start()),
            healing: completion.healing.clone(),
            entry_chars: self.rest_of_entry().chars().count(),
        }
    }

    /// The text of an offer in the document, with the entry before it, the line break that a
    /// closing brace behind it needs, and the document's own line breaks. It is empty if nothing is
    /// shown.
    fn offered(&self, shown: &str) -> String {
        if shown.is_empty() {
            return String::new();
        }
        let NearbyText { line_before, rest_of_line, .. } = &self.around;
        let indented = self.indentation.as_ref().map(|level| level.indent(shown, line_before));
        let shown = indented.as_deref().unwrap_or(shown);
        let mut text = format!("{}{shown}", self.rest_of_entry());
        if shown.contains('\n') && is_between_braces(line_before, rest_of_line) {
            // The closing brace goes onto a line of its own.
            let blanks = line_before.len() - line_before.trim_start().len();
            text.push('\n');
            text.push_str(&line_before[..blanks]);
        }
        if self.around.has_crlf { text.replace('\n', "\r\n") } else { text }
    }

    /// Returns what the gate sees of an answer here.
    pub fn surroundings<'a>(
        &'a self,
        text: &'a str,
        logprobs: &'a [f32],
        stop: StopReason,
        recent: Recent,
    ) -> Surroundings<'a> {
        Surroundings {
            logprobs,
            text,
            stop,
            line_before: &self.around.line_before,
            rest_of_line: &self.around.rest_of_line,
            language: &self.language,
            idle_ms: self.idle_ms,
            rejects_here: self.rejects_here,
            recent,
        }
    }

    /// Random draws that depend on the place alone and on how many requests came before. A replay
    /// draws the same, and a user who comes back to a place gets other ones.
    pub fn draws(&self, before: u64) -> StdRng {
        StdRng::seed_from_u64(self.seed() ^ before.rotate_right(16))
    }

    fn seed(&self) -> u64 {
        (self.text.len_chars() as u64) << 32 | self.cursor as u64
    }

    fn sampling(&self, temperature: f32) -> Sampling {
        if temperature == 0.0 {
            return Sampling::GREEDY;
        }
        Sampling { temperature, seed: self.seed() }
    }

    /// Returns what the engine is to do.
    pub fn request(
        &self,
        prompt: FimPrompt,
        adapter: AdapterVersion,
        stop_rule: StopRule,
        trigger: Trigger,
        config: &Config,
    ) -> Request {
        Request {
            prompt,
            adapter,
            sampling: self.sampling(config.lab.temperature),
            max_tokens: config.lab.max_tokens,
            stop_rule,
            budget: Duration::from_millis(config.lab.budget_ms),
            // Whoever invokes it wants to see how the text continues, however likely that is.
            min_token_probability: match trigger {
                Trigger::Automatic => config.lab.min_token_probability,
                Trigger::Invoked => 0.0,
            },
            alternatives: if trigger == Trigger::Invoked { ALTERNATIVES } else { 0 },
            context_wait: match trigger {
                Trigger::Automatic => CONTEXT_WAIT,
                Trigger::Invoked => CONTEXT_WAIT_INVOKED,
            },
        }
    }
}

/// What a client asks, with the settings that hold until it is answered.
pub struct ClientRequest<'a> {
    pub uri: &'a str,
    pub position: Position,
    pub trigger: Trigger,
    pub selected: Option<Selected>,
    pub settings: Arc<Current>,
}

/// A request that has arrived.
pub enum Arrived {
    /// The answer is known already, as most are while the user types along.
    Answered(Completed),
    /// The engine may be asked.
    Here(Box<ArrivedRequest>),
}

/// Where a request is, what is on screen there, and what was drawn for it.
pub struct ArrivedRequest {
    context: CursorContext,
    trigger: Trigger,
    pub settings: Arc<Current>,
    live: LiveOffer,
    adapter: AdapterVersion,
    arm: Option<ArmRecord>,
    /// Uniform in [0, 1).
    draw: f64,
    /// How often the session had forgotten when the request came.
    forgets: u64,
    /// What its prompt may quote, if the rules allow it.
    pub sources: HashSet<Source>,
}

/// A completion under way.
pub struct PendingRequest {
    pub abort: Arc<AtomicBool>,
    /// How often the session had been told to forget by then.
    pub forgets: u64,
    pub arrived: Instant,
    /// Before the engine is asked.
    pub wait: Duration,
    /// How long the engine took.
    pub took: Duration,
    pub context: CursorContext,
    pub trigger: Trigger,
    /// The settings when it came.
    pub settings: Arc<Current>,
    pub arm: Option<ArmRecord>,
    /// Uniform in [0, 1): what the gate decides by.
    pub draw: f64,
    pub window: Window,
    pub request: Request,
}

/// How a request begins.
pub enum Start {
    /// The answer is known already. It is nothing if the user wants none here, or if none is
    /// worth showing.
    Answered(Completed),
    /// The engine is asked.
    Pending(Box<PendingRequest>),
}

/// What is on screen at the cursor when a request comes.
struct LiveOffer {
    /// The live offer fits what stands around the cursor.
    continues: bool,
    /// It is a single line.
    is_line: bool,
}

impl State {
    /// Finds where a request is and what is on screen there, and draws what it is decided by.
    pub(super) fn arrive(
        &mut self,
        turn: &mut Turn,
        asked: ClientRequest,
    ) -> Result<Arrived, SessionError> {
        let ClientRequest { uri, position, trigger, selected, settings } = asked;
        let services = turn.services;
        self.abort_current();
        let context = CursorContext::of(self, uri, position, turn.now_ms)?;
        let context = match behind_entry(self, context, selected)? {
            Ok(context) => context,
            Err(reason) => return Ok(Arrived::Answered(Completed::nothing(reason))),
        };
        let silence = silence(services, &settings, &context);
        let silence = silence.filter(|_| trigger == Trigger::Automatic);
        // What the user asked for by a key stays while it is typed along with.
        if silence.is_some() && !self.offers.is_asked_for() {
            self.supersede(turn);
        }
        let (live, known) = answer_from_live_offer(self, &context, trigger);
        if let Some(suggestions) = known {
            let reason = Reason::TypedThrough;
            return Ok(Arrived::Answered(Completed { suggestions, reason }));
        }
        if let Some(reason) = silence {
            self.supersede(turn);
            return Ok(Arrived::Answered(Completed::nothing(reason)));
        }
        let mut place = self.drawn(services, context, trigger, settings, live);
        if trigger == Trigger::Automatic
            && let Some(reason) = self.still_suppressed(turn, &place)
        {
            self.supersede(turn);
            return Ok(Arrived::Answered(Completed::nothing(reason)));
        }
        place.sources = self.sources(services, uri, &place.settings);
        Ok(Arrived::Here(Box::new(place)))
    }

    /// Finds where an automatic request is whose client asks as if a text was taken at the cursor
    /// that is not. What is on screen stays. Returns `None` if nothing is wanted there.
    pub(super) fn arrive_as_if(
        &mut self,
        turn: &mut Turn,
        (uri, position): (&str, Position),
        taken: &str,
        settings: Arc<Current>,
    ) -> Result<Option<ArrivedRequest>, SessionError> {
        let services = turn.services;
        self.abort_current();
        let context = CursorContext::of(self, uri, position, turn.now_ms)?.with(taken);
        if silence(services, &settings, &context).is_some() {
            return Ok(None);
        }
        let live = LiveOffer { continues: true, is_line: false };
        let mut place = self.drawn(services, context, Trigger::Automatic, settings, live);
        place.sources = self.sources(services, uri, &place.settings);
        Ok(Some(place))
    }

    /// A request with what it is decided by, which is drawn here.
    fn drawn(
        &self,
        services: &Services,
        context: CursorContext,
        trigger: Trigger,
        settings: Arc<Current>,
        live: LiveOffer,
    ) -> ArrivedRequest {
        let mut draws = context.draws(self.asked);
        let (adapter, arm) = services.adapters.draw_arm(draws.random(), settings.lab.trial);
        ArrivedRequest {
            context,
            trigger,
            settings,
            live,
            adapter,
            arm,
            draw: draws.random(),
            forgets: self.forgets,
            sources: HashSet::new(),
        }
    }

    /// Returns why an answer was suppressed whose rest is known here and is not worth showing
    /// either. If the rest may be worth it, the engine is asked how likely it is exactly.
    fn still_suppressed(&self, turn: &Turn, place: &ArrivedRequest) -> Option<Reason> {
        let ArrivedRequest { context, settings, .. } = place;
        let suppressed = self.offers.suppressed().filter(|last| last.adapter == place.adapter)?;
        let rest = suppressed.rest(&context.uri, context.start())?;
        let (logprob, tokens) = (rest.logprobs.iter().sum(), rest.logprobs.len());
        let is_likely = !is_too_unlikely(logprob, tokens, settings.lab.min_token_probability);
        let stop = suppressed.stop;
        let seen = |recent| context.surroundings(rest.text, &rest.logprobs, stop, recent);
        let gate = ask_gate(turn.services, settings, &context.language, seen);
        let may_be_worth_it = is_likely && place.draw < f64::from(gate.propensity);
        (!may_be_worth_it && context.entry.is_none()).then(|| self.why_suppressed.clone())
    }

    /// Lays out the prompt, and makes this request the session's current one.
    pub(super) fn prepare(
        &mut self,
        turn: &mut Turn,
        place: ArrivedRequest,
        rules: &QuotableFiles,
    ) -> Result<PendingRequest, SessionError> {
        let ArrivedRequest {
            context, trigger, settings, live, adapter, arm, draw, forgets, ..
        } = place;
        let (services, completion) = (turn.services, &settings.completion);
        let stand = CursorKind::behind(&context.around.line_before);
        let wait = self.debounce.wait(stand, context.rejects_here);
        let wait = completion.eagerness_in(&context.language).wait(wait);
        let waits = settings.lab.adaptive_debounce
            && trigger == Trigger::Automatic
            && !self.is_at_rest(&context);
        let not_open = || SessionError::NotOpen { uri: context.uri.clone() };
        let stop_rule = if live.is_line {
            // Whoever turns to others of a line compares lines, and wants them soon.
            StopRule::LINE
        } else {
            stop_rule(&context.text, context.cursor, &context.language, trigger, &settings)
        };
        let limits = limits(services, &settings, rules);
        // The prompt is that of the text as it is asked about.
        let document = self.documents.get_mut(&context.uri).ok_or_else(not_open)?;
        let real = std::mem::replace(&mut document.text, context.text.clone());
        let prompt = self.prompt(&context.uri, context.cursor, &limits);
        if let Some(document) = self.documents.get_mut(&context.uri) {
            document.text = real;
        }
        let prompt = prompt.ok_or_else(not_open)?;
        let mut request = context.request(prompt, adapter, stop_rule, trigger, &settings);
        // A rehearsal's clock does not advance, so nobody waits there.
        let passes = services.clock.passes();
        if !passes {
            request.context_wait = Duration::MAX;
        }
        let abort = Arc::new(AtomicBool::new(false));
        self.current = Some(Computing { uri: context.uri.clone(), abort: abort.clone() });
        self.asked += 1;
        if !live.continues {
            self.supersede(turn);
        }
        Ok(PendingRequest {
            abort,
            // What was found for the prompt since may have been forgotten in the meantime.
            forgets,
            arrived: Instant::now(),
            wait: if waits && passes { wait } else { Duration::ZERO },
            took: Duration::ZERO,
            trigger,
            arm,
            draw,
            window: limits.window,
            request,
            context,
            settings,
        })
    }

    /// Notes that the engine gave no answer to a request.
    pub(super) fn fail(&mut self, asked: &PendingRequest) {
        self.debounce.answered(asked.took, false);
        self.end_request(asked);
    }

    /// Returns whether the user reads rather than types here: behind a text that was just accepted,
    /// or on a line that was just begun. Nobody has to wait there for the next key.
    pub(super) fn is_at_rest(&self, context: &CursorContext) -> bool {
        let (uri, start) = (&context.uri, context.start());
        let is_accepted = self.offers.was_accepted_until(uri, start);
        let NearbyText { line_before, rest_of_line, .. } = &context.around;
        let is_begun = line_before.trim().is_empty() && rest_of_line.trim().is_empty();
        is_accepted || (is_begun && context.rejects_here == 0)
    }
}

/// Returns why nothing is completed here as the user types, if that is so.
fn silence(services: &Services, settings: &Current, context: &CursorContext) -> Option<Reason> {
    let snoozed = services.snoozes.until(&context.path);
    let snoozed = snoozed.map(|until| Reason::Snoozed { until: until.sentence() });
    snoozed.or_else(|| settings.silence(&context.path, &context.language))
}

/// Returns the indentation of a text of tabs, or else the editor's, if no line says otherwise.
fn indentation(state: &State, uri: &str, text: &Rope) -> Option<Indentation> {
    if is_tabbed(text) {
        return Some(Indentation::tabs());
    }
    let (of, editors) = state.editor.indentation.as_ref()?;
    (of == uri && !is_indented(text)).then(|| editors.clone())
}

/// The place of a request behind the chosen entry of the suggestion list, if the list is open. The
/// inner error is why nothing can be offered there.
fn behind_entry(
    state: &State,
    context: CursorContext,
    selected: Option<Selected>,
) -> Result<Result<CursorContext, Reason>, SessionError> {
    let Some(selected) = selected else { return Ok(Ok(context)) };
    let document = state
        .documents
        .get(&context.uri)
        .ok_or_else(|| SessionError::NotOpen { uri: context.uri.clone() })?;
    let entry = selected.at(document, context.cursor, state.editor.encoding)?;
    Ok(entry.map(|entry| context.behind(entry)).ok_or(Reason::EntrySpelledOtherwise))
}

/// The answer from what is on screen, if the user has typed along with it. An automatic request
/// continues the live offer, and an invoked one with all that the user can turn to.
fn answer_from_live_offer(
    state: &mut State,
    context: &CursorContext,
    trigger: Trigger,
) -> (LiveOffer, Option<Vec<Suggestion>>) {
    let (uri, cursor, around) = (&context.uri, context.start(), &context.around);
    let rest_of_line = &around.rest_of_line;
    let live = state.offers.rest_at(uri, &context.text, cursor).filter(|(id, text)| {
        let fits_entry = text.starts_with(context.rest_of_entry());
        fits_entry
            && !state.offers.is_forgotten(id)
            && !closes_again(text, around)
            && !breaks_line(text, rest_of_line)
    });
    let found = LiveOffer {
        continues: live.is_some(),
        is_line: live.as_ref().is_some_and(|(_, text)| !text.contains('\n')),
    };
    let known = match trigger {
        Trigger::Automatic => live.map(|live| vec![live]),
        Trigger::Invoked if found.continues => state.offers.rests_at(uri, &context.text, cursor),
        Trigger::Invoked => None,
    };
    let offers = &mut state.offers;
    let mut suggest = |one| suggestion(offers, one, context);
    (found, known.map(|known| known.into_iter().map(&mut suggest).collect()))
}

/// Returns what remains of an offer, as the client gets it.
pub(super) fn suggestion(
    offers: &mut Offers,
    (id, text): (OfferId, String),
    context: &CursorContext,
) -> Suggestion {
    let marks = replaced_suffix(&text, &context.around);
    let (position, entry) = (context.position, context.entry.clone());
    offers.told(&id, marks, entry.as_ref().map_or("", |entry| &entry.typed));
    Suggestion { id, position, replaces: marks.len() as u32, text, entry }
}

/// Returns how far the answer to a request may reach.
pub fn stop_rule(
    text: &Rope,
    cursor: usize,
    language: &str,
    trigger: Trigger,
    config: &Config,
) -> StopRule {
    let invoked = trigger == Trigger::Invoked;
    let (multiline, max_lines) = (config.completion.multiline, config.lab.max_lines);
    let setting = MultilineSetting { multiline, max_lines };
    StopRule::at(text, cursor, language, invoked, setting)
}
