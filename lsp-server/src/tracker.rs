//! What becomes of an offer: a pure state machine over what the client says and
//! what its document shows.
//!
//! A session has one live offer. Clients differ in what they report, so the
//! document itself is evidence: the offer's text appearing at once is an
//! acceptance, typed bit by bit it is typed through, anything else in its place
//! is a rejection. What the user cannot have read in time is no label.

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
}

impl Live {
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
        if self.accepted_utf16 > 0 {
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

#[derive(Debug, Default)]
pub struct Tracker {
    live: Option<Live>,
    decided: VecDeque<(OfferId, Outcome)>,
}

impl Tracker {
    /// A new offer takes the place of the live one.
    pub fn serve(&mut self, offer: Offer, now_ms: u64) -> Vec<EventKind> {
        let events = self.leave(Outcome::Superseded, Evidence::Document, now_ms);
        self.live = Some(Live {
            offer,
            served_at_ms: now_ms,
            shown: false,
            progress: 0,
            accepted_utf16: 0,
        });
        events
    }

    /// What remains of the live offer at this cursor, if the document still
    /// agrees with it: typing along needs no new computation and no new offer.
    pub fn continuation(&self, uri: &str, cursor: usize) -> Option<(OfferId, String)> {
        let live = self.live.as_ref()?;
        let here = live.offer.uri == uri && live.offer.start + live.progress == cursor;
        here.then(|| (live.offer.id.clone(), live.remaining().to_owned()))
    }

    /// Where in a document the live offer's next character would go.
    pub fn cursor(&self, uri: &str) -> Option<usize> {
        let live = self.live.as_ref().filter(|live| live.offer.uri == uri)?;
        Some(live.offer.start + live.progress)
    }

    /// The cursor is elsewhere, without an edit.
    pub fn supersede(&mut self, now_ms: u64) -> Vec<EventKind> {
        self.leave(Outcome::Superseded, Evidence::Document, now_ms)
    }

    /// The document changed.
    pub fn edit(&mut self, uri: &str, edit: &Edit, now_ms: u64) -> Vec<EventKind> {
        let Some(live) = self.live.as_mut().filter(|live| live.offer.uri == uri) else {
            return vec![];
        };
        let cursor = live.offer.start + live.progress;
        let inserted = edit.inserted.chars().count();
        if edit.removed == 0 && inserted == 0 {
            return vec![];
        }
        if edit.start == cursor && edit.removed == 0 && inserted > 0 {
            let remaining = live.remaining();
            let left = remaining.chars().count();
            // The mark was typed; the editor closed it, and the cursor is between.
            let typed_pair =
                is_auto_closed_pair(&edit.inserted) && remaining.starts_with(&edit.inserted[..1]);
            if typed_pair && (live.progress > 0 || left != inserted) {
                live.progress += 1;
                return vec![];
            }
            if edit.inserted.starts_with(remaining) {
                // One character at the end may be the last one typed; more
                // than one at once is an editor's doing.
                let at_once = left > 1 || live.accepted_utf16 > 0;
                live.progress += left;
                let utf16 = live.progress_utf16();
                let outcome =
                    if at_once { Outcome::Accepted } else { Outcome::TypedThrough { utf16 } };
                return self.decide(outcome, Evidence::Document);
            }
            if remaining.starts_with(&edit.inserted) {
                live.progress += inserted;
                return vec![];
            }
        }
        let takes_back = edit.inserted.is_empty()
            && edit.start >= live.offer.start
            && edit.start + edit.removed == cursor;
        if takes_back && edit.removed > 0 {
            live.progress -= edit.removed;
            return vec![];
        }
        self.leave(Outcome::RejectedEdit, Evidence::Document, now_ms)
    }

    /// The client ran the offer's accept command.
    pub fn accepted(&mut self, id: &str) -> Vec<EventKind> {
        if self.is_live(id) {
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

    /// The client confirms that the offer is on screen.
    pub fn shown(&mut self, id: &str) -> Vec<EventKind> {
        match self.live.as_mut() {
            Some(live) if live.offer.id == id && !live.shown => {
                live.shown = true;
                vec![EventKind::Shown { id: id.to_owned() }]
            }
            _ => vec![],
        }
    }

    /// The client took a part: `length` UTF-16 units from the start of the
    /// text as it was offered last.
    pub fn partly_accepted(&mut self, id: &str, length: u32) -> Vec<EventKind> {
        let Some(live) = self.live.as_mut().filter(|live| live.offer.id == id) else {
            return vec![];
        };
        let accepted_utf16 = live.accepted_utf16.max(live.progress_utf16()).max(length);
        live.accepted_utf16 = accepted_utf16;
        vec![EventKind::PartlyAccepted { id: id.to_owned(), accepted_utf16 }]
    }

    /// The client says that the user turned the offer down.
    pub fn rejected(&mut self, id: &str, reason: Outcome, now_ms: u64) -> Vec<EventKind> {
        if self.is_live(id) { self.leave(reason, Evidence::ClientNotice, now_ms) } else { vec![] }
    }

    /// Time passed.
    pub fn tick(&mut self, now_ms: u64) -> Vec<EventKind> {
        let expired = self
            .live
            .as_ref()
            .is_some_and(|live| now_ms.saturating_sub(live.served_at_ms) >= REJECT_TIMEOUT_MS);
        if expired { self.leave(Outcome::RejectedTimeout, Evidence::Clock, now_ms) } else { vec![] }
    }

    /// The document was closed.
    pub fn closed(&mut self, uri: &str, now_ms: u64) -> Vec<EventKind> {
        match &self.live {
            Some(live) if live.offer.uri == uri => self.supersede(now_ms),
            _ => vec![],
        }
    }

    fn is_live(&self, id: &str) -> bool {
        self.live.as_ref().is_some_and(|live| live.offer.id == id)
    }

    fn leave(&mut self, outcome: Outcome, evidence: Evidence, now_ms: u64) -> Vec<EventKind> {
        match &self.live {
            Some(live) => {
                let outcome = live.left_with(outcome, now_ms);
                self.decide(outcome, evidence)
            }
            None => vec![],
        }
    }

    fn decide(&mut self, outcome: Outcome, evidence: Evidence) -> Vec<EventKind> {
        let Some(live) = self.live.take() else { return vec![] };
        let event = outcome_event(&live.offer.id, outcome, evidence);
        self.decided.push_back((live.offer.id, outcome));
        if self.decided.len() > DECIDED_LIMIT {
            self.decided.pop_front();
        }
        vec![event]
    }
}

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
        let offer = Offer { id: "o1".into(), uri: URI.into(), start: 10, text };
        assert_eq!(tracker.serve(offer, 0), vec![]);
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
        assert_eq!(tracker.shown("o1"), vec![EventKind::Shown { id: "o1".into() }]);
        assert_eq!(tracker.shown("o1"), vec![], "VS Code shows again at every key");
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
        tracker.serve(Offer { id: "o1".into(), uri: URI.into(), start: 10, text }, 0);
        type_text(&mut tracker, "pop");
        assert_eq!(tracker.edit(URI, &insert(13, "()"), READ), vec![]);
        assert_eq!(tracker.continuation(URI, 14), Some(("o1".into(), ");".into())));
        let events = tracker.supersede(READ);
        assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 4 }, Evidence::Document));
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
}
