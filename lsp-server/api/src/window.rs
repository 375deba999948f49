//! The text that a client works in, as far as it has shown it. Each request shows a window around
//! the cursor, and the window moves.

use crate::Around;
use crate::reading::{boundary, shared_bytes};
use std::ops::Range;

/// The length of the texts at both ends of a window by which it is found again, in bytes.
const ANCHOR_BYTES: usize = 200;

/// A shorter text may stand in several places.
const ANCHOR_MIN_BYTES: usize = 40;

/// A request in which more than so many bytes give way to as many others is about another text, as
/// is one in which most of it is gone and more than so many bytes are.
const REWRITTEN_BYTES: usize = 24;
const TAKEN_AWAY_BYTES: usize = 64;

/// The longest text that is kept, in bytes. A window that makes it longer begins it anew.
const TEXT_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    text: String,
    /// In bytes of the text, as is the window.
    cursor: usize,
    window: Range<usize>,
}

/// What has to be done to a known text to make it that of the next request, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Text that the window shows for the first time, above and below what was known.
    pub above: String,
    pub below: String,
    /// The bytes that the user has replaced, of the text with `above` and `below`.
    pub replaced: Range<usize>,
    pub by: String,
    cursor: usize,
    window: Range<usize>,
}

impl Change {
    /// Returns true if the user has changed nothing.
    pub fn is_move(&self) -> bool {
        self.replaced.is_empty() && self.by.is_empty()
    }
}

impl Known {
    pub fn new(around: &Around) -> Known {
        let text = [around.before.as_str(), around.after.as_str()].concat();
        Known { cursor: around.before.len(), window: 0..text.len(), text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The cursor, in bytes of the text.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Returns how the text has to change to be the one that a request shows. `None` if the request
    /// is about another text.
    pub fn change(&self, next: &Around) -> Option<Change> {
        let shown = [next.before.as_str(), next.after.as_str()].concat();
        let (known_from, shown_from) = self.beginning(&next.before);
        let (known_to, below) = self.end(&next.after);
        let shown_to = shown.len() - below;
        let known = self.text.get(known_from..known_to)?;
        let seen = shown.get(shown_from..shown_to)?;
        let cursor = next.before.len().saturating_sub(shown_from).min(seen.len());
        let was_at = self.cursor.saturating_sub(known_from).min(known.len());
        // Of equal texts next to each other, the one at the cursor was written.
        let most = cursor.min(was_at);
        let prefix = boundary(seen, shared_bytes(known, seen).min(most));
        let suffix = shared_at_end(&known[prefix..], &seen[prefix..]);
        let least = known.len().min(seen.len());
        let kept = (shared_bytes(known, seen).max(prefix) + suffix).min(least);
        let (removed, put_in) = (known.len() - kept, seen.len() - kept);
        let is_rewritten = removed.min(put_in) > REWRITTEN_BYTES;
        let is_taken_away = removed > TAKEN_AWAY_BYTES && 2 * kept < known.len();
        if 2 * kept < least || is_rewritten || is_taken_away {
            return None;
        }
        let (above, below) = (&shown[..shown_from], &shown[shown_to..]);
        if self.text.len() + shown.len() > TEXT_BYTES {
            return None;
        }
        let at = above.len() + known_from;
        let start = at - shown_from;
        let (from, to, until) = (prefix, known.len() - suffix, seen.len() - suffix);
        // Positions in lines cannot name a place within a line break.
        let splits =
            |text: &str, at: usize| text[..at].ends_with('\r') && text[at..].starts_with('\n');
        let (back, on) = (
            usize::from(splits(known, from) || splits(seen, from)),
            usize::from(splits(known, to) || splits(seen, until)),
        );
        Some(Change {
            above: above.to_owned(),
            below: below.to_owned(),
            replaced: at + from - back..at + to + on,
            by: seen[from - back..until + on].to_owned(),
            cursor: start + next.before.len(),
            window: start..start + shown.len(),
        })
    }

    /// Returns true if a change is what a key does: it moves the cursor, or writes there.
    pub fn is_by_key(&self, change: &Change) -> bool {
        let cursor = change.above.len() + self.cursor;
        let Range { start, end } = change.replaced;
        change.cursor != cursor && (change.is_move() || (start..=end).contains(&cursor))
    }

    pub fn apply(&mut self, change: &Change) {
        let Change { above, below, replaced, by, cursor, window } = change;
        self.text = [above.as_str(), &self.text, below].concat();
        self.text.replace_range(replaced.clone(), by);
        (self.cursor, self.window) = (*cursor, window.clone());
    }

    /// Finds where a window and the known text begin to be the same: in each of them. A window that
    /// shows little before the cursor begins where the text does.
    fn beginning(&self, before: &str) -> (usize, usize) {
        let Some(anchor) = first(before) else { return (0, 0) };
        if let Some(at) = nearest(&self.text, anchor, self.window.start) {
            return (at, 0);
        }
        match first(&self.text).and_then(|known| before.find(known)) {
            Some(at) => (0, at),
            None => (self.window.start, 0),
        }
    }

    /// Finds where they end to be the same: in the known text, and how much the window shows below.
    fn end(&self, after: &str) -> (usize, usize) {
        let Some(anchor) = last(after) else { return (self.text.len(), 0) };
        let expected = self.window.end.saturating_sub(anchor.len());
        if let Some(at) = nearest(&self.text, anchor, expected) {
            return (at + anchor.len(), 0);
        }
        match last(&self.text).and_then(|known| Some(after.rfind(known)? + known.len())) {
            Some(at) => (self.text.len(), after.len() - at),
            None => (self.window.end, 0),
        }
    }
}

/// Returns the first bytes of a text, if there are enough to find them elsewhere.
fn first(text: &str) -> Option<&str> {
    let part = &text[..boundary(text, ANCHOR_BYTES)];
    (part.len() >= ANCHOR_MIN_BYTES).then_some(part)
}

fn last(text: &str) -> Option<&str> {
    let part = &text[boundary(text, text.len().saturating_sub(ANCHOR_BYTES))..];
    (part.len() >= ANCHOR_MIN_BYTES).then_some(part)
}

/// Returns where a text stands that is nearest to a place.
fn nearest(text: &str, part: &str, place: usize) -> Option<usize> {
    text.match_indices(part).map(|(at, _)| at).min_by_key(|at| at.abs_diff(place))
}

fn shared_at_end(one: &str, other: &str) -> usize {
    let same = one.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b);
    same.map(|(c, _)| c.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn at(marked: &str) -> Around {
        let (before, after) = marked.split_once('|').expect("a cursor");
        Around { before: before.into(), after: after.into() }
    }

    /// The text after a change, with a cursor, and what was replaced by what.
    fn changed(was: &str, next: &str) -> Option<(String, String, String)> {
        let mut known = Known::new(&at(was));
        let change = known.change(&at(next))?;
        let all = [change.above.as_str(), known.text(), &change.below].concat();
        let removed = all[change.replaced.clone()].to_owned();
        known.apply(&change);
        let mut text = known.text.clone();
        text.insert(known.cursor, '|');
        Some((text, removed, change.by))
    }

    fn edit(was: &str, next: &str) -> Option<(String, String)> {
        changed(was, next).map(|(text, removed, by)| {
            assert_eq!(text, next);
            (removed, by)
        })
    }

    fn texts(removed: &str, by: &str) -> Option<(String, String)> {
        Some((removed.into(), by.into()))
    }

    #[test]
    fn what_the_user_wrote_is_found_at_the_cursor() {
        assert_eq!(edit("fn a|z()", "fn abc|z()"), texts("", "bc"));
        assert_eq!(edit("ab|foo", "abfoo|foo"), texts("", "foo"), "not the one behind it");
        assert_eq!(edit("let xyz|;", "let xy|;"), texts("z", ""));
        assert_eq!(edit("a(b)|", "a(|b)"), texts("", ""));
        assert_eq!(edit("é|\n", "éé|\n"), texts("", "é"));
        assert_eq!(edit("|", "import os|"), texts("", "import os"));
        assert_eq!(edit("import os|", "|"), texts("import os", ""));
        assert_eq!(edit("a\r|\nb", "a\rx|\nb"), texts("\r\n", "\rx\n"), "no break is split");
        assert_eq!(edit("a|\nb", "a\r|\nb"), texts("\n", "\r\n"));
    }

    #[test]
    fn a_key_moves_the_cursor_or_writes_there() {
        let is_by_key = |was: &str, next: &str| {
            let known = Known::new(&at(was));
            known.is_by_key(&known.change(&at(next)).expect("the same text"))
        };
        assert!(is_by_key("# 1\nlet a = |;", "# 1\nlet a = b|;"));
        assert!(is_by_key("# 1\nlet a = |;", "# 1\nlet a =|;"));
        assert!(is_by_key("# 1\nlet a = |;", "# 1\nlet |a = ;"));
        assert!(!is_by_key("# 1\nlet a = |;", "# 2\nlet a = |;"), "another program's");
        assert!(!is_by_key("# 1\nlet a = |;", "# 1\nlet a = |;"), "asked twice");
    }

    #[test]
    fn a_file_with_the_same_header_is_another_text() {
        let header = "# Copyright 2026 The Authors. All rights reserved.\nimport math\nimport os\n";
        let was = format!("{header}\ndef add(a, b):\n    return a|\n");
        assert_eq!(changed(&was, &format!("{header}\nclass Thing:\n    size = 3\n    |\n")), None);
        assert_eq!(changed(&was, "|\n"), None);
        assert!(changed(&was, &format!("{header}\n|\n")).is_some(), "the function was deleted");
    }

    #[test]
    fn another_text_is_told_apart() {
        assert_eq!(changed("import os\nimport sys\n|", "fn main() {\n    |\n}\n"), None);
        assert_eq!(changed("let a = 1;|", "struct Point { x: f32 }|"), None);
    }

    fn lines(range: Range<usize>) -> String {
        range.map(|line| format!("let line_{line} = {line};\n")).collect()
    }

    #[test]
    fn a_window_that_moves_changes_nothing_and_shows_more() {
        let was = format!("{}|{}", lines(20..60), lines(60..80));
        let down = format!("{}|{}", lines(22..62), lines(62..82));
        let all = format!("{}|{}", lines(20..62), lines(62..82));
        assert_eq!(changed(&was, &down), Some((all, "".into(), "".into())));
        let up = format!("{}|{}", lines(10..50), lines(50..70));
        let all = format!("{}|{}", lines(10..50), lines(50..80));
        assert_eq!(changed(&was, &up), Some((all, "".into(), "".into())));
        let typed = format!("{}let x = |\n{}", lines(22..60), lines(60..78));
        let all = format!("{}let x = |\n{}", lines(20..60), lines(60..80));
        assert_eq!(changed(&was, &typed), Some((all, "".into(), "let x = \n".into())));
    }

    /// Whatever is typed and wherever the window is, the text stays that of the file as far as it
    /// was shown.
    #[test]
    fn a_text_is_followed_through_any_edits() {
        let mut random = StdRng::seed_from_u64(63);
        for _ in 0..200 {
            let mut file = lines(0..random.random_range(1..120));
            let mut cursor = file.len() / 2;
            let window = |file: &str, cursor: usize| {
                let (from, to) = (cursor.saturating_sub(900), (cursor + 400).min(file.len()));
                Around { before: file[from..cursor].into(), after: file[cursor..to].into() }
            };
            let mut known = Known::new(&window(&file, cursor));
            for step in 0..60 {
                match random.random_range(0..4) {
                    0 => cursor = (cursor + random.random_range(0..60)).min(file.len()),
                    1 => {
                        let from = cursor.saturating_sub(random.random_range(0..9));
                        file.replace_range(from..cursor, "");
                        cursor = from;
                    }
                    _ => {
                        let typed = format!("x{step}\n");
                        file.insert_str(cursor, &typed);
                        cursor += typed.len();
                    }
                }
                let next = window(&file, cursor);
                let change = known.change(&next).expect("the same text");
                known.apply(&change);
                assert!(file.contains(known.text()), "{file}\n---\n{}", known.text());
                let (before, after) = known.text().split_at(known.cursor());
                assert!(before.ends_with(&next.before) && after.starts_with(&next.after));
            }
        }
    }
}
