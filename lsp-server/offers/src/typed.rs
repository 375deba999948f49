//! Counts what the user types in each document between two recorded completions. `hone report` and
//! `hone status` set what Hone wrote against it.

use completion::document::Edit;
use feedback::event::Typed;
use std::collections::HashMap;

/// A key inserts at most so many characters. What is longer was pasted, accepted, or put in by a
/// tool.
const KEY_CHARS: usize = 3;

/// Typed characters by the document's URI.
#[derive(Debug, Default)]
pub struct TypedCounts {
    of: HashMap<String, Typed>,
}

impl TypedCounts {
    /// Counts what the changes of one message inserted. An editor may send several keys together,
    /// and each of them then touches what the one before it put in. Changes that lie apart are
    /// those of several carets or of a tool, and do not count.
    pub fn note(&mut self, uri: &str, edits: &[Edit]) {
        if edits.windows(2).all(|pair| touches(&pair[1], &pair[0])) {
            edits.iter().for_each(|edit| self.note_key(uri, &edit.inserted));
        }
    }

    /// A line break counts as a line, and the indentation that an editor puts in behind it does not
    /// count as typed.
    fn note_key(&mut self, uri: &str, inserted: &str) {
        let is_break = inserted.contains('\n') && inserted.trim().is_empty();
        let chars = if is_break { 0 } else { inserted.chars().count() };
        if chars > KEY_CHARS || (chars == 0 && !is_break) {
            return;
        }
        let typed = self.of.entry(uri.to_owned()).or_default();
        typed.chars = typed.chars.saturating_add(chars as u32);
        typed.lines = typed.lines.saturating_add(u32::from(is_break));
    }

    /// The counts since the last call for this document.
    pub fn take(&mut self, uri: &str) -> Typed {
        self.of.remove(uri).unwrap_or_default()
    }
}

/// Whether a change is made in what the one before it inserted, or right next to that.
fn touches(edit: &Edit, before: &Edit) -> bool {
    let end = before.start + before.inserted.chars().count();
    edit.start <= end && before.start <= edit.start + edit.removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use completion::document::{Document, Encoding, Position};

    fn key(inserted: &str) -> [Edit; 1] {
        [Edit { start: 0, removed: 0, inserted: inserted.into() }]
    }

    #[test]
    fn keys_count_and_what_is_pasted_or_put_in_does_not() {
        let mut counts = TypedCounts::default();
        for inserted in ["l", "e", "t", " ", "()", "\n    ", "\r\n", "", "fn pasted() {}", "é"] {
            counts.note("a", &key(inserted));
        }
        counts.note("b", &key("x"));
        assert_eq!(counts.take("a"), Typed { chars: 7, lines: 2 });
        assert_eq!(counts.take("a"), Typed::default(), "they are taken once");
        assert_eq!(counts.take("b"), Typed { chars: 1, lines: 0 });
    }

    /// A change as a client sends it: the line and the column of both ends, and the new text.
    type Change = (u32, u32, u32, u32, &'static str);

    /// What counts of one message.
    fn typed(text: &str, message: &[Change]) -> Typed {
        let (path, language) = ("a.rs".into(), "rust".into());
        let mut document = Document { path, language, version: 1, text: text.into() };
        let at = |line, column| Position { line, column };
        let edits = message.iter().map(|&(line, column, last_line, last_column, inserted)| {
            let range = (at(line, column), at(last_line, last_column));
            document.apply(Some(range), inserted.to_owned(), Encoding::Utf16).unwrap()
        });
        let edits: Vec<Edit> = edits.collect();
        let mut counts = TypedCounts::default();
        counts.note("a", &edits);
        counts.take("a")
    }

    /// Neovim 0.11 sends these messages for keys that follow each other within 20 ms.
    #[test]
    fn keys_of_one_message_count_and_changes_that_lie_apart_do_not() {
        let letters = [(0, 4, 0, 4, "l"), (0, 5, 0, 5, "e"), (0, 6, 0, 6, "t")];
        assert_eq!(typed("    \n", &letters), Typed { chars: 3, lines: 0 });
        let corrected = [
            (0, 4, 0, 4, "l"),
            (0, 5, 0, 5, "e"),
            (0, 5, 0, 6, ""),
            (0, 4, 0, 5, ""),
            (0, 4, 0, 4, "x"),
        ];
        assert_eq!(typed("    \n", &corrected), Typed { chars: 3, lines: 0 });
        let enter = [(0, 7, 0, 7, "\n    "), (1, 4, 1, 4, "x"), (1, 5, 1, 5, "\n    ")];
        assert_eq!(typed("call();\nend\n", &enter), Typed { chars: 1, lines: 2 });
        let line_below = [(0, 5, 1, 0, "\n    \n"), (1, 4, 1, 4, "x"), (1, 5, 1, 5, "y")];
        assert_eq!(typed("    a\nend\n", &line_below), Typed { chars: 2, lines: 1 });
        let between_braces = [(0, 5, 0, 6, "\n}"), (1, 0, 1, 0, "x")];
        assert_eq!(typed("f() {}\n", &between_braces), Typed { chars: 1, lines: 1 });
        let pair = [(0, 0, 0, 0, "()"), (0, 1, 0, 1, "x")];
        assert_eq!(typed("\n", &pair), Typed { chars: 3, lines: 0 });
        let carets = [(0, 1, 0, 1, "x"), (1, 1, 2, 1, "xbb\ncx")];
        assert_eq!(typed("aaa\nbbb\nccc\n", &carets), Typed::default());
        let formatter = [(0, 2, 0, 2, " "), (0, 1, 0, 1, " ")];
        assert_eq!(typed("a+b\n", &formatter), Typed::default());
    }
}
