//! What becomes of an offer: a pure state machine over what the client says and
//! what its document shows.
//!
//! A session has one live answer: an offer on screen and, where the user asked
//! by hand, others to turn to. Clients differ in what they report, so the
//! document itself is evidence: the offer's text appearing at once is an
//! acceptance, typed bit by bit it is typed through, anything else in its place
//! is a rejection. What the user cannot have read in time is no label, and
//! neither is what was turned away from for another offer of the same answer.

use crate::document::Edit;
use feedback::event::{EventKind, Evidence, OfferId, Outcome};
use std::collections::VecDeque;

/// An offer that stood this long was seen, where the client cannot say so.
pub const MIN_VISIBLE_MS: u64 = 250;

/// An offer that stood this long without an answer is rejected.
pub const REJECT_TIMEOUT_MS: u64 = 10_000;

const _: () = assert!(MIN_VISIBLE_MS < REJECT_TIMEOUT_MS);

/// Of an offer typed by hand and then left, at least this share must have been
/// typed for it to count as typed through and not as rejected.
const TYPED_THROUGH_MIN_SHARE: f32 = 0.5;

/// Offers whose fate a late or repeated client message may still meet.
const DECIDED_LIMIT: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub id: OfferId,
    pub uri: String,
    /// Character offset in the document at which the text goes in.
    pub start: usize,
    pub text: String,
    /// Text before `start` that the prompt had left for the answer to reproduce.
    pub healing: String,
}

/// An offer that met its fate.
#[derive(Debug)]
pub struct Judgement {
    pub offer: Offer,
    pub outcome: Outcome,
    /// Characters of it that stand in the document.
    pub standing: usize,
}

#[derive(Debug)]
struct Live {
    offer: Offer,
    served_at_ms: u64,
    /// The client confirmed that it was shown.
    shown: bool,
    /// Characters of the offer that stand in the document by now.
    progress: usize,
    /// UTF-16 units taken by the client's partial-accept commands.
    accepted_utf16: u32,
    /// The client said that it takes some of it, and that the change follows.
    taking: bool,
    /// The document went another way: no longer to be turned to.
    astray: bool,
    /// Marks behind the cursor that it takes the place of, as was answered last.
    replaces: String,
}

/// What an edit does to an offer.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// A part of it was typed, or taken back.
    Along,
    /// All of it stands there; at once, if no hand can have typed it.
    Whole { at_once: bool },
    /// It does not fit any more.
    Away,
}

impl Live {
    fn new(offer: Offer, now_ms: u64) -> Live {
        Live {
            offer,
            served_at_ms: now_ms,
            shown: false,
            progress: 0,
            accepted_utf16: 0,
            taking: false,
            astray: false,
            replaces: String::new(),
        }
    }

    /// Where in the document its next character would go.
    fn cursor(&self) -> usize {
        self.offer.start + self.progress
    }

    fn step(&mut self, edit: &Edit) -> Step {
        let (cursor, marks) = (self.cursor(), self.replaces.len());
        let end = edit.start + edit.removed;
        if edit.start >= cursor && end <= cursor + marks {
            // The marks before the edit may have been typed over by now, or left out of
            // the edit since they stay what they are; as may those behind it.
            let (before, behind) =
                (&self.replaces[..edit.start - cursor], &self.replaces[end - cursor..]);
            let text = format!("{before}{}", edit.inserted);
            let remaining = self.remaining();
            let left = remaining.chars().count();
            let inserted = edit.inserted.chars().count();
            // The mark was typed; the editor closed it, and the cursor is between.
            let typed_pair = edit.removed == 0
                && is_auto_closed_pair(&edit.inserted)
                && remaining.starts_with(&text[..=before.len()]);
            if typed_pair && (self.progress > 0 || left != inserted) {
                self.progress += before.len() + 1;
                // What it takes the place of is behind the new mark now.
                self.replaces.clear();
                return Step::Along;
            }
            let taken_whole = format!("{text}{behind}") == remaining;
            if taken_whole || (edit.removed == 0 && text.starts_with(remaining)) {
                // One character at the end may be the last one typed; more
                // than one at once is an editor's doing.
                let by_editor = inserted.min(left) > 1 || edit.removed > 0;
                let at_once = by_editor || self.accepted_utf16 > 0 || self.taking;
                self.progress += left;
                return Step::Whole { at_once };
            }
            if remaining.starts_with(&text) {
                self.replaces = behind.to_owned();
                self.progress += text.chars().count();
                return Step::Along;
            }
        }
        let takes_back = edit.inserted.is_empty()
            && (self.offer.start..=cursor).contains(&edit.start)
            && (cursor..=cursor + marks).contains(&end);
        if takes_back {
            // An editor that closed a bracket takes both of an empty pair.
            self.replaces.drain(..end - cursor);
            self.progress = edit.start - self.offer.start;
            return Step::Along;
        }
        Step::Away
    }

    /// The cursor went over marks that the editor had closed, as typing them does.
    /// False if it is somewhere else.
    fn follow(&mut self, cursor: usize) -> bool {
        let over = cursor.checked_sub(self.cursor()).and_then(|over| self.replaces.get(..over));
        let Some(over) = over.map(str::len) else { return false };
        if !self.remaining().starts_with(&self.replaces[..over]) {
            return false;
        }
        self.progress += over;
        self.replaces.drain(..over);
        !self.remaining().is_empty()
    }

    fn remaining(&self) -> &str {
        let at = self.offer.text.char_indices().nth(self.progress);
        at.map_or("", |(byte, _)| &self.offer.text[byte..])
    }

    fn progress_utf16(&self) -> u32 {
        self.offer.text.chars().take(self.progress).map(|c| c.len_utf16() as u32).sum()
    }

    /// The outcome if the user turned away now, after having `rejected` it.
    fn left_with(&self, rejected: Outcome, now_ms: u64) -> Outcome {
        let visible = self.shown || now_ms.saturating_sub(self.served_at_ms) >= MIN_VISIBLE_MS;
        let length = self.offer.text.chars().count();
        if self.accepted_utf16 > 0 || (self.taking && self.progress > 0) {
            Outcome::PartlyAccepted { utf16: self.accepted_utf16.max(self.progress_utf16()) }
        } else if self.progress as f32 >= TYPED_THROUGH_MIN_SHARE * length as f32 {
            Outcome::TypedThrough { utf16: self.progress_utf16() }
        } else if visible {
            rejected
        } else {
            Outcome::Unseen
        }
    }
}

/// The offers one request was answered with, all for one place.
#[derive(Debug)]
struct Answer {
    /// In the order they were given; never empty.
    offers: Vec<Live>,
    /// The one on screen, as far as we know.
    current: usize,
    /// The user asked for others; there are no more than these.
    is_complete: bool,
}

impl Answer {
    fn current(&self) -> &Live {
        &self.offers[self.current]
    }

    fn current_mut(&mut self) -> &mut Live {
        &mut self.offers[self.current]
    }

    fn index_of(&self, id: &str) -> Option<usize> {
        self.offers.iter().position(|live| live.offer.id == id)
    }

    fn others(&mut self) -> impl Iterator<Item = (usize, &mut Live)> {
        let current = self.current;
        let others = self.offers.iter_mut().enumerate();
        others.filter(move |(index, live)| *index != current && !live.astray)
    }
}

#[derive(Debug, Default)]
pub struct Tracker {
    live: Option<Answer>,
    decided: VecDeque<(OfferId, Outcome)>,
    judged: Vec<Judgement>,
}

impl Tracker {
    /// A new answer takes the place of the live one; its first offer is on
    /// screen. `is_complete` if it holds all offers there are for the place.
    pub fn serve(&mut self, offers: Vec<Offer>, is_complete: bool, now_ms: u64) -> Vec<EventKind> {
        let events = self.leave(Outcome::Superseded, Evidence::Document, now_ms);
        let offers: Vec<_> = offers.into_iter().map(|offer| Live::new(offer, now_ms)).collect();
        self.live = (!offers.is_empty()).then_some(Answer { offers, current: 0, is_complete });
        events
    }

    /// Others the user may turn to from the live offer.
    pub fn complete(&mut self, offers: Vec<Offer>, now_ms: u64) {
        if let Some(answer) = &mut self.live {
            answer.offers.extend(offers.into_iter().map(|offer| Live::new(offer, now_ms)));
            answer.is_complete = true;
        }
    }

    /// Offers that met their fate since this was asked last.
    pub fn take_judged(&mut self) -> Vec<Judgement> {
        std::mem::take(&mut self.judged)
    }

    /// What remains of the live offer at this cursor, if the document still
    /// agrees with it: typing along needs no new computation and no new offer.
    pub fn continuation(&mut self, uri: &str, cursor: usize) -> Option<(OfferId, String)> {
        let live = self.live.as_mut()?.current_mut();
        let here = live.offer.uri == uri && live.follow(cursor);
        here.then(|| (live.offer.id.clone(), live.remaining().to_owned()))
    }

    /// The same for every offer of the live answer, once others were asked for.
    pub fn continuations(&mut self, uri: &str, cursor: usize) -> Option<Vec<(OfferId, String)>> {
        self.continuation(uri, cursor)?;
        let answer = self.live.as_mut().filter(|answer| answer.is_complete)?;
        let current = answer.current;
        let fitting = answer.offers.iter_mut().enumerate().filter_map(|(index, live)| {
            let fits = index == current || (!live.astray && live.follow(cursor));
            fits.then(|| (live.offer.id.clone(), live.remaining().to_owned()))
        });
        Some(fitting.collect())
    }

    /// The client was told that what remains of an offer takes the place of these marks
    /// behind the cursor.
    pub fn replaces(&mut self, id: &str, marks: &str) {
        let answer = self.live.as_mut();
        let live = answer.and_then(|all| all.offers.iter_mut().find(|live| live.offer.id == id));
        if let Some(live) = live {
            debug_assert!(marks.is_ascii(), "each is counted as one character");
            live.replaces = marks.to_owned();
        }
    }

    /// Where in a document the live offer's next character would go.
    pub fn cursor(&self, uri: &str) -> Option<usize> {
        let live = self.live.as_ref()?.current();
        (live.offer.uri == uri).then(|| live.cursor())
    }

    /// The cursor is elsewhere, without an edit.
    pub fn supersede(&mut self, now_ms: u64) -> Vec<EventKind> {
        self.leave(Outcome::Superseded, Evidence::Document, now_ms)
    }

    /// The document changed.
    pub fn edit(&mut self, uri: &str, edit: &Edit, now_ms: u64) -> Vec<EventKind> {
        let on = |answer: &&mut Answer| answer.current().offer.uri == uri;
        let Some(answer) = self.live.as_mut().filter(on) else { return vec![] };
        if edit.removed == 0 && edit.inserted.is_empty() {
            return vec![];
        }
        match answer.current_mut().step(edit) {
            Step::Along => {
                answer.others().for_each(|(_, live)| live.astray = live.step(edit) != Step::Along);
                vec![]
            }
            TAKEN => self.decide(Outcome::Accepted, Evidence::Document),
            Step::Whole { at_once: false } => {
                let utf16 = answer.current().progress_utf16();
                self.decide(Outcome::TypedThrough { utf16 }, Evidence::Document)
            }
            Step::Away => {
                // Another one was taken by a client that does not say what it shows.
                let taken =
                    answer.others().find_map(|(i, live)| (live.step(edit) == TAKEN).then_some(i));
                match taken {
                    Some(index) => {
                        answer.current = index;
                        self.decide(Outcome::Accepted, Evidence::Document)
                    }
                    None => self.leave(Outcome::RejectedEdit, Evidence::Document, now_ms),
                }
            }
        }
    }

    /// The client ran the offer's accept command.
    pub fn accepted(&mut self, id: &str) -> Vec<EventKind> {
        if self.turn_to(id).is_some() {
            return self.decide(Outcome::Accepted, Evidence::Command);
        }
        // The change came first and may have been read otherwise.
        let known = self.decided.iter_mut().find(|(decided, _)| decided == id);
        match known {
            Some((_, outcome)) if *outcome != Outcome::Accepted => {
                *outcome = Outcome::Accepted;
                vec![outcome_event(id, Outcome::Accepted, Evidence::Command)]
            }
            _ => vec![],
        }
    }

    /// The client confirms that the offer is on screen, perhaps instead of
    /// another one of the same answer.
    pub fn shown(&mut self, id: &str, now_ms: u64) -> Vec<EventKind> {
        let before = self.live.as_ref().map(|answer| answer.current);
        let Some(live) = self.turn_to(id) else { return vec![] };
        let first_time = !std::mem::replace(&mut live.shown, true);
        let turned = self.live.as_ref().map(|answer| answer.current) != before;
        if let Some(answer) = self.live.as_mut().filter(|_| turned) {
            answer.current_mut().served_at_ms = now_ms;
        }
        if first_time { vec![EventKind::Shown { id: id.to_owned() }] } else { vec![] }
    }

    /// The client took a part: `length` UTF-16 units from the start of the
    /// text as it was offered last.
    pub fn partly_accepted(&mut self, id: &str, length: u32) -> Vec<EventKind> {
        let Some(live) = self.turn_to(id) else { return vec![] };
        let accepted_utf16 = live.accepted_utf16.max(live.progress_utf16()).max(length);
        live.accepted_utf16 = accepted_utf16;
        vec![EventKind::PartlyAccepted { id: id.to_owned(), accepted_utf16 }]
    }

    /// The client is about to take the offer, or a word of it: the change says
    /// which.
    pub fn taking(&mut self, id: &str, now_ms: u64) -> Vec<EventKind> {
        let events = self.shown(id, now_ms);
        match self.turn_to(id) {
            Some(live) => live.taking = true,
            None => return self.accepted(id),
        }
        events
    }

    /// The offer that is on screen, as far as we know.
    pub fn on_screen(&self) -> Option<OfferId> {
        self.live.as_ref().map(|answer| answer.current().offer.id.clone())
    }

    /// The client says that the user turned the offer down.
    pub fn rejected(&mut self, id: &str, reason: Outcome, now_ms: u64) -> Vec<EventKind> {
        let Some(answer) = &mut self.live else { return vec![] };
        match answer.index_of(id) {
            Some(index) if index == answer.current || reason != Outcome::Superseded => {
                answer.current = index;
                self.leave(reason, Evidence::ClientNotice, now_ms)
            }
            // Nobody looked at it; what is on screen stays.
            Some(index) => {
                answer.offers[index].astray = true;
                vec![]
            }
            None => vec![],
        }
    }

    /// Time passed.
    pub fn tick(&mut self, now_ms: u64) -> Vec<EventKind> {
        let since = self.live.as_ref().map(|answer| answer.current().served_at_ms);
        let expired = since.is_some_and(|since| now_ms.saturating_sub(since) >= REJECT_TIMEOUT_MS);
        if expired { self.leave(Outcome::RejectedTimeout, Evidence::Clock, now_ms) } else { vec![] }
    }

    /// The document was closed.
    pub fn closed(&mut self, uri: &str, now_ms: u64) -> Vec<EventKind> {
        match &self.live {
            Some(answer) if answer.current().offer.uri == uri => self.supersede(now_ms),
            _ => vec![],
        }
    }

    /// The client speaks of this offer, so it is the one on screen.
    fn turn_to(&mut self, id: &str) -> Option<&mut Live> {
        let answer = self.live.as_mut()?;
        answer.current = answer.index_of(id)?;
        Some(answer.current_mut())
    }

    fn leave(&mut self, outcome: Outcome, evidence: Evidence, now_ms: u64) -> Vec<EventKind> {
        match &self.live {
            Some(answer) => {
                let outcome = answer.current().left_with(outcome, now_ms);
                self.decide(outcome, evidence)
            }
            None => vec![],
        }
    }

    /// The offer on screen meets its fate; the others of its answer end without
    /// a label.
    fn decide(&mut self, outcome: Outcome, evidence: Evidence) -> Vec<EventKind> {
        let Some(Answer { mut offers, current, .. }) = self.live.take() else { return vec![] };
        let judged = offers.remove(current);
        let mut fates = vec![(judged.offer.id.clone(), outcome, evidence)];
        self.judged.push(Judgement { offer: judged.offer, outcome, standing: judged.progress });
        for other in offers {
            let outcome = if other.shown { Outcome::Superseded } else { Outcome::Unseen };
            fates.push((other.offer.id, outcome, Evidence::Document));
        }
        let events = fates.iter().map(|(id, outcome, by)| outcome_event(id, *outcome, *by));
        let events = events.collect();
        self.decided.extend(fates.into_iter().map(|(id, outcome, _)| (id, outcome)));
        while self.decided.len() > DECIDED_LIMIT {
            self.decided.pop_front();
        }
        events
    }
}

/// Whole and at once: not by hand.
const TAKEN: Step = Step::Whole { at_once: true };

fn outcome_event(id: &str, outcome: Outcome, evidence: Evidence) -> EventKind {
    EventKind::Outcome { id: id.to_owned(), outcome, evidence }
}

/// What an editor inserts when one opening mark is typed.
fn is_auto_closed_pair(inserted: &str) -> bool {
    matches!(inserted, "()" | "[]" | "{}" | "\"\"" | "''" | "``")
}

#[cfg(test)]
mod tests {
    use super::*;

    const URI: &str = "file:///a.rs";
    /// Long enough after serving for the offer to have been read.
    const READ: u64 = MIN_VISIBLE_MS;

    /// A tracker with the offer `push(item);` at offset 10, served at 0 ms.
    fn offered() -> Tracker {
        let mut tracker = Tracker::default();
        let text = "push(item);".to_owned();
        let offer =
            Offer { id: "o1".into(), uri: URI.into(), start: 10, text, healing: String::new() };
        assert_eq!(tracker.serve(vec![offer], false, 0), vec![]);
        tracker
    }

    fn insert(start: usize, text: &str) -> Edit {
        Edit { start, removed: 0, inserted: text.into() }
    }

    fn outcome(outcome: Outcome, evidence: Evidence) -> Vec<EventKind> {
        vec![outcome_event("o1", outcome, evidence)]
    }

    /// Types `text` from the offer's start, one character a change.
    fn type_text(tracker: &mut Tracker, text: &str) -> Vec<EventKind> {
        let mut events = vec![];
        for (i, c) in text.chars().enumerate() {
            events.extend(tracker.edit(URI, &insert(10 + i, &c.to_string()), READ));
        }
        events
    }

    #[test]
    fn the_accept_command_is_an_acceptance() {
        let mut tracker = offered();
        assert_eq!(tracker.accepted("o1"), outcome(Outcome::Accepted, Evidence::Command));
        assert_eq!(tracker.accepted("o1"), vec![], "the same message again");
    }

    #[test]
    fn text_that_appears_at_once_is_an_acceptance_without_any_command() {
        let mut tracker = offered();
        let events = tracker.edit(URI, &insert(10, "push(item);"), READ);
        assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
        assert_eq!(tracker.accepted("o1"), vec![], "VS Code's command comes after its change");
    }

    #[test]
    fn typing_the_whole_offer_is_typing_through() {
        let events = type_text(&mut offered(), "push(item);");
        assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 11 }, Evidence::Document));
    }

    #[test]
    fn the_rest_is_accepted_after_some_typing() {
        let mut tracker = offered();
        assert_eq!(type_text(&mut tracker, "pu"), vec![]);
        assert_eq!(tracker.continuation(URI, 12), Some(("o1".into(), "sh(item);".into())));
        let events = tracker.edit(URI, &insert(12, "sh(item);"), READ);
        assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
    }

    #[test]
    fn typing_something_else_is_a_reject() {
        let events = type_text(&mut offered(), "pop");
        assert_eq!(events, outcome(Outcome::RejectedEdit, Evidence::Document));
    }

    #[test]
    fn most_of_it_typed_and_then_changed_is_its_share() {
        let events = type_text(&mut offered(), "push(i)");
        assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 6 }, Evidence::Document));
    }

    #[test]
    fn an_edit_elsewhere_is_a_reject_and_in_another_file_is_not() {
        let mut tracker = offered();
        assert_eq!(tracker.edit("file:///b.rs", &insert(0, "x"), READ), vec![]);
        let events = tracker.edit(URI, &insert(0, "x"), READ);
        assert_eq!(events, outcome(Outcome::RejectedEdit, Evidence::Document));
    }

    #[test]
    fn nobody_rejects_what_was_gone_before_it_could_be_read() {
        let mut tracker = offered();
        let events = tracker.edit(URI, &insert(10, "x"), MIN_VISIBLE_MS - 1);
        assert_eq!(events, outcome(Outcome::Unseen, Evidence::Document));
        let mut tracker = offered();
        assert_eq!(tracker.shown("o1", 0), vec![EventKind::Shown { id: "o1".into() }]);
        assert_eq!(tracker.shown("o1", 0), vec![], "VS Code shows again at every key");
        let events = tracker.edit(URI, &insert(10, "x"), MIN_VISIBLE_MS - 1);
        assert_eq!(events, outcome(Outcome::RejectedEdit, Evidence::Document));
    }

    #[test]
    fn ten_seconds_without_an_answer_is_a_reject() {
        let mut tracker = offered();
        assert_eq!(tracker.tick(REJECT_TIMEOUT_MS - 1), vec![]);
        let events = tracker.tick(REJECT_TIMEOUT_MS);
        assert_eq!(events, outcome(Outcome::RejectedTimeout, Evidence::Clock));
        let late = tracker.accepted("o1");
        assert_eq!(late, outcome(Outcome::Accepted, Evidence::Command), "it still stood there");
    }

    #[test]
    fn escape_is_kept_apart() {
        let mut tracker = offered();
        let events = tracker.rejected("o1", Outcome::RejectedEsc, READ);
        assert_eq!(events, outcome(Outcome::RejectedEsc, Evidence::ClientNotice));
    }

    #[test]
    fn a_word_taken_and_then_something_else_is_partly_accepted() {
        let mut tracker = offered();
        assert_eq!(tracker.edit(URI, &insert(10, "push"), READ), vec![]);
        let partial = EventKind::PartlyAccepted { id: "o1".into(), accepted_utf16: 4 };
        assert_eq!(tracker.partly_accepted("o1", 4), vec![partial]);
        let events = tracker.edit(URI, &insert(14, "_back"), READ);
        assert_eq!(events, outcome(Outcome::PartlyAccepted { utf16: 4 }, Evidence::Document));
    }

    /// copilot.lua says the same before a word as before the whole.
    #[test]
    fn what_a_client_is_about_to_take_is_told_by_the_change() {
        let whole = outcome(Outcome::Accepted, Evidence::Document);
        let mut tracker = offered();
        assert_eq!(tracker.taking("o1", 0), vec![EventKind::Shown { id: "o1".into() }]);
        assert_eq!(tracker.edit(URI, &insert(10, "push(item);"), READ), whole);

        let mut tracker = offered();
        tracker.taking("o1", 0);
        tracker.edit(URI, &insert(10, "push"), READ);
        let events = tracker.edit(URI, &insert(14, "!"), READ);
        assert_eq!(events, outcome(Outcome::PartlyAccepted { utf16: 4 }, Evidence::Document));

        let mut tracker = offered();
        tracker.tick(REJECT_TIMEOUT_MS);
        let late = tracker.taking("o1", REJECT_TIMEOUT_MS);
        assert_eq!(late, outcome(Outcome::Accepted, Evidence::Command), "it still stood there");
    }

    #[test]
    fn backspace_over_what_was_typed_brings_the_offer_back() {
        let mut tracker = offered();
        type_text(&mut tracker, "pus");
        let backspace = Edit { start: 12, removed: 1, inserted: String::new() };
        assert_eq!(tracker.edit(URI, &backspace, READ), vec![]);
        assert_eq!(tracker.continuation(URI, 12), Some(("o1".into(), "sh(item);".into())));
    }

    #[test]
    fn a_bracket_the_editor_closed_by_itself_is_still_typing_along() {
        let mut tracker = offered();
        type_text(&mut tracker, "push");
        assert_eq!(tracker.edit(URI, &insert(14, "()"), READ), vec![]);
        assert_eq!(tracker.continuation(URI, 15), Some(("o1".into(), "item);".into())));
    }

    /// `()` typed by its first key is one character of the offer, not two: the
    /// cursor stands between them.
    #[test]
    fn a_pair_in_the_offer_itself_is_typed_by_its_first_mark() {
        let mut tracker = Tracker::default();
        let text = "pop();".to_owned();
        let offer =
            Offer { id: "o1".into(), uri: URI.into(), start: 10, text, healing: String::new() };
        tracker.serve(vec![offer], false, 0);
        type_text(&mut tracker, "pop");
        assert_eq!(tracker.edit(URI, &insert(13, "()"), READ), vec![]);
        assert_eq!(tracker.continuation(URI, 14), Some(("o1".into(), ");".into())));
        let events = tracker.supersede(READ);
        assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 4 }, Evidence::Document));
    }

    /// `text` offered in `foo(|)`, of which it takes the bracket's place.
    fn offered_in_brackets(text: &str) -> Tracker {
        let mut tracker = Tracker::default();
        let (id, uri, text) = ("o1".to_owned(), URI.to_owned(), text.to_owned());
        let offer = Offer { id, uri, start: 10, text, healing: String::new() };
        tracker.serve(vec![offer], false, 0);
        tracker.replaces("o1", ")");
        tracker
    }

    fn replace(start: usize, removed: usize, text: &str) -> Edit {
        Edit { start, removed, inserted: text.into() }
    }

    #[test]
    fn taking_the_place_of_a_bracket_is_an_acceptance() {
        let taken = outcome(Outcome::Accepted, Evidence::Document);
        let mut tracker = offered_in_brackets("a, b);");
        assert_eq!(tracker.edit(URI, &replace(10, 1, "a, b);"), READ), taken);
        // Of an edit, what it leaves as it was is left out.
        let mut tracker = offered_in_brackets("a).b()");
        assert_eq!(tracker.edit(URI, &insert(10, "a).b("), READ), taken);
        let mut tracker = offered_in_brackets(").b();");
        assert_eq!(tracker.edit(URI, &insert(11, ".b();"), READ), taken);
    }

    #[test]
    fn a_bracket_typed_over_goes_along() {
        let mut tracker = offered_in_brackets("a, b);");
        assert_eq!(type_text(&mut tracker, "a, b"), vec![]);
        assert_eq!(tracker.continuation(URI, 16), None, "past the bracket");
        assert_eq!(tracker.continuation(URI, 15), Some(("o1".into(), ";".into())));
        let events = tracker.edit(URI, &insert(15, ";"), READ);
        assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 6 }, Evidence::Document));
        // The key behind it may come before the next request.
        let mut tracker = offered_in_brackets("a, b);");
        type_text(&mut tracker, "a, b");
        let events = tracker.edit(URI, &insert(15, ";"), READ);
        assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 6 }, Evidence::Document));
        // All of it stands there before that key.
        let events = type_text(&mut offered_in_brackets("a)"), "a");
        assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 2 }, Evidence::Document));
    }

    /// VS Code puts what comes behind the bracket there, and leaves the bracket.
    #[test]
    fn words_are_taken_on_both_sides_of_a_bracket() {
        let mut tracker = offered_in_brackets("a, b).c();");
        assert_eq!(tracker.edit(URI, &insert(10, "a, b"), READ), vec![]);
        tracker.partly_accepted("o1", 4);
        assert_eq!(tracker.edit(URI, &insert(15, ".c"), READ), vec![]);
        tracker.partly_accepted("o1", 7);
        assert_eq!(tracker.continuation(URI, 17), Some(("o1".into(), "();".into())));
        let events = tracker.edit(URI, &insert(17, "();"), READ);
        assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
    }

    #[test]
    fn a_bracket_closed_while_typing_along_is_replaced_too() {
        let mut tracker = offered();
        type_text(&mut tracker, "push");
        tracker.edit(URI, &insert(14, "()"), READ);
        tracker.replaces("o1", ")");
        let both = replace(14, 2, "");
        assert_eq!(tracker.edit(URI, &both, READ), vec![], "a backspace takes both");
        assert_eq!(tracker.continuation(URI, 14), Some(("o1".into(), "(item);".into())));
        tracker.edit(URI, &insert(14, "()"), READ);
        tracker.replaces("o1", ")");
        let events = tracker.edit(URI, &replace(15, 1, "item);"), READ);
        assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
    }

    #[test]
    fn what_is_no_longer_on_screen_was_not_rejected() {
        let mut tracker = offered();
        let events = tracker.rejected("o1", Outcome::Superseded, READ);
        assert_eq!(events, outcome(Outcome::Superseded, Evidence::ClientNotice));
        assert_eq!(tracker.tick(REJECT_TIMEOUT_MS), vec![], "nor later");
    }

    #[test]
    fn leaving_without_an_edit_is_no_verdict() {
        let mut tracker = offered();
        let events = tracker.supersede(READ);
        assert_eq!(events, outcome(Outcome::Superseded, Evidence::Document));
        assert_eq!(offered().closed(URI, 0), outcome(Outcome::Unseen, Evidence::Document));
        assert_eq!(offered().closed("file:///b.rs", 0), vec![]);
    }

    const LINES: &str = "if größe {\n        b();\n    }";

    /// A tracker with an offer of several lines at offset 10, served at 0 ms.
    fn offered_lines() -> Tracker {
        let mut tracker = Tracker::default();
        let (uri, text, healing) = (URI.into(), LINES.to_owned(), String::new());
        tracker.serve(vec![Offer { id: "o1".into(), uri, start: 10, text, healing }], false, 0);
        tracker
    }

    /// What an editor inserts for the Enter key is the break and the indentation.
    #[test]
    fn a_line_break_comes_with_its_indentation_and_goes_along() {
        let mut tracker = offered_lines();
        assert_eq!(type_text(&mut tracker, "if größe {"), vec![]);
        assert_eq!(tracker.edit(URI, &insert(20, "\n        "), READ), vec![]);
        let rest = Some(("o1".into(), "b();\n    }".into()));
        assert_eq!(tracker.continuation(URI, 29), rest);
        let back = Edit { start: 25, removed: 4, inserted: String::new() };
        assert_eq!(tracker.edit(URI, &back, READ), vec![]);
        let rest = Some(("o1".into(), "    b();\n    }".into()));
        assert_eq!(tracker.continuation(URI, 25), rest);
        let events = tracker.edit(URI, &insert(25, "    b();\n    }"), READ);
        assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
    }

    #[test]
    fn several_lines_that_appear_at_once_are_an_acceptance() {
        let events = offered_lines().edit(URI, &insert(10, LINES), READ);
        assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
        let mut typed = offered_lines();
        let events = type_text(&mut typed, LINES);
        let utf16 = LINES.encode_utf16().count() as u32;
        assert_eq!(events, outcome(Outcome::TypedThrough { utf16 }, Evidence::Document));
    }

    #[test]
    fn a_line_taken_of_several_and_then_something_else_is_partly_accepted() {
        let mut tracker = offered_lines();
        assert_eq!(tracker.edit(URI, &insert(10, "if größe {\n"), READ), vec![]);
        tracker.partly_accepted("o1", 11);
        assert_eq!(tracker.edit(URI, &insert(21, "        b();"), READ), vec![]);
        tracker.partly_accepted("o1", 23);
        let rest = Some(("o1".into(), "\n    }".into()));
        assert_eq!(tracker.continuation(URI, 33), rest);
        let events = tracker.edit(URI, &insert(33, " // why"), READ);
        assert_eq!(events, outcome(Outcome::PartlyAccepted { utf16: 23 }, Evidence::Document));
    }

    #[test]
    fn another_second_line_is_a_reject() {
        let mut tracker = offered_lines();
        type_text(&mut tracker, "if größe {");
        tracker.edit(URI, &insert(20, "\n"), READ);
        let events = tracker.edit(URI, &insert(21, "\tc"), READ);
        assert_eq!(events, outcome(Outcome::RejectedEdit, Evidence::Document));
        let standing: Vec<usize> = tracker.take_judged().iter().map(|one| one.standing).collect();
        assert_eq!(standing, [11], "what was typed as offered stays known");
    }

    /// `o1` as above on screen, `o2` and `o3` to turn to.
    fn asked_by_hand() -> Tracker {
        let mut tracker = offered();
        let offer = |id: &str, text: &str| Offer {
            id: id.into(),
            uri: URI.into(),
            start: 10,
            text: text.into(),
            healing: String::new(),
        };
        tracker.complete(vec![offer("o2", "push_all(items);"), offer("o3", "sort();")], 0);
        tracker
    }

    /// The fates of the three in that order.
    fn fates(events: &[EventKind]) -> Vec<Option<Outcome>> {
        let of = |wanted: &str| {
            events.iter().rev().find_map(|event| match event {
                EventKind::Outcome { id, outcome, .. } if id == wanted => Some(*outcome),
                _ => None,
            })
        };
        ["o1", "o2", "o3"].map(of).to_vec()
    }

    const UNSEEN: Option<Outcome> = Some(Outcome::Unseen);
    const LEFT: Option<Outcome> = Some(Outcome::Superseded);

    #[test]
    fn only_the_offer_on_screen_is_judged() {
        let mut tracker = asked_by_hand();
        assert_eq!(tracker.continuations(URI, 10).map(|all| all.len()), Some(3));
        let events = tracker.edit(URI, &insert(10, "x"), READ);
        assert_eq!(fates(&events), [Some(Outcome::RejectedEdit), UNSEEN, UNSEEN]);
        assert_eq!(events.len(), 3, "each once");
    }

    #[test]
    fn turning_to_another_rejects_nothing() {
        let mut tracker = asked_by_hand();
        tracker.shown("o1", 0);
        assert_eq!(tracker.shown("o2", 9_000), vec![EventKind::Shown { id: "o2".into() }]);
        assert_eq!(tracker.tick(REJECT_TIMEOUT_MS), vec![], "its ten seconds begin anew");
        let events = tracker.rejected("o2", Outcome::RejectedEsc, 9_000);
        assert_eq!(fates(&events), [LEFT, Some(Outcome::RejectedEsc), UNSEEN]);
    }

    #[test]
    fn turning_back_and_taking_it_is_an_acceptance() {
        let mut tracker = asked_by_hand();
        for id in ["o1", "o2", "o1"] {
            tracker.shown(id, 0);
        }
        let events = tracker.edit(URI, &insert(10, "push(item);"), READ);
        assert_eq!(fates(&events), [Some(Outcome::Accepted), LEFT, UNSEEN]);
    }

    #[test]
    fn another_one_is_taken_by_a_client_that_does_not_say_what_it_shows() {
        let events = asked_by_hand().edit(URI, &insert(10, "sort();"), READ);
        assert_eq!(fates(&events), [UNSEEN, UNSEEN, Some(Outcome::Accepted)]);
        let events = asked_by_hand().accepted("o3");
        assert_eq!(fates(&events), [UNSEEN, UNSEEN, Some(Outcome::Accepted)]);
    }

    #[test]
    fn typing_along_keeps_only_the_others_that_still_fit() {
        let mut tracker = asked_by_hand();
        type_text(&mut tracker, "push");
        let left =
            vec![("o1".to_owned(), "(item);".to_owned()), ("o2".into(), "_all(items);".into())];
        assert_eq!(tracker.continuations(URI, 14), Some(left));
        let events = tracker.edit(URI, &insert(14, "_all(items);"), READ);
        assert_eq!(fates(&events), [UNSEEN, Some(Outcome::Accepted), UNSEEN]);
    }

    /// What the change alone would have called a word of the first.
    #[test]
    fn the_command_names_the_one_that_was_taken() {
        let mut tracker = offered();
        let offer = Offer {
            id: "o2".into(),
            uri: URI.into(),
            start: 10,
            text: "push".into(),
            healing: String::new(),
        };
        tracker.complete(vec![offer], 0);
        assert_eq!(tracker.edit(URI, &insert(10, "push"), READ), vec![]);
        let events = tracker.accepted("o2");
        assert_eq!(fates(&events), [UNSEEN, Some(Outcome::Accepted), None]);
    }

    #[test]
    fn an_unseen_one_that_goes_leaves_what_is_on_screen() {
        let mut tracker = asked_by_hand();
        assert_eq!(tracker.rejected("o3", Outcome::Superseded, READ), vec![]);
        assert_eq!(tracker.continuations(URI, 10).map(|all| all.len()), Some(2));
        let events = tracker.rejected("o1", Outcome::Superseded, READ);
        assert_eq!(fates(&events), [LEFT, UNSEEN, UNSEEN]);
    }
}
