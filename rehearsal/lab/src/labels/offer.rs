//! An answer of another tool as the offer that Hone would have made of it.

use completion::document::{Document, Encoding, Position};
use rehearsal::recording::OtherAnswer;

/// The marks that an offer may replace behind the caret: those that editors close, and what ends a
/// statement behind them.
const MARKS: &str = ")]}>\"'`;,";

/// What an answer adds at a caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtCaret {
    pub text: String,
    /// The marks behind the caret that it replaces.
    pub marks: String,
}

impl AtCaret {
    /// Returns what an answer adds at a character of a document. It returns `None` where the answer
    /// is no text at the caret, but changes something else.
    pub fn of(document: &Document, caret: usize, answer: &OtherAnswer) -> Option<AtCaret> {
        let [first_line, first_column, last_line, last_column] = answer.range;
        let at = |line: u32, column: u32| {
            let position = Position { line: line - 1, column: column - 1 };
            document.offset(position, Encoding::Utf16).ok()
        };
        let (start, end) = (at(first_line, first_column)?, at(last_line, last_column)?);
        if answer.is_edit || caret < start || caret > end {
            return None;
        }
        let before = document.text.slice(start..caret).to_string();
        let behind = document.text.slice(caret..end).to_string();
        let mut text = answer.text.strip_prefix(&before)?.to_owned();
        let same = text.chars().rev().zip(behind.chars().rev()).take_while(|(a, b)| a == b);
        let same: usize = same.map(|(character, _)| character.len_utf8()).sum();
        text.truncate(text.len() - same);
        let marks = behind[..behind.len() - same].to_owned();
        let are_marks = marks.chars().all(|mark| MARKS.contains(mark));
        (!text.is_empty() && are_marks).then_some(AtCaret { text, marks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_caret(text: &str, columns: (u32, u32), answer: &str) -> Option<AtCaret> {
        let caret = text.chars().position(|c| c == '|').unwrap();
        let text = text.replace('|', "").as_str().into();
        let document = Document { path: "a.ts".into(), language: "ts".into(), version: 1, text };
        let range = [1, columns.0, 1, columns.1];
        AtCaret::of(&document, caret, &OtherAnswer { range, text: answer.into(), is_edit: false })
    }

    fn added(text: &str, marks: &str) -> Option<AtCaret> {
        Some(AtCaret { text: text.into(), marks: marks.into() })
    }

    #[test]
    fn an_answer_for_a_line_is_what_it_adds_at_the_caret() {
        assert_eq!(at_caret("  let x|", (1, 8), "  let x = 1;"), added(" = 1;", ""));
        assert_eq!(at_caret("if (|)", (1, 6), "if (a) return;"), added("a) return;", ")"));
        assert_eq!(at_caret("f(|);", (1, 6), "f(a);"), added("a", ""), "the marks stay");
        assert_eq!(at_caret("f(|);", (1, 4), "f(a"), added("a", ")"), "a mark goes");
    }

    #[test]
    fn what_changes_other_text_is_no_offer() {
        assert_eq!(at_caret("let |x", (1, 6), "let y"), None, "behind the caret");
        assert_eq!(at_caret("let x|", (1, 6), "var x = 1"), None, "before it");
        assert_eq!(at_caret("x|", (1, 2), "x"), None, "nothing");
    }
}
