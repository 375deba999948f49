//! What the editor asks for and what the user does with an offer.

use super::buffer::Form;
use super::closers;
use super::lsp_text::{self, Change};
use super::screen::{Ghost, Item};
use super::steps::{Act, Step};
use super::story::{Found, Held, Story};
use crate::request::{Start, Trigger};
use crate::{CurrentRequest, SessionError, Suggestion};
use completion::document::{Encoding, Position};
use feedback::event::Outcome;

impl Story {
    fn caret_position(&self) -> Position {
        let buffer = self.buffer();
        lsp_text::position(&buffer.text, buffer.caret, self.habits.encoding)
    }

    /// A request takes the place of one that is still computed.
    fn outdate(&mut self) {
        if let Some(held) = &mut self.held {
            held.is_outdated = true;
        }
    }

    pub async fn ask(&mut self, step: Step) -> Found {
        let trigger = match step.act {
            Act::Invoke => Trigger::Invoked,
            _ => Trigger::Automatic,
        };
        let (position, at) = (self.caret_position(), self.buffer().caret);
        self.ask_at(position, at, trigger).await
    }

    async fn ask_at(&mut self, position: Position, at: usize, trigger: Trigger) -> Found {
        self.outdate();
        let uri = self.buffer().uri.clone();
        match self.session.complete(&uri, position, trigger, None).await {
            Ok(completed) => self.answered(self.active, at, completed.suggestions),
            Err(error) => Err(format!("a request that nothing disturbs failed: {error}")),
        }
    }

    /// A request behind the end of a line or of the text, within a character, or in a document that
    /// is not open.
    pub async fn ask_at_wild_position(&mut self, step: Step) -> Found {
        let encoding = self.habits.encoding;
        let trigger = if step.c.is_multiple_of(2) { Trigger::Invoked } else { Trigger::Automatic };
        if let Some(closed) = self.buffers.iter().find(|buffer| !buffer.is_open)
            && step.c.is_multiple_of(5)
        {
            let uri = closed.uri.clone();
            let asked =
                self.session.complete(&uri, Position { line: 0, column: 0 }, trigger, None).await;
            self.outdate();
            let is_right = matches!(asked, Err(SessionError::NotOpen { .. }));
            return is_right.then_some(()).ok_or(format!("a closed document: {asked:?}"));
        }
        let text = &self.buffer().text;
        let lines = lsp_text::lines(text).len();
        let line = (step.a % (lines + 2)) as u32;
        let column = *Step::pick(step.b, &[1, 3, 5, 9, 11, 99, u32::MAX]);
        let position = Position { line, column };
        let Some(at) = lsp_text::offset(text, position, encoding) else {
            let uri = self.buffer().uri.clone();
            let asked = self.session.complete(&uri, position, trigger, None).await;
            self.outdate();
            let is_right = matches!(asked, Err(SessionError::PastTheEnd(_)));
            return is_right.then_some(()).ok_or(format!("past the end: {asked:?}"));
        };
        self.buffers[self.active].put_caret(at);
        self.caret_moved();
        self.ask_at(position, at, trigger).await
    }

    /// A request whose answer takes a while.
    pub fn hold(&mut self) -> Found {
        self.cancel();
        let (position, at, document) = (self.caret_position(), self.buffer().caret, self.active);
        let uri = self.buffer().uri.clone();
        match self.session.begin(&uri, position, Trigger::Automatic, None) {
            Ok(Start::Pending(request)) => {
                self.held = Some(Held { request, document, at, is_outdated: false });
                Ok(())
            }
            Ok(Start::Answered(completed)) => self.answered(document, at, completed.suggestions),
            Err(error) => Err(format!("a request that nothing disturbs failed: {error}")),
        }
    }

    /// The engine answers the request that takes a while.
    pub async fn answer(&mut self) -> Found {
        let Some(held) = self.held.take() else { return Ok(()) };
        let (request, abort) = (held.request.request.clone(), held.request.abort.clone());
        let generated = self.session.services.engine.generate(request, abort.clone()).await;
        let answer = match generated {
            Ok(generated) => {
                let completed = self.session.finish(*held.request, generated);
                completed.map(|completed| completed.suggestions)
            }
            Err(error) => Err(SessionError::Engine(error)),
        };
        drop(CurrentRequest { abort });
        match answer {
            Ok(answer) if held.is_outdated && !answer.is_empty() => {
                Err(format!("an answer to a text that is another one by now: {answer:?}"))
            }
            Ok(answer) if !held.is_outdated => self.answered(held.document, held.at, answer),
            Err(error) if !held.is_outdated => Err(format!("no answer: {error}")),
            _ => Ok(()),
        }
    }

    /// Checks an answer, and shows it if the cursor is still where it was asked for.
    fn answered(&mut self, document: usize, at: usize, answer: Vec<Suggestion>) -> Found {
        let now_ms = self.now_ms();
        let mut items = vec![];
        self.trace.push(format!("  answer for byte {at} of {document}: {answer:?}"));
        for suggestion in answer {
            self.check_range(document, at, &suggestion)?;
            let Suggestion { id, text, replaces, .. } = suggestion;
            let known = self.screen.known(&id);
            if known.full.is_empty() {
                (known.full, known.since_ms, known.document) = (text.clone(), now_ms, document);
            }
            if known.outcome.is_some() {
                return Err(format!("a decided offer comes again: {id} is {:?}", known.outcome));
            }
            let full = known.full.clone();
            if !full.ends_with(&text) {
                return Err(format!("a rest is no end of its offer: {text:?} of {full:?}"));
            }
            let done = full.len() - text.len();
            items.push(Item { id, full, done, told: done, replaces: replaces as usize });
        }
        self.screen.ghost = None;
        if items.is_empty() {
            return Ok(());
        }
        let is_visible = document == self.active && self.buffer().caret == at;
        let ghost = Ghost { document, at, items, current: 0, is_visible, is_fresh: true };
        self.screen.credit_typing(&ghost);
        self.screen.ghost = Some(ghost);
        self.caret_moved();
        Ok(())
    }

    /// Every range lies within the text, and where it was asked for.
    fn check_range(&self, document: usize, at: usize, suggestion: &Suggestion) -> Found {
        let (text, encoding) = (&self.buffers[document].text, self.habits.encoding);
        let Position { line, column } = suggestion.position;
        let end = Position { line, column: column + suggestion.replaces };
        let is_within = lsp_text::has(text, suggestion.position, encoding)
            && lsp_text::has(text, end, encoding)
            && lsp_text::offset(text, suggestion.position, encoding) == Some(at);
        is_within
            .then_some(())
            .ok_or(format!("a range lies elsewhere: {suggestion:?}, byte {at} of {text:?}"))
    }

    /// The offer that the user can accept now.
    fn acceptable(&self) -> Option<(&Ghost, &Item)> {
        let caret = self.buffer().caret;
        let ghost = self.screen.ghost_in(self.active)?;
        let is_here = ghost.is_visible && ghost.is_fresh && ghost.at == caret;
        is_here.then(|| (ghost, ghost.item()))
    }

    /// The user accepts the offer, in the ways in which clients report it.
    pub fn accept(&mut self, step: Step) -> Found {
        let Some((ghost, item)) = self.acceptable() else { return Ok(()) };
        let (id, at, replaces) = (item.id.clone(), ghost.at, item.replaces);
        let offer = item.rest().to_owned();
        let text = self.as_inserted(&offer);
        let change = Change { start: at, end: at + replaces, text };
        self.trace.push(format!("  accepts {id}: {offer:?}"));
        self.check_closers(&change, &offer)?;
        self.screen.known(&id).accepted = true;
        self.screen.known(&id).typed = true;
        self.screen.ghost = None;
        let form = if step.c.is_multiple_of(3) { self.habits.form } else { Form::Exact };
        let (_, report) = self.buffer().report(&change, form, self.habits.encoding);
        match step.a % 6 {
            0 => self.command(&id)?,
            1 => drop(self.session.taking(&id)),
            2 => self.session.shown(&id),
            _ => {}
        }
        let after = change.start + change.text.len();
        self.buffers[self.active].apply(&change);
        self.buffers[self.active].caret = after;
        self.send(self.active, vec![report])?;
        match step.a % 6 {
            2 | 3 => self.command(&id)?,
            4 => self.late.push(id),
            _ => {}
        }
        Ok(())
    }

    /// An editor writes line breaks as the document has them.
    fn as_inserted(&self, text: &str) -> String {
        text.replace("\r\n", "\n").replace('\n', self.buffer().line_break)
    }

    fn check_closers(&mut self, change: &Change, offer: &str) -> Found {
        let buffer = self.buffer();
        let (before, behind) = buffer.around_caret();
        let marks = buffer.caret..buffer.caret + behind.trim_end().len();
        let is_editors = marks.into_iter().all(|at| buffer.closed.contains(&at));
        let is_pair = is_editors && closers::is_closed_behind(before, behind);
        if offer.contains(['\n', '\r']) || !is_pair {
            return Ok(());
        }
        let left = &behind[change.end - change.start..];
        let after = format!("{before}{offer}{left}");
        if closers::closes_twice(before, offer, &after) {
            return Err(format!("closed twice: {before:?} and {behind:?} become {after:?}"));
        }
        self.count("AcceptInPair");
        Ok(())
    }

    fn command(&mut self, id: &str) -> Found {
        self.commanded.push(id.to_owned());
        self.session.accepted(id).map_err(|error| format!("not accepted: {id}: {error}"))
    }

    pub fn late_command(&mut self) -> Found {
        match self.late.pop() {
            Some(id) => self
                .session
                .accepted(&id)
                .map_err(|error| format!("not accepted late: {id}: {error}")),
            None => Ok(()),
        }
    }

    /// The user accepts a word of the offer.
    pub fn accept_word(&mut self, step: Step) -> Found {
        let Some((ghost, item)) = self.acceptable() else { return Ok(()) };
        let (id, at, told, full) = (item.id.clone(), ghost.at, item.told, item.full.clone());
        let rest = item.rest().to_owned();
        let word = first_word(&rest);
        // Editors differ in what they do with the marks that it replaces.
        if item.replaces > 0 || word.contains(['\n', '\r']) || word.is_empty() {
            return Ok(());
        }
        let done = full.len() - rest.len() + word.len();
        let length = lsp_text::width(&full[told..done], Encoding::Utf16);
        let is_whole = word == rest;
        let word = word.to_owned();
        let is_taking = step.b.is_multiple_of(3);
        if is_taking {
            drop(self.session.taking(&id));
        }
        let reports = self.hand_change(Change::insertion(at, &word), Form::Exact);
        let known = self.screen.known(&id);
        known.accepted_partly |= is_taking || step.a.is_multiple_of(2);
        // Of an offer that is decided, only the notice is known, and it does not tell how much.
        known.accepted |= is_whole || (is_taking && known.outcome.is_some());
        // What the word opens is none of what the editor has closed.
        self.buffers[self.active].closed.clear();
        self.send(self.active, reports)?;
        if step.a.is_multiple_of(2) {
            self.session.partly_accepted(&id, length);
        }
        Ok(())
    }

    pub fn escape(&mut self, step: Step) {
        let Some(ghost) = self.screen.ghost.take_if(|ghost| ghost.is_visible) else { return };
        let id = ghost.item().id.clone();
        self.screen.known(&id).escaped = true;
        if step.a.is_multiple_of(2) {
            self.session.rejected(&id, Outcome::RejectedEsc);
        } else {
            let all: Vec<_> = ghost.items.iter().map(|item| item.id.clone()).collect();
            self.session.dismissed(&all);
        }
    }

    pub fn turn(&mut self, step: Step) {
        let now_ms = self.now_ms();
        let Some(ghost) = self.screen.ghost.as_mut().filter(|ghost| ghost.is_visible) else {
            return;
        };
        let next = step.a % ghost.items.len();
        let turned = std::mem::replace(&mut ghost.current, next) != next;
        let id = ghost.item().id.clone();
        if turned {
            self.screen.known(&id).since_ms = now_ms;
        }
        self.session.shown(&id);
    }

    pub fn show(&mut self) {
        let ghost = self.screen.ghost.as_ref().filter(|ghost| ghost.is_visible);
        if let Some(id) = ghost.map(|ghost| ghost.item().id.clone()) {
            self.session.shown(&id);
        }
    }

    pub fn wait(&mut self, step: Step) {
        use feedback::clock::Clock;
        self.clock.advance(*Step::pick(step.a, &[1, 50, 250, 250, 1_000, 5_000, 10_000, 31_000]));
        if step.b.is_multiple_of(2) {
            self.session.tick();
        }
    }

    pub fn focus(&mut self, step: Step) {
        let position = Position { line: (step.a % 7) as u32, column: step.b as u32 };
        let uri = self.buffers[step.c % self.buffers.len()].uri.clone();
        // A document that is not open, or a line that is not there, has nothing to compute.
        let _ = self.session.focus(&uri, position);
    }
}

/// Blanks, and what belongs together behind them.
fn first_word(text: &str) -> &str {
    let blanks = text.len() - text.trim_start_matches(' ').len();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let word = text[blanks..].find(|c| !is_word(c)).unwrap_or(text.len() - blanks);
    let end =
        if word == 0 { text[blanks..].chars().next().map_or(0, char::len_utf8) } else { word };
    &text[..blanks + end]
}
