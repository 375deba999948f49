//! One story: a session, an editor that is connected to it, and a user. After every step, what the
//! server holds and records is compared with what the editor and the user have done.

use super::answers;
use super::buffer::{Buffer, Form, Report};
use super::lsp_text::Change;
use super::screen::{Screen, Side};
use super::steps::{Act, Habits, Step};
use crate::request::PendingRequest;
use crate::{CurrentRequest, Session};
use completion::document::Document;
use feedback::clock::{Clock, ManualClock};
use feedback::event::{EventKind, OfferId, Outcome};
use feedback::log::{EventLog, MemoryLog};
use fixtures::scripted;
use offers::REJECT_TIMEOUT_MS;
use ropey::Rope;
use settings::Config;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a check found. The text says what is wrong.
pub type Found = Result<(), String>;

/// How often what happened.
pub type Tally = BTreeMap<String, u64>;

/// A request whose answer has not come yet.
pub struct Held {
    pub request: Box<PendingRequest>,
    pub document: usize,
    /// Where it was asked for, in bytes.
    pub at: usize,
    /// The text is another one by now, or a newer request was made.
    pub is_outdated: bool,
}

pub struct Story {
    pub session: Arc<Session>,
    pub clock: Arc<ManualClock>,
    log: Arc<MemoryLog>,
    /// The events before this one were checked.
    seen: u64,
    pub habits: Habits,
    pub buffers: Vec<Buffer>,
    /// The document that the user writes in.
    pub active: usize,
    pub screen: Screen,
    pub held: Option<Held>,
    /// Accepted offers whose commands are still on their way.
    pub late: Vec<OfferId>,
    /// Offers whose accept command was sent in this step.
    pub commanded: Vec<OfferId>,
    pub tally: Tally,
    /// What was said and done, to be read where something is found.
    pub trace: Vec<String>,
    _home: tempfile::TempDir,
}

const CODE: &str = "import a\n\nfunction add(a, b) {\n    return a + b;\n}\n\nconst x = [1, 2];\n\
                    // größe 😀 of it\nif (x) {\n    add(x[0], 'b');\n}\n";

impl Story {
    pub async fn begin(habits: Habits) -> Story {
        let (home, paths) = fixtures::home();
        let mut config = Config::default();
        config.gate.enabled = habits.gates;
        config.completion.context_chars = Some(if habits.quotes { 1_000 } else { 0 });
        let clock = Arc::new(ManualClock::starting_at(0));
        let log = Arc::new(MemoryLog::default());
        let (engine, time) = (answers::engine(), clock.clone());
        let services = scripted::start(&paths, config, engine, time, log.clone()).await;
        let session = Arc::new(Session::new(services));
        session.use_encoding(habits.encoding);
        let line_break = habits.line_break;
        let buffers = vec![
            Buffer::new("file:///w/a/main.js", "/w/a/main.js", CODE, line_break),
            Buffer::new("file:///w/b/main.js", "/w/b/main.js", "let y;\n", "\n"),
            // Another address of the first one's file.
            Buffer::new("file:///w/a/%6Dain.js", "/w/a/main.js", "", line_break),
        ];
        let mut story = Story {
            session,
            clock,
            log,
            seen: 0,
            habits,
            buffers,
            active: 0,
            screen: Screen::default(),
            held: None,
            late: vec![],
            commanded: vec![],
            tally: Tally::new(),
            trace: vec![],
            _home: home,
        };
        story.open(0);
        story.open(1);
        story
    }

    /// Takes one step, and compares.
    pub async fn step(&mut self, step: Step) -> Found {
        self.count(format!("{:?}", step.act));
        self.trace.push(format!("{:?}", step.act));
        match step.act {
            Act::Type => self.type_key(step)?,
            Act::Along => self.type_along()?,
            Act::Enter => self.enter()?,
            Act::Backspace => self.backspace()?,
            Act::Delete => self.delete()?,
            Act::Undo => self.undo()?,
            Act::Move => self.move_caret(step),
            Act::SecondCursor => self.second_cursor(step)?,
            Act::Format => self.format(step)?,
            Act::Insert => self.insert_elsewhere(step)?,
            Act::Remove => self.remove_elsewhere(step)?,
            Act::Wild => self.change_at_wild_positions(step)?,
            Act::Save => self.save(step)?,
            Act::Reload => self.reload(step)?,
            Act::Toggle => self.open_or_close(step),
            Act::Switch => self.switch(step),
            Act::Ask | Act::Invoke => self.ask(step).await?,
            Act::AskWild => self.ask_at_wild_position(step).await?,
            Act::Hold => self.hold()?,
            Act::Answer => self.answer().await?,
            Act::Cancel => self.cancel(),
            Act::Accept => self.accept(step)?,
            Act::AcceptWord => self.accept_word(step)?,
            Act::LateCommand => self.late_command()?,
            Act::Escape => self.escape(step),
            Act::Turn => self.turn(step),
            Act::Show => self.show(),
            Act::Wait => self.wait(step),
            Act::Focus => self.focus(step),
            Act::Forget => self.session.forget(),
        }
        self.check()
    }

    pub fn count(&mut self, what: impl Into<String>) {
        *self.tally.entry(what.into()).or_default() += 1;
    }

    pub fn now_ms(&self) -> u64 {
        self.clock.elapsed_ms()
    }

    pub fn buffer(&self) -> &Buffer {
        &self.buffers[self.active]
    }

    pub fn open(&mut self, number: usize) {
        let buffer = &mut self.buffers[number];
        buffer.is_open = true;
        buffer.closed.clear();
        let document = Document {
            path: buffer.path.clone(),
            language: "javascript".into(),
            version: buffer.version,
            text: Rope::from_str(&buffer.text),
        };
        self.session.open(buffer.uri.clone(), document);
        self.left(number);
    }

    pub fn close(&mut self, number: usize) {
        self.buffers[number].is_open = false;
        self.session.close(&self.buffers[number].uri);
        self.left(number);
    }

    fn left(&mut self, number: usize) {
        self.screen.close(number);
        if let Some(held) = self.held.as_mut().filter(|held| held.document == number) {
            held.is_outdated = true;
        }
    }

    /// Returns what the server makes of this change, if the played user's screen can tell: `None`
    /// if the same two texts come about by another change on another side of the offer.
    fn as_server_sees(&self, number: usize, change: &Change, sent: &Change) -> Option<Change> {
        let old = &self.buffers[number].text;
        let mut seen = sent.reduced(old);
        let Some(ghost) = self.screen.ghost_in(number) else { return Some(seen) };
        let is_insertion = seen.start == seen.end && !seen.text.is_empty();
        if is_insertion && !seen.text.chars().all(|c| matches!(c, '\n' | '\r')) {
            let (new, at) = (change.applied_to(old), ghost.at);
            let end = at + seen.text.len();
            let is_boundary = new.is_char_boundary(at) && new.is_char_boundary(end);
            if is_boundary && old[..at] == new[..at] && old[at..] == new[end..] {
                let text = new[at..end].to_owned();
                seen = Change { start: at, end: at, text };
                return Some(seen);
            }
        }
        let length = seen.end - seen.start;
        let may_be_back = length > 0 && length <= ghost.item().done;
        if seen.text.is_empty() && may_be_back && old.is_char_boundary(ghost.at - length) {
            let back = Change { start: ghost.at - length, end: ghost.at, text: String::new() };
            if back.applied_to(old) == change.applied_to(old) {
                return Some(back);
            }
        }
        (ghost.side(&seen) == ghost.side(&change.reduced(old))).then_some(seen)
    }

    /// The user's hand makes a change, and the editor reports it.
    pub fn by_hand(&mut self, change: Change) -> Found {
        let reports = self.hand_change(change, self.habits.form);
        self.send(self.active, reports)
    }

    pub fn hand_change(&mut self, change: Change, form: Form) -> Vec<Report> {
        let number = self.active;
        let buffer = &self.buffers[number];
        let (sent, report) = buffer.report(&change, form, self.habits.encoding);
        let Some(seen) = self.as_server_sees(number, &change, &sent) else { return vec![] };
        self.screen.by_hand(number, &buffer.text, &seen);
        self.buffers[number].apply(&change);
        vec![report]
    }

    /// A tool makes a change, unless it is one at the offer that only a hand makes.
    pub fn tool_change(&mut self, number: usize, change: Change, form: Form) -> Vec<Report> {
        let buffer = &self.buffers[number];
        let (sent, report) = buffer.report(&change, form, self.habits.encoding);
        let seen = self.as_server_sees(number, &change, &sent);
        let Some(seen) = seen.filter(|seen| self.is_tools(number, seen)) else { return vec![] };
        self.screen.by_tool(number, &seen);
        self.buffers[number].apply(&change);
        vec![report]
    }

    /// Returns whether a change is one of a tool for everybody who sees nothing but the text.
    fn is_tools(&self, number: usize, change: &Change) -> bool {
        let old = &self.buffers[number].text;
        let Some(ghost) = self.screen.ghost_in(number) else { return true };
        if change.is_nothing() || ghost.side(change) != Side::Touching {
            return true;
        }
        let removed = &old[change.start..change.end];
        if removed.is_empty() && ghost.item().rest().starts_with(&change.text) {
            return false;
        }
        let is_blank = |text: &str| text.chars().all(char::is_whitespace);
        let is_next_to_it = change.start < ghost.start() || change.end > ghost.at;
        let respaces =
            !removed.is_empty() && is_blank(removed) && is_blank(&change.text) && is_next_to_it;
        let is_break = matches!(change.text.as_str(), "\n" | "\r\n" | "\r");
        let at_line_start = old[..change.start].is_empty() || old[..change.start].ends_with('\n');
        let puts_lines = at_line_start && change.text.ends_with('\n') && !is_blank(&change.text);
        let is_insertion = removed.is_empty() && change.start == ghost.start();
        let ends_before = change.end == ghost.start() && !removed.is_empty();
        respaces
            || (is_insertion && !ghost.is_begun() && puts_lines)
            || (is_break && change.start == old.len() && removed.is_empty())
            || (change.start < ghost.start() && change.end > ghost.at + ghost.item().replaces)
            || (ends_before && !change.text.is_empty())
    }

    /// Sends changes in one message.
    pub fn send(&mut self, number: usize, reports: Vec<Report>) -> Found {
        if reports.is_empty() {
            return Ok(());
        }
        if let Some(held) = &mut self.held {
            held.is_outdated = true;
        }
        self.trace.push(format!("  change in {number}: {reports:?}"));
        let buffer = &mut self.buffers[number];
        buffer.version += 1;
        let changed = self.session.change(&buffer.uri, buffer.version, reports);
        changed.map_err(|error| format!("a change was refused: {error}"))
    }

    /// The client does not wait for the answer any more.
    pub fn cancel(&mut self) {
        if let Some(held) = self.held.take() {
            drop(CurrentRequest { abort: held.request.abort.clone() });
        }
    }

    fn check(&mut self) -> Found {
        self.check_texts()?;
        for event in self.new_events() {
            if !matches!(event, EventKind::Completion(_)) {
                self.trace.push(format!("  recorded: {event:?}"));
            }
            if let EventKind::Outcome { id, outcome, .. } = event {
                self.check_outcome(&id, outcome)?;
            }
        }
        for id in std::mem::take(&mut self.commanded) {
            let outcome = self.screen.known(&id).outcome;
            if outcome != Some(Outcome::Accepted) && !privacy::is_unstored(&id) {
                return Err(format!("an accept command had no effect: {id} is {outcome:?}"));
            }
        }
        Ok(())
    }

    fn check_texts(&self) -> Found {
        let state = self.session.state.lock();
        for buffer in &self.buffers {
            let document = state.documents.get(&buffer.uri);
            if document.is_some() != buffer.is_open {
                return Err(format!("a document is open on one side only: {}", buffer.uri));
            }
            let Some(document) = document else { continue };
            if document.text != buffer.text.as_str() {
                let (server, editor) = (document.text.to_string(), &buffer.text);
                return Err(format!("the server's text is {server:?}, the editor's {editor:?}"));
            }
        }
        Ok(())
    }

    fn new_events(&mut self) -> Vec<EventKind> {
        let (mut events, from) = (vec![], self.seen);
        let visit = &mut |event: feedback::event::Event| {
            self.seen = event.seq + 1;
            events.push(event.kind);
            ControlFlow::Continue(())
        };
        self.log.scan(from, visit).expect("a log in memory");
        events
    }

    fn check_outcome(&mut self, id: &str, outcome: Outcome) -> Found {
        let name = format!("{outcome:?}");
        self.count(name.split([' ', '{']).next().unwrap_or_default());
        let now_ms = self.now_ms();
        let known = self.screen.known.get(id);
        let before = known.and_then(|known| known.outcome);
        if before.is_some_and(|before| !may_follow(before, outcome)) {
            return Err(format!("a second outcome: {id} was {before:?} and is {outcome:?}"));
        }
        if !self.screen.has_said(id, outcome, now_ms, REJECT_TIMEOUT_MS) {
            let known = self.screen.known.get(id);
            return Err(format!("the user did not say {outcome:?}: {id} is {known:?}"));
        }
        self.screen.known(id).outcome = Some(outcome);
        Ok(())
    }

    /// The editor ends. Every offer has met its fate by then.
    pub fn end(&mut self) -> Found {
        self.cancel();
        self.session.end();
        self.buffers.iter_mut().for_each(|buffer| buffer.is_open = false);
        self.check()?;
        let mut left = self
            .screen
            .known
            .iter()
            .filter(|(id, known)| known.outcome.is_none() && !privacy::is_unstored(id));
        left.next().map_or(Ok(()), |(id, known)| {
            Err(format!("an offer has no outcome: {id} is {known:?}"))
        })
    }
}

/// Returns true if a late report may change what was decided: of a part that was taken, of more, or
/// of the whole.
fn may_follow(before: Outcome, outcome: Outcome) -> bool {
    match (before, outcome) {
        (Outcome::Accepted, _) => false,
        (_, Outcome::Accepted) => true,
        // The first report of an offer says that those before it were not on screen.
        (Outcome::RejectedTimeout | Outcome::RejectedEdit, Outcome::Unseen) => true,
        (Outcome::PartlyAccepted { utf16 }, Outcome::PartlyAccepted { utf16: more }) => {
            utf16 < more
        }
        (before, Outcome::PartlyAccepted { .. }) => {
            !matches!(before, Outcome::TypedThrough { .. } | Outcome::RejectedEsc)
        }
        _ => false,
    }
}
