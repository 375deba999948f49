//! The user's recent changes, which a prompt may show: lines as they were and as they are now. All
//! edits at one place make one change, however many keys they took. Text that was typed and deleted
//! again is not a change.

use crate::document::{Document, Edit, Source};
use ropey::Rope;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ops::Range;

/// Changes that are remembered. The oldest are dropped first.
const CHANGES: usize = 16;

/// An edit at most this many lines from the last one continues the same change.
const NEAR_LINES: usize = 2;

/// The most lines of a change, before or after it. A larger one comes from a formatter, another
/// program or a paste.
const CHANGE_LINES: usize = 12;

/// The longest line of a change in characters. Longer lines are not meant for people to read.
const CHANGE_LINE_CHARS: usize = 160;

#[derive(Debug, Default)]
pub struct RecentEdits {
    /// The oldest change comes first.
    settled: VecDeque<Change>,
    ongoing: Option<OngoingChange>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub source: Source,
    pub before: Vec<String>,
    pub after: Vec<String>,
    /// The whole document before and after the change. A secret may stand anywhere in it, which the
    /// changed lines alone do not show.
    documents: [Rope; 2],
    may_quote: OnceCell<bool>,
}

/// A change that is still being made.
#[derive(Debug)]
struct OngoingChange {
    source: Source,
    /// The document before the first edit of the change, and the lines that change.
    was: Rope,
    was_lines: Range<usize>,
    /// The document after the last edit of the change, and the same lines there.
    is: Rope,
    is_lines: Range<usize>,
}

impl RecentEdits {
    /// Notes an edit that turned the text `was` into `document`.
    pub fn edit(&mut self, document: &Document, was: Rope, edit: &Edit) {
        let is = document.text.clone();
        let line = |text: &Rope, at: usize| text.char_to_line(at.min(text.len_chars()));
        let from = line(&was, edit.start);
        let to = line(&was, edit.start + edit.removed) + 1;
        let now_to = line(&is, edit.start + edit.inserted.chars().count()) + 1;
        let ongoing = self.ongoing.take_if(|ongoing| {
            let near = ongoing.is_lines.start.saturating_sub(NEAR_LINES)
                ..ongoing.is_lines.end + NEAR_LINES;
            ongoing.source.path == document.path && from < near.end && near.start < to
        });
        let Some(ongoing) = ongoing else {
            self.settle();
            let source = document.source();
            let (was_lines, is_lines) = (from..to, from..now_to);
            self.ongoing = Some(OngoingChange { source, was, was_lines, is, is_lines });
            return;
        };
        // Lines that the edit reaches beyond the change so far are the same in both texts.
        let above = ongoing.is_lines.start.saturating_sub(from);
        let below = to.saturating_sub(ongoing.is_lines.end);
        let was_lines = ongoing.was_lines.start - above..ongoing.was_lines.end + below;
        let end = ongoing.is_lines.end.max(to) + now_to - to;
        let is_lines = ongoing.is_lines.start - above..end;
        self.ongoing = Some(OngoingChange { was_lines, is, is_lines, ..ongoing });
    }

    /// The documents that were changed.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        let settled = self.settled.iter().map(|change| &change.source);
        settled.chain(self.ongoing.iter().map(|ongoing| &ongoing.source))
    }

    /// The changes so far, the oldest first.
    pub fn all(&mut self) -> impl DoubleEndedIterator<Item = &Change> {
        self.settle();
        self.settled.iter()
    }

    fn settle(&mut self) {
        let Some(mut change) = self.ongoing.take().and_then(OngoingChange::change) else { return };
        // Changing the same lines again makes one change of both.
        let earlier = self.settled.iter().position(|earlier| {
            earlier.source.path == change.source.path
                && !earlier.after.is_empty()
                && earlier.after == change.before
        });
        if let Some(earlier) = earlier.and_then(|at| self.settled.remove(at)) {
            change.before = earlier.before;
            change.documents[0] = earlier.documents[0].clone();
            // A document that was refused stays so. The text after is searched in any case.
            if earlier.may_quote.get() == Some(&false) {
                change.may_quote = earlier.may_quote;
            }
        }
        if change.before != change.after {
            self.settled.push_back(change);
        }
        while self.settled.len() > CHANGES {
            self.settled.pop_front();
        }
    }
}

impl OngoingChange {
    fn change(self) -> Option<Change> {
        let lines = |text: &Rope, lines: Range<usize>| -> Option<Vec<String>> {
            let lines = lines.start..lines.end.min(text.len_lines());
            if lines.len() > CHANGE_LINES + 2 * NEAR_LINES {
                return None;
            }
            let line = |number| {
                let line = text.line(number);
                let whole = line.len_chars() <= CHANGE_LINE_CHARS;
                whole.then(|| line.to_string().trim_end().to_owned())
            };
            lines.map(line).collect()
        };
        let before = lines(&self.was, self.was_lines)?;
        let after = lines(&self.is, self.is_lines)?;
        let same = |(a, b): &(&String, &String)| a == b;
        let head = before.iter().zip(&after).take_while(same).count();
        let (before, after) = (&before[head..], &after[head..]);
        let tail = before.iter().rev().zip(after.iter().rev()).take_while(same).count();
        let text_lines = |lines: &[String]| -> Vec<String> {
            let lines = &lines[..lines.len() - tail];
            lines.iter().filter(|line| !line.trim().is_empty()).cloned().collect()
        };
        let (before, after) = (text_lines(before), text_lines(after));
        let few = before.len() <= CHANGE_LINES && after.len() <= CHANGE_LINES;
        let (source, documents) = (self.source, [self.was, self.is]);
        let may_quote = OnceCell::new();
        (before != after && few).then_some(Change { source, before, after, documents, may_quote })
    }
}

impl Change {
    /// Returns true if `may_quote` permits the whole document before the change and after it.
    pub fn is_permitted(&self, may_quote: impl Fn(&Rope) -> bool) -> bool {
        *self.may_quote.get_or_init(|| self.documents.iter().all(may_quote))
    }

    /// The change as lines of a unified diff.
    pub fn diff(&self) -> String {
        let before = self.before.iter().map(|line| format!("-{line}\n"));
        before.chain(self.after.iter().map(|line| format!("+{line}\n"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Encoding, Position};

    struct Typist {
        document: Document,
        changes: RecentEdits,
    }

    impl Typist {
        fn at(text: &str) -> Typist {
            let document = Document {
                path: "/p/a.rs".into(),
                language: "rust".into(),
                version: 1,
                text: text.into(),
            };
            Typist { document, changes: RecentEdits::default() }
        }

        /// Replaces the first `from` by `to`.
        fn replace(&mut self, from: &str, to: &str) -> &mut Typist {
            let text = self.document.text.to_string();
            let start = text.find(from).unwrap();
            let position = |at: usize| {
                let line = text[..at].matches('\n').count() as u32;
                let column = text[..at].rsplit('\n').next().unwrap().len() as u32;
                Position { line, column }
            };
            let range = (position(start), position(start + from.len()));
            let was = self.document.text.clone();
            let edit = self.document.apply(Some(range), to.into(), Encoding::Utf8).unwrap();
            self.changes.edit(&self.document, was, &edit);
            self
        }

        fn diffs(&mut self) -> Vec<String> {
            self.changes.all().map(Change::diff).collect()
        }
    }

    fn lines(count: usize) -> String {
        (0..count).map(|number| format!("line {number};\n")).collect()
    }

    #[test]
    fn edits_at_one_place_are_one_change() {
        let mut typist = Typist::at("fn a() {\n}\nfn b() {}\n");
        for (from, to) in [("{\n", "{\n    \n"), ("    \n", "    l\n"), ("    l\n", "    let x;\n")]
        {
            typist.replace(from, to);
        }
        assert_eq!(typist.diffs(), ["+    let x;\n"]);
    }

    #[test]
    fn an_edit_further_away_is_another_change() {
        let mut typist = Typist::at(&lines(20));
        typist.replace("line 3", "row 3").replace("line 12", "row 12").replace("line 14", "row 14");
        assert_eq!(
            typist.diffs(),
            [
                "-line 3;\n+row 3;\n",
                "-line 12;\n-line 13;\n-line 14;\n+row 12;\n+line 13;\n+row 14;\n"
            ]
        );
    }

    #[test]
    fn an_edit_of_the_line_above_continues_the_change() {
        let mut typist = Typist::at(&lines(8));
        typist.replace("line 5;\n", "five;\nand a half;\n").replace("line 4", "four");
        assert_eq!(typist.diffs(), ["-line 4;\n-line 5;\n+four;\n+five;\n+and a half;\n"]);
    }

    #[test]
    fn changing_the_same_lines_again_makes_one_change() {
        let mut typist = Typist::at(&lines(30));
        typist.replace("line 3;", "row 3;").replace("line 20", "row 20").replace("row 3;", "r 3;");
        assert_eq!(typist.diffs(), ["-line 20;\n+row 20;\n", "-line 3;\n+r 3;\n"]);
        typist.replace("row 20", "line 20");
        assert_eq!(typist.diffs(), ["-line 3;\n+r 3;\n"], "undone");
    }

    #[test]
    fn large_changes_and_long_lines_are_left_out() {
        let mut typist = Typist::at(&lines(60));
        let whole = typist.document.text.to_string();
        typist.replace(&whole, &whole.replace("line", "row"));
        assert!(typist.diffs().is_empty());
        typist.replace("row 7", &"x".repeat(CHANGE_LINE_CHARS));
        assert!(typist.diffs().is_empty(), "a line that nobody reads");
    }

    #[test]
    fn the_oldest_changes_are_dropped() {
        let mut typist = Typist::at(&lines(200));
        for number in (0..200).step_by(8) {
            typist.replace(&format!("line {number};"), &format!("row {number};"));
        }
        let diffs = typist.diffs();
        assert_eq!(diffs.len(), CHANGES);
        assert_eq!(diffs.last().unwrap(), "-line 192;\n+row 192;\n");
    }
}
