//! The offers that the user rejected last, with the lines on which that was. A rejected text stays
//! away from its line, so that nobody has to reject it twice.

use completion::document::Edit;
use ropey::Rope;
use std::collections::VecDeque;

/// Rejects that are remembered.
const REJECTS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct Rejected {
    /// The oldest first.
    rejects: VecDeque<Reject>,
}

#[derive(Debug)]
struct Reject {
    uri: String,
    /// Follows the edits above it.
    line: usize,
    /// The line as it would have been, with the lines below it that the offer had.
    text: String,
}

impl Rejected {
    /// Notes that the user rejected an offer that began at this character of a text.
    pub fn note(&mut self, uri: &str, text: &Rope, start: usize, offer: &str) {
        let start = start.min(text.len_chars());
        let line = text.char_to_line(start);
        let before = text.slice(text.line_to_char(line)..start).to_string();
        if self.rejects.len() == REJECTS_MAX {
            self.rejects.pop_front();
        }
        let text = whole(&before, offer);
        self.rejects.push_back(Reject { uri: uri.to_owned(), line, text });
    }

    /// Follows an edit of a document whose text was `was` before.
    pub fn edited(&mut self, uri: &str, was: &Rope, edit: &Edit) {
        if self.rejects.is_empty() {
            return;
        }
        let end = (edit.start + edit.removed).min(was.len_chars());
        let (first, last) = (was.char_to_line(edit.start.min(end)), was.char_to_line(end));
        let inserted = Rope::from_str(&edit.inserted).len_lines() - 1;
        if last - first == inserted {
            return;
        }
        for reject in self.rejects.iter_mut().filter(|one| one.uri == uri && one.line >= last) {
            // An edit that begins before the line leaves the line to what stood behind the edit.
            if reject.line > last || edit.start < was.line_to_char(reject.line) {
                reject.line = reject.line - (last - first) + inserted;
            }
        }
    }

    pub fn closed(&mut self, uri: &str) {
        self.rejects.retain(|reject| reject.uri != uri);
    }

    pub fn forget(&mut self) {
        self.rejects.clear();
    }

    /// Returns how many of the last rejects were on this line, one after the other.
    pub fn count_on(&self, uri: &str, line: usize) -> usize {
        let newest_first = self.rejects.iter().rev();
        newest_first.take_while(|reject| reject.uri == uri && reject.line == line).count()
    }

    /// Returns true if the user rejected what this offer would make of its line. An offer of
    /// several lines is rejected along with its first, and not the other way round.
    pub fn holds(&self, uri: &str, line: usize, line_before: &str, offer: &str) -> bool {
        let offered = whole(line_before, offer);
        self.rejects.iter().any(|reject| {
            let rest = offered.strip_prefix(&reject.text);
            let is_same = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'));
            is_same && reject.uri == uri && reject.line == line
        })
    }
}

/// Returns the line that an offer makes of what stands before it, without blanks at its end.
fn whole(line_before: &str, offer: &str) -> String {
    format!("{line_before}{}", offer.replace("\r\n", "\n")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const URI: &str = "file:///a.py";

    fn rejected(text: &str, start: usize, offer: &str) -> Rejected {
        let mut rejected = Rejected::default();
        rejected.note(URI, &Rope::from_str(text), start, offer);
        rejected
    }

    #[test]
    fn a_rejected_text_stays_away_from_its_line() {
        let rejected = rejected("import os\n\n", 10, "from typing import List");
        assert!(rejected.holds(URI, 1, "", "from typing import List"));
        assert!(
            rejected.holds(URI, 1, "from ", "typing import List  "),
            "its first word was typed"
        );
        assert!(rejected.holds(URI, 1, "", "from typing import List\nimport re"));
        assert!(!rejected.holds(URI, 1, "", "from typing import Lists"));
        assert!(!rejected.holds(URI, 1, "", "from typing"));
        assert!(!rejected.holds(URI, 2, "", "from typing import List"), "another line");
        assert!(!rejected.holds("file:///b.py", 1, "", "from typing import List"));
    }

    #[test]
    fn the_first_line_of_a_rejected_block_may_come_alone() {
        let rejected = rejected("", 0, "if a:\r\n    b()\r\n");
        assert!(rejected.holds(URI, 0, "if", " a:\n    b()"));
        assert!(!rejected.holds(URI, 0, "", "if a:"));
    }

    #[test]
    fn a_line_is_followed_when_lines_above_it_come_and_go() {
        let text = Rope::from_str("a\nb\nc\n");
        let edit =
            |start, removed, inserted: &str| Edit { start, removed, inserted: inserted.to_owned() };
        let moved = |edit: Edit| {
            let mut rejected = rejected("a\nb\nc\n", 4, "d");
            rejected.edited(URI, &text, &edit);
            (0..6).find(|&line| rejected.holds(URI, line, "", "d"))
        };
        assert_eq!(moved(edit(0, 0, "x\ny\n")), Some(4));
        assert_eq!(moved(edit(0, 2, "")), Some(1));
        assert_eq!(moved(edit(4, 0, "\n")), Some(2), "the line was broken behind its beginning");
        assert_eq!(moved(edit(3, 0, "\n")), Some(3), "a line break at the end of the line above");
        assert_eq!(moved(edit(4, 1, "x")), Some(2));
    }

    #[test]
    fn rejects_count_until_one_is_on_another_line() {
        let text = Rope::from_str("a\nb\n");
        let mut rejected = Rejected::default();
        for (start, offer) in [(0, "x"), (2, "y"), (2, "z")] {
            rejected.note(URI, &text, start, offer);
        }
        assert_eq!((rejected.count_on(URI, 0), rejected.count_on(URI, 1)), (0, 2));
        (0..2 * REJECTS_MAX).for_each(|_| rejected.note(URI, &text, 2, "w"));
        assert_eq!(rejected.count_on(URI, 1), REJECTS_MAX);
        rejected.closed(URI);
        assert_eq!(rejected.count_on(URI, 1), 0);
    }
}
