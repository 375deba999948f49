//! The next edit that the editor has, and what becomes of it. Clients differ in what they report,
//! so most of it is read from the changes of the document.

use completion::document::Edit;
use feedback::event::{NextEditOutcome, OfferId};
use next_edit::{NextEdit, RuleKind};
use ropey::Rope;
use std::ops::Range;

/// The time in ms after which an edit counts as seen, if its client never reports what it shows.
pub const SEEN_AFTER_MS: u64 = 700;

/// Other lines that the user edits until the offered edit counts as passed by.
pub const LINES_ELSEWHERE_MAX: usize = 2;

/// The changes of one message, and the document before and after it.
pub struct Message<'a> {
    pub uri: &'a str,
    pub was: &'a Rope,
    pub is: &'a Rope,
    pub edits: &'a [Edit],
}

/// An offered edit whose outcome is open.
#[derive(Debug)]
pub struct Live {
    pub id: OfferId,
    pub edit: NextEdit,
    /// What is replaced, in characters of the document as it is now.
    pub place: Range<usize>,
    cursor_line: usize,
    offered_ms: u64,
    shown: bool,
    /// True if the client reports the edits that it shows.
    client_reports: bool,
    /// The user has begun to write at the place.
    is_touched: bool,
    /// A change has rewritten the place together with what is around it.
    is_rewritten: bool,
    /// Something was changed since it was last found that is not at the place.
    is_left: bool,
    /// Where else the user made changes since: the document and the line.
    elsewhere: Vec<(String, usize)>,
}

/// Where a change is, seen from a place.
#[derive(Debug, PartialEq, Eq)]
pub enum Side {
    Here,
    Elsewhere,
    /// It changes the place together with what is around it.
    Across,
}

impl Side {
    /// Moves a place along with a change.
    pub fn follow(place: &mut Range<usize>, edit: &Edit) -> Side {
        let end = edit.start + edit.removed;
        let inserted = edit.inserted.chars().count();
        if edit.start >= place.start && end <= place.end {
            place.end = place.end + inserted - edit.removed;
            Side::Here
        } else if end <= place.start {
            *place = place.start + inserted - edit.removed..place.end + inserted - edit.removed;
            Side::Elsewhere
        } else if edit.start >= place.end {
            Side::Elsewhere
        } else {
            Side::Across
        }
    }
}

impl Live {
    pub fn new(
        id: OfferId,
        edit: NextEdit,
        place: Range<usize>,
        cursor_line: usize,
        offered_ms: u64,
        client_reports: bool,
    ) -> Live {
        let elsewhere = vec![];
        Live {
            id,
            edit,
            place,
            cursor_line,
            offered_ms,
            shown: false,
            client_reports,
            is_touched: false,
            is_rewritten: false,
            is_left: false,
            elsewhere,
        }
    }

    pub fn is_shown(&mut self) {
        self.shown = true;
    }

    /// Returns whether the user is writing at the place, so that the outcome is about to show.
    pub fn is_touched(&self) -> bool {
        self.is_touched
    }

    /// Notes that the same edit was found again.
    pub fn is_found_again(&mut self) {
        self.is_left = false;
    }

    /// Returns whether all that was changed since it was last found is at its place.
    pub fn is_all_that_changes(&self) -> bool {
        !self.is_left
    }

    /// Ends the edit. What is left of it is understood when the client makes it later.
    pub fn ended(self, outcome: NextEditOutcome) -> Ended {
        let place = (!self.is_rewritten).then_some(self.place);
        Ended { id: self.id, edit: self.edit, outcome, place }
    }

    /// Returns whether this is the same edit at the same place. A model may have been asked
    /// elsewhere for it.
    pub fn is(&self, edit: &NextEdit, place: &Range<usize>) -> bool {
        let are_by_model = [&self.edit, edit].iter().all(|one| one.kind == RuleKind::Model);
        let is_rule = self.edit.rule == edit.rule || are_by_model;
        let is_same = self.edit.file == edit.file && is_rule;
        is_same && self.place == *place && self.edit.new == edit.new && !self.is_touched
    }

    /// Returns an outcome that the user can only have meant if the edit was seen. An edit that a
    /// client does not report, although it reports what it shows, was not on screen.
    pub fn left(&self, outcome: NextEditOutcome, now_ms: u64) -> NextEditOutcome {
        let visible_ms = now_ms.saturating_sub(self.offered_ms);
        let is_seen = self.shown || (!self.client_reports && visible_ms >= SEEN_AFTER_MS);
        if is_seen { outcome } else { NextEditOutcome::Unseen }
    }

    /// Returns what a message makes of the edit. None while that is open.
    pub fn changed(&mut self, message: &Message, now_ms: u64) -> Option<NextEditOutcome> {
        if message.uri != &*self.edit.file {
            self.is_left = true;
            return self.edited_elsewhere(message, now_ms);
        }
        if !self.is_touched && self.is_made_by(message) {
            return Some(NextEditOutcome::Accepted);
        }
        let (mut is_here, mut is_elsewhere) = (false, false);
        for edit in message.edits {
            match Side::follow(&mut self.place, edit) {
                Side::Here => is_here = true,
                Side::Elsewhere => (is_elsewhere, self.is_left) = (true, true),
                // A formatter or another program may have changed more than this place.
                Side::Across => {
                    self.is_rewritten = true;
                    return Some(self.left(NextEditOutcome::Superseded, now_ms));
                }
            }
        }
        if is_here {
            self.is_touched = !is_text(message.is, &self.place, &self.edit.old);
            if is_text(message.is, &self.place, &self.edit.new) {
                return Some(NextEditOutcome::MadeByHand);
            }
        }
        if !is_elsewhere {
            return None;
        }
        if self.is_touched {
            return Some(self.left(NextEditOutcome::EditedOtherwise, now_ms));
        }
        self.edited_elsewhere(message, now_ms)
    }

    /// Returns whether the message makes the whole edit and nothing else. The texts are compared,
    /// because clients report the same change at different places.
    fn is_made_by(&self, message: &Message) -> bool {
        let (old, new) = (self.edit.old.chars().count(), self.edit.new.chars().count());
        let expected_chars = (message.was.len_chars() + new).checked_sub(old);
        if expected_chars != Some(message.is.len_chars())
            || !is_text(message.was, &self.place, &self.edit.old)
        {
            return false;
        }
        let mut expected = message.was.clone();
        expected.remove(self.place.clone());
        expected.insert(self.place.start, &self.edit.new);
        expected == *message.is
    }

    fn edited_elsewhere(&mut self, message: &Message, now_ms: u64) -> Option<NextEditOutcome> {
        for edit in message.edits {
            let line = message.is.char_to_line(edit.start.min(message.is.len_chars()));
            let is_at_cursor = message.uri == &*self.edit.file && line == self.cursor_line;
            let is_known = self.elsewhere.iter().any(|(uri, at)| uri == message.uri && *at == line);
            if !is_at_cursor && !is_known {
                self.elsewhere.push((message.uri.to_owned(), line));
            }
            if self.elsewhere.len() >= LINES_ELSEWHERE_MAX {
                return Some(self.left(NextEditOutcome::PassedBy, now_ms));
            }
        }
        None
    }
}

/// An edit whose outcome is known. A client may have it on screen still.
pub struct Ended {
    pub id: OfferId,
    pub edit: NextEdit,
    pub outcome: NextEditOutcome,
    /// What it would replace, while that is known.
    pub place: Option<Range<usize>>,
}

impl Ended {
    /// Moves the place along with the changes of a message.
    pub fn follow(&mut self, message: &Message) {
        if message.uri == &*self.edit.file {
            for edit in message.edits {
                self.place.take_if(|place| Side::follow(place, edit) == Side::Across);
            }
        }
    }

    /// Returns true if the edit ended without the user's doing. They may decide on it yet.
    pub fn has_no_verdict(&self) -> bool {
        use NextEditOutcome::{PassedBy, Superseded, Unseen};
        matches!(self.outcome, PassedBy | Superseded | Unseen)
    }

    /// Returns true if such an edit stands in this text, so that the client that says so has made
    /// it.
    pub fn was_made(&self, text: &Rope) -> bool {
        self.has_no_verdict()
            && self.place.as_ref().is_some_and(|place| is_text(text, place, &self.edit.new))
    }
}

fn is_text(rope: &Rope, place: &Range<usize>, text: &str) -> bool {
    place.end <= rope.len_chars() && rope.slice(place.clone()) == *text
}

#[cfg(test)]
mod tests;
