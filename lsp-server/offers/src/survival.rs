//! Edit survival: what stands at the place of an offer later. It says how much of an accepted offer
//! is kept, and what the user writes instead of a rejected one.
//!
//! A place is a range of characters that moves with the edits around it. If an edit replaces all of
//! it, as a formatter or a cut does, its text is searched for in the whole file.

use crate::kept_share::kept_share;
use crate::tracker::with_line_feeds;
use completion::document::{Document, Edit};
use feedback::event::{KeptCheck, OfferId};
use ropey::Rope;
use std::collections::{HashMap, HashSet, VecDeque};

/// An accepted text is looked at after this many milliseconds.
const CHECKS: [(KeptCheck, u64); 3] = [
    (KeptCheck::HalfMinute, 30_000),
    (KeptCheck::TwoMinutes, 120_000),
    (KeptCheck::TenMinutes, 600_000),
];

const LAST_CHECK_MS: u64 = CHECKS[CHECKS.len() - 1].1;

/// An accepted text that is gone as a whole within this time was undone. In milliseconds.
const UNDO_MS: u64 = 10_000;

/// A line that was not touched for this long is taken as finished. In milliseconds.
const SETTLE_MS: u64 = 10_000;

/// Places that are watched in one session. The oldest give way.
const WATCH_LIMIT: usize = 128;

/// The longest text that is recorded as the replacement of an offer, in characters.
const INSTEAD_CHARS: usize = 200;

#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    Kept {
        id: OfferId,
        check: KeptCheck,
        share: f32,
    },
    /// `text` begins with what healing would have reproduced, and ends with a line
    /// break where the user has left the line there.
    Instead {
        id: OfferId,
        text: String,
    },
}

#[derive(Debug)]
struct Watch {
    id: OfferId,
    uri: String,
    start: usize,
    end: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Taken {
        text: String,
        at_ms: u64,
        /// Index of the next of [`CHECKS`].
        next: usize,
        /// The command came first, and the text is yet to come.
        arriving: bool,
        /// It was undone at once, and may come back by a redo.
        undone: bool,
        undone_is_told: bool,
    },
    Instead {
        healing: String,
        /// The number of lines that are recorded: those that were typed as offered, and the first
        /// one that differs.
        lines: usize,
        touched_ms: u64,
        /// The user has moved on.
        left: bool,
    },
}

/// What an edit leaves of a place.
#[derive(Debug, PartialEq, Eq)]
enum Moved {
    Still,
    Gone,
}

impl Watch {
    fn edit(&mut self, edit: &Edit, now_ms: u64) -> Moved {
        let (from, to) = (edit.start, edit.start + edit.removed);
        let inserted = edit.inserted.chars().count();
        let (start, end) = (self.start, self.end);
        let after = |at: usize| at - edit.removed + inserted;
        let arrives = match &mut self.kind {
            Kind::Taken { arriving, .. } => std::mem::take(arriving) && from == end,
            Kind::Instead { .. } => false,
        };
        match &mut self.kind {
            Kind::Taken { text, undone, .. } if *undone && puts_back(edit, start, text) => {
                *undone = false;
                self.end = after(end);
            }
            Kind::Taken { .. } if arrives => self.end = after(end.max(to)),
            Kind::Taken { .. } if from > end || (from == end && end > start) => {}
            Kind::Taken { .. } if to <= start => {
                (self.start, self.end) = (after(start), after(end));
            }
            Kind::Taken { at_ms, undone, .. } if from <= start && to >= end => {
                let at_once = now_ms.saturating_sub(*at_ms) < UNDO_MS;
                *undone = at_once && from == start && to == end && inserted == 0;
                (self.start, self.end) = (from, from + inserted);
            }
            Kind::Taken { .. } => {
                // What replaces a border lies outside.
                self.start = if from < start { from + inserted } else { start };
                self.end = if to > end { from } else { after(end) };
            }
            Kind::Instead { left, .. } if from > end => *left = true,
            Kind::Instead { left, .. } if to < start || (to == start && edit.removed > 0) => {
                *left = true;
                (self.start, self.end) = (after(start), after(end));
            }
            // Text before the place was rewritten too: no longer what followed it.
            Kind::Instead { .. } if from < start => return Moved::Gone,
            Kind::Instead { touched_ms, .. } => {
                *touched_ms = now_ms;
                self.end = after(end.max(to));
            }
        }
        Moved::Still
    }

    fn text(&self, text: &Rope) -> String {
        let end = self.end.min(text.len_chars());
        text.slice(self.start.min(end)..end).to_string()
    }

    /// Returns what is found now. `true` if there is nothing more to wait for.
    fn look(
        &mut self,
        text: &Rope,
        now_ms: u64,
        closing: bool,
        may_tell: MayTell,
    ) -> (Option<Finding>, bool) {
        let stands = self.text(text);
        let id = self.id.clone();
        match &mut self.kind {
            Kind::Taken { undone: true, undone_is_told, at_ms, .. } => {
                let undone = Finding::Kept { id, check: KeptCheck::Undone, share: 0.0 };
                let is_news = !std::mem::replace(undone_is_told, true);
                let is_old = now_ms.saturating_sub(*at_ms) >= LAST_CHECK_MS;
                (is_news.then_some(undone), closing || is_old)
            }
            Kind::Taken { text: taken, at_ms, next, .. } => {
                // A daemon that slept reports the last check that is due alone.
                let age = now_ms.saturating_sub(*at_ms);
                let due = CHECKS.iter().rposition(|(_, after)| age >= *after);
                let Some(due) = due.filter(|due| due >= next) else { return (None, closing) };
                *next = due + 1;
                let share = kept_share(taken, &stands, text);
                let kept = Finding::Kept { id, check: CHECKS[due].0, share };
                (Some(kept), closing || *next == CHECKS.len())
            }
            Kind::Instead { healing, lines, touched_ms, left } => {
                let end = stands.match_indices('\n').map(|(at, _)| at).nth(*lines - 1);
                let settled = closing
                    || *left
                    || end.is_some()
                    || now_ms.saturating_sub(*touched_ms) >= SETTLE_MS;
                if !settled {
                    return (None, false);
                }
                let moved_on = closing || *left || end.is_some();
                let line = stands[..end.unwrap_or(stands.len())].trim_end();
                if line.is_empty() || !may_tell(text, self.start) {
                    return (None, true);
                }
                let typed = format!("{healing}{line}");
                let fits = line.chars().count() <= INSTEAD_CHARS;
                let text = if !fits {
                    typed.chars().take(healing.chars().count() + INSTEAD_CHARS).collect()
                } else if moved_on && ends_line(text, self.start, line) {
                    // The place where the user ended the line belongs to what was meant.
                    typed + "\n"
                } else {
                    typed
                };
                (Some(Finding::Instead { id, text }), true)
            }
        }
    }
}

/// Returns true if an edit does nothing but put a text in at this place. Editors write their own
/// line breaks.
fn puts_back(edit: &Edit, start: usize, text: &str) -> bool {
    edit.start == start
        && edit.removed == 0
        && with_line_feeds(&edit.inserted) == with_line_feeds(text)
}

/// Returns whether only blanks follow `line`, which begins at `start`, up to the end of the line.
fn ends_line(text: &Rope, start: usize, line: &str) -> bool {
    let end = (start + line.chars().count()).min(text.len_chars());
    let rest = text.slice(end..);
    rest.chars().find(|c| *c != ' ' && *c != '\t').is_none_or(|c| matches!(c, '\n' | '\r'))
}

/// Says of a text whether what the user wrote at a place of it may be recorded.
pub type MayTell = fn(&Rope, usize) -> bool;

#[derive(Debug)]
pub struct SurvivalWatch {
    watches: VecDeque<Watch>,
    may_tell: MayTell,
}

impl SurvivalWatch {
    pub fn new(may_tell: MayTell) -> SurvivalWatch {
        SurvivalWatch { watches: VecDeque::new(), may_tell }
    }

    /// The offer was accepted. `chars_in_document` characters of its text are in the document
    /// already.
    pub fn taken(
        &mut self,
        id: OfferId,
        uri: String,
        start: usize,
        text: String,
        chars_in_document: usize,
        now_ms: u64,
    ) {
        let arriving = chars_in_document < text.chars().count();
        let kind = Kind::Taken {
            text,
            at_ms: now_ms,
            next: 0,
            arriving,
            undone: false,
            undone_is_told: false,
        };
        self.watch(Watch { id, uri, start, end: start + chars_in_document, kind });
    }

    /// Nothing was accepted at `start`, where the user typed `typed` as it was offered.
    pub fn not_taken(
        &mut self,
        id: OfferId,
        uri: String,
        start: usize,
        typed: &str,
        healing: String,
        now_ms: u64,
    ) {
        let lines = 1 + typed.matches('\n').count();
        let kind = Kind::Instead { healing, lines, touched_ms: now_ms, left: false };
        self.watch(Watch { id, uri, start, end: start + typed.chars().count(), kind });
    }

    /// Nothing more is recorded about these offers.
    pub fn forget(&mut self, offers: &HashSet<OfferId>) {
        self.watches.retain(|watch| !offers.contains(&watch.id));
    }

    /// Returns whether the text that is typed at this place is watched already.
    pub fn awaits(&self, uri: &str, cursor: usize) -> bool {
        self.watches.iter().any(|watch| {
            let waits = matches!(watch.kind, Kind::Instead { left: false, .. });
            waits && watch.uri == uri && (watch.start..=watch.end).contains(&cursor)
        })
    }

    fn watch(&mut self, watch: Watch) {
        if self.watches.len() == WATCH_LIMIT {
            self.watches.pop_front();
        }
        self.watches.push_back(watch);
    }

    /// The document changed. `edit` counts in characters of the text before the change.
    pub fn edit(&mut self, uri: &str, edit: &Edit, now_ms: u64) {
        if edit.removed > 0 || !edit.inserted.is_empty() {
            self.watches
                .retain_mut(|watch| watch.uri != uri || watch.edit(edit, now_ms) == Moved::Still);
        }
    }

    /// The same for the place that was watched last, because the edit that decided its offer came
    /// before the place was watched.
    pub fn edit_newest(&mut self, edit: &Edit, now_ms: u64) {
        if let Some(newest) = self.watches.back_mut()
            && newest.edit(edit, now_ms) == Moved::Gone
        {
            self.watches.pop_back();
        }
    }

    /// The places in a document that are watched, the oldest first.
    pub fn places(&self, uri: &str) -> Vec<std::ops::Range<usize>> {
        let there = self.watches.iter().filter(|watch| watch.uri == uri);
        there.map(|watch| watch.start..watch.end).collect()
    }

    /// Returns the offers in a document whose places are watched.
    pub fn watched_in(&self, uri: &str) -> impl Iterator<Item = &OfferId> {
        self.watches.iter().filter(move |watch| watch.uri == uri).map(|watch| &watch.id)
    }

    /// Returns what is found by now.
    pub fn look(&mut self, documents: &HashMap<String, Document>, now_ms: u64) -> Vec<Finding> {
        let (mut findings, may_tell) = (vec![], self.may_tell);
        self.watches.retain_mut(|watch| {
            let Some(document) = documents.get(&watch.uri) else { return false };
            let (finding, done) = watch.look(&document.text, now_ms, false, may_tell);
            findings.extend(finding);
            !done
        });
        findings
    }

    /// The document is about to be closed, so what stands there now is all that will be known.
    pub fn close(&mut self, uri: &str, document: &Document, now_ms: u64) -> Vec<Finding> {
        let (mut findings, may_tell) = (vec![], self.may_tell);
        self.watches.retain_mut(|watch| {
            if watch.uri != uri {
                return true;
            }
            findings.extend(watch.look(&document.text, now_ms, true, may_tell).0);
            false
        });
        findings
    }
}

#[cfg(test)]
impl Default for SurvivalWatch {
    fn default() -> SurvivalWatch {
        SurvivalWatch::new(|_, _| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URI: &str = "file:///a.rs";

    /// A document, and edits that both it and what is watched in it see.
    struct Desk {
        documents: HashMap<String, Document>,
        survival: SurvivalWatch,
    }

    impl Desk {
        fn new(text: &str) -> Desk {
            let document = Document {
                path: "/a.rs".into(),
                language: "rust".into(),
                version: 1,
                text: Rope::from_str(text),
            };
            let documents = HashMap::from([(URI.to_owned(), document)]);
            Desk { documents, survival: SurvivalWatch::default() }
        }

        fn text(&mut self) -> &mut Rope {
            &mut self.documents.get_mut(URI).unwrap().text
        }

        fn edit(&mut self, start: usize, removed: usize, inserted: &str, now_ms: u64) {
            self.text().remove(start..start + removed);
            self.text().insert(start, inserted);
            let edit = Edit { start, removed, inserted: inserted.into() };
            self.survival.edit(URI, &edit, now_ms);
        }

        fn look(&mut self, now_ms: u64) -> Vec<Finding> {
            self.survival.look(&self.documents, now_ms)
        }
    }

    fn kept(check: KeptCheck, share: f32) -> Vec<Finding> {
        vec![Finding::Kept { id: "o".into(), check, share }]
    }

    fn instead(text: &str) -> Vec<Finding> {
        vec![Finding::Instead { id: "o".into(), text: text.into() }]
    }

    /// `call(x, y);` was taken on the second line.
    fn taken() -> Desk {
        let mut desk = Desk::new("fn a() {\n    call(x, y);\n}\n");
        desk.survival.taken("o".into(), URI.into(), 13, "call(x, y);".into(), 11, 0);
        desk
    }

    #[test]
    fn what_is_left_alone_is_kept_at_every_look() {
        let mut desk = taken();
        assert_eq!(desk.look(29_999), []);
        assert_eq!(desk.look(30_000), kept(KeptCheck::HalfMinute, 1.0));
        assert_eq!(desk.look(30_001), []);
        assert_eq!(desk.look(120_000), kept(KeptCheck::TwoMinutes, 1.0));
        assert_eq!(desk.look(700_000), kept(KeptCheck::TenMinutes, 1.0));
        assert_eq!(desk.look(9_000_000), []);
    }

    #[test]
    fn edits_above_move_the_place_and_edits_in_it_cost() {
        let mut desk = taken();
        desk.edit(0, 0, "use b;\n", 1);
        desk.edit(25, 1, "value", 2);
        assert_eq!(desk.text().to_string(), "use b;\nfn a() {\n    call(value, y);\n}\n");
        // Nine of ten characters, blanks aside.
        assert_eq!(desk.look(30_000), kept(KeptCheck::HalfMinute, 0.9));
        desk.edit(20, 15, "", 31_000);
        assert_eq!(desk.look(120_000), kept(KeptCheck::TwoMinutes, 0.0));
    }

    #[test]
    fn a_formatter_and_a_move_within_the_file_cost_nothing() {
        let mut desk = taken();
        desk.edit(13, 11, "call(\n        x,\n        y\n    );", 1_000);
        assert_eq!(desk.look(30_000), kept(KeptCheck::HalfMinute, 1.0));
        desk.edit(9, 37, "", 40_000);
        desk.edit(0, 0, "// call(x, y);\n", 41_000);
        assert_eq!(desk.look(120_000), kept(KeptCheck::TwoMinutes, 1.0));
    }

    #[test]
    fn undone_at_once_is_told_at_once() {
        let mut desk = taken();
        desk.edit(13, 11, "", 2_000);
        assert_eq!(desk.look(2_000), kept(KeptCheck::Undone, 0.0));
        assert_eq!(desk.look(30_000), []);
        assert!(!desk.survival.watches.is_empty(), "it may come back");
        assert_eq!(desk.look(LAST_CHECK_MS), []);
        assert!(desk.survival.watches.is_empty());
        let mut late = taken();
        late.edit(13, 11, "", 20_000);
        assert_eq!(late.look(20_000), []);
        assert_eq!(late.look(30_000), kept(KeptCheck::HalfMinute, 0.0));
    }

    /// An offer that was accepted, undone and done again was worth nothing for good.
    #[test]
    fn what_is_undone_and_done_again_is_kept() {
        let mut desk = taken();
        desk.edit(13, 11, "", 2_000);
        assert_eq!(desk.look(2_000), kept(KeptCheck::Undone, 0.0));
        desk.edit(0, 0, "use b;\n", 3_000);
        desk.edit(20, 0, "call(x, y);", 4_000);
        assert_eq!(desk.look(4_000), []);
        assert_eq!(desk.look(30_000), kept(KeptCheck::HalfMinute, 1.0));
        desk.edit(25, 1, "value", 31_000);
        assert_eq!(desk.look(120_000), kept(KeptCheck::TwoMinutes, 0.9));

        let mut again = taken();
        again.edit(13, 11, "", 1_000);
        again.edit(13, 0, "call(x, y);", 2_000);
        assert_eq!(again.look(2_000), [], "it was back before anybody looked");
        again.edit(13, 11, "", 3_000);
        assert_eq!(again.look(3_000), kept(KeptCheck::Undone, 0.0));
        again.edit(13, 0, "other();", 4_000);
        assert_eq!(again.look(30_000), [], "another text is written there");
    }

    /// The place of what was deleted is empty, and what is written below does not go into it.
    #[test]
    fn what_was_deleted_is_not_found_again_in_what_is_written_below() {
        let mut desk = taken();
        desk.edit(9, 16, "", 20_000);
        assert_eq!(desk.text().to_string(), "fn a() {\n}\n");
        desk.edit(11, 0, "fn b() {\n    cell(x, z);\n}\n", 21_000);
        desk.edit(9, 0, "    cell(x, z);\n", 22_000);
        assert_eq!(desk.look(30_000), kept(KeptCheck::HalfMinute, 0.0));
    }

    #[test]
    fn a_command_that_comes_before_its_change_is_followed_to_its_place() {
        let mut desk = Desk::new("fn a() {\n    \n}\n");
        desk.survival.taken("o".into(), URI.into(), 13, "call(x);".into(), 0, 0);
        desk.edit(13, 0, "call(x);", 1);
        desk.edit(18, 1, "", 2);
        assert_eq!(desk.look(30_000), kept(KeptCheck::HalfMinute, 7.0 / 8.0));
    }

    #[test]
    fn what_was_typed_instead_is_told_once_the_line_is_left() {
        let mut desk = Desk::new("fn a() {\n    \n}\n");
        desk.survival.not_taken("o".into(), URI.into(), 13, "", "    ".into(), 0);
        assert!(desk.survival.awaits(URI, 13));
        for (i, c) in "go();".chars().enumerate() {
            desk.edit(13 + i, 0, &c.to_string(), i as u64);
            assert_eq!(desk.look(i as u64), []);
        }
        assert!(desk.survival.awaits(URI, 18) && !desk.survival.awaits(URI, 12));
        desk.edit(18, 0, "\n    ", 10);
        assert_eq!(desk.look(10), instead("    go();\n"));
        assert_eq!(desk.look(99_000), []);
    }

    #[test]
    fn it_is_told_after_a_pause_or_an_edit_elsewhere_or_at_the_end() {
        let typed = || {
            let mut desk = Desk::new("fn a() {\n    \n}\n");
            desk.survival.not_taken("o".into(), URI.into(), 13, "", String::new(), 0);
            desk.edit(13, 0, "stop", 5);
            desk.edit(16, 1, "re", 6);
            assert_eq!(desk.look(7), []);
            desk
        };
        assert_eq!(typed().look(6 + SETTLE_MS), instead("store"));
        let mut elsewhere = typed();
        elsewhere.edit(0, 0, "// top\n", 8);
        assert_eq!(elsewhere.look(8), instead("store\n"));
        let mut closed = typed();
        let document = closed.documents.remove(URI).unwrap();
        assert_eq!(closed.survival.close(URI, &document, 8), instead("store\n"));
    }

    /// A line that was typed as offered is no other text; the next one is.
    #[test]
    fn of_several_lines_the_one_that_parts_is_told_with_those_before_it() {
        let mut desk = Desk::new("fn a() {\n    go();\n    \n}\n");
        desk.survival.not_taken("o".into(), URI.into(), 13, "go();\n    ", String::new(), 0);
        desk.edit(23, 0, "stop();", 1);
        assert_eq!(desk.look(1), [], "the line may continue");
        desk.edit(30, 0, "\n    ", 2);
        assert_eq!(desk.look(2), instead("go();\n    stop();\n"));
    }

    #[test]
    fn several_lines_are_kept_line_by_line() {
        let mut desk = Desk::new("fn a() {\n    go();\n    stop();\n}\n");
        desk.survival.taken("o".into(), URI.into(), 13, "go();\n    stop();".into(), 17, 0);
        assert_eq!(desk.look(30_000), kept(KeptCheck::HalfMinute, 1.0));
        desk.edit(18, 12, "", 40_000);
        assert_eq!(desk.text().to_string(), "fn a() {\n    go();\n}\n");
        // Five of twelve characters, blanks aside.
        assert_eq!(desk.look(120_000), kept(KeptCheck::TwoMinutes, 5.0 / 12.0));
    }

    #[test]
    fn nothing_typed_is_nothing_told_and_a_rewritten_beginning_is_no_answer() {
        let mut desk = Desk::new("    let x = \n");
        desk.survival.not_taken("o".into(), URI.into(), 12, "", String::new(), 0);
        assert_eq!(desk.look(SETTLE_MS), []);
        desk.survival.not_taken("o".into(), URI.into(), 12, "", String::new(), 0);
        desk.edit(10, 2, "y", 1);
        assert_eq!(desk.look(SETTLE_MS), []);
        assert!(desk.survival.watches.is_empty());
    }

    #[test]
    fn no_more_is_watched_than_the_limit() {
        let mut desk = Desk::new("x");
        for i in 0..2 * WATCH_LIMIT {
            desk.survival.not_taken(i.to_string(), URI.into(), 0, "", String::new(), 0);
        }
        assert_eq!(desk.survival.watches.len(), WATCH_LIMIT);
    }
}
