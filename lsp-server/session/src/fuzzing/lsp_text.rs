//! Lines, columns and changes of a text as LSP defines them. It is written apart from the server's
//! own code and knows no rope, so that the two can be compared.

use completion::document::{Encoding, Position};
use std::ops::Range;

/// The lines of a text without their breaks, in bytes. `\n`, `\r\n` and `\r` end a line.
pub fn lines(text: &str) -> Vec<Range<usize>> {
    let (mut lines, mut start, mut at) = (vec![], 0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let length = match (bytes[at], bytes.get(at + 1)) {
            (b'\r', Some(b'\n')) => 2,
            (b'\r' | b'\n', _) => 1,
            _ => 0,
        };
        if length > 0 {
            lines.push(start..at);
            start = at + length;
        }
        at += length.max(1);
    }
    lines.push(start..text.len());
    lines
}

/// The line that a byte lies in, breaks counted to the line that they end.
pub fn line_at(text: &str, offset: usize) -> Range<usize> {
    let before = lines(text).into_iter().take_while(|line| line.start <= offset);
    before.last().unwrap_or(0..0)
}

pub fn width(text: &str, encoding: Encoding) -> u32 {
    match encoding {
        Encoding::Utf8 => text.len() as u32,
        Encoding::Utf16 => text.encode_utf16().count() as u32,
    }
}

/// The position of a byte. Between `\r` and `\n` there is none, so it is that before them.
pub fn position(text: &str, offset: usize, encoding: Encoding) -> Position {
    let lines = lines(text);
    let line = lines.iter().rposition(|line| line.start <= offset).unwrap_or(0);
    let within = lines[line].start..offset.min(lines[line].end);
    Position { line: line as u32, column: width(&text[within], encoding) }
}

/// The byte of a position, and `None` if its line is past the end. A column past the end of its
/// line is that end, and one within a character is the start of the character.
pub fn offset(text: &str, position: Position, encoding: Encoding) -> Option<usize> {
    let line = lines(text).get(position.line as usize)?.clone();
    let mut units = 0;
    for (at, c) in text[line.clone()].char_indices() {
        units += width(c.encode_utf8(&mut [0; 4]), encoding);
        if units > position.column {
            return Some(line.start + at);
        }
    }
    Some(line.end)
}

/// Whether a position is exactly one of this text.
pub fn has(text: &str, position: Position, encoding: Encoding) -> bool {
    offset(text, position, encoding)
        .is_some_and(|at| self::position(text, at, encoding) == position)
}

/// A replacement of a part of a text, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub start: usize,
    pub end: usize,
    pub text: String,
}

impl Change {
    pub fn insertion(at: usize, text: &str) -> Change {
        Change { start: at, end: at, text: text.to_owned() }
    }

    /// What turns the first text into the second, as short as possible. What is equal at the start
    /// of both is left out first.
    pub fn between(old: &str, new: &str) -> Change {
        let same = |(a, b): &(char, char)| a == b;
        let prefix = old.chars().zip(new.chars()).take_while(same);
        let start: usize = prefix.map(|(c, _)| c.len_utf8()).sum();
        let ends = old[start..].chars().rev().zip(new[start..].chars().rev());
        let suffix: usize = ends.take_while(same).map(|(c, _)| c.len_utf8()).sum();
        let (end, new_end) = (old.len() - suffix, new.len() - suffix);
        Change { start, end, text: new[start..new_end].to_owned() }
    }

    pub fn applied_to(&self, text: &str) -> String {
        format!("{}{}{}", &text[..self.start], self.text, &text[self.end..])
    }

    /// The same change without what it leaves as it is.
    pub fn reduced(&self, old: &str) -> Change {
        let within = Change::between(&old[self.start..self.end], &self.text);
        Change { start: self.start + within.start, end: self.start + within.end, ..within }
    }

    /// The same change from one position to another: neither lies between `\r` and `\n`.
    pub fn expressible(mut self, old: &str) -> Change {
        let splits = |at: usize| old[..at].ends_with('\r') && old[at..].starts_with('\n');
        if splits(self.start) {
            self.start -= 1;
            self.text.insert(0, '\r');
        }
        if splits(self.end) {
            self.end += 1;
            self.text.push('\n');
        }
        self
    }

    /// The same change of the whole lines that it lies in.
    pub fn of_lines(&self, old: &str) -> Change {
        let (start, end) = (line_at(old, self.start).start, line_at(old, self.end).end);
        let end = end.max(self.end);
        let text = format!("{}{}{}", &old[start..self.start], self.text, &old[self.end..end]);
        Change { start, end, text }
    }

    pub fn is_nothing(&self) -> bool {
        self.start == self.end && self.text.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_protocol() {
        let text = "a😀b\r\nc\rd";
        assert_eq!(lines(text), [0..6, 8..9, 10..11]);
        let at = |line, column| offset(text, Position { line, column }, Encoding::Utf16);
        assert_eq!((at(0, 2), at(0, 3), at(0, 99)), (Some(1), Some(5), Some(6)));
        assert_eq!((at(2, 1), at(3, 0)), (Some(11), None));
        assert_eq!(position(text, 7, Encoding::Utf16), Position { line: 0, column: 4 });
        assert!(!has(text, Position { line: 0, column: 2 }, Encoding::Utf16));
        assert!(has(text, Position { line: 0, column: 5 }, Encoding::Utf8));
    }

    #[test]
    fn a_change_is_the_same_in_every_form() {
        let old = "foo(a)\r\nbar\r\n";
        let change = Change { start: 7, end: 11, text: "\nba".into() };
        let new = change.applied_to(old);
        for form in [change.clone().expressible(old), change.of_lines(old), change.reduced(old)] {
            assert_eq!(form.applied_to(old), new, "{form:?}");
        }
        assert_eq!(Change::between("aab", "aaab"), Change::insertion(2, "a"));
    }
}
