//! Counts what the user types in each document between two recorded completions. `hone report` and
//! `hone status` set what Hone wrote against it.

use feedback::event::Typed;
use std::collections::HashMap;

/// A key inserts at most so many characters. What is longer was pasted, accepted, or put in by a
/// tool.
const KEY_CHARS: usize = 3;

/// Typed characters by the document's URI.
#[derive(Default)]
pub struct TypedCounts {
    of: HashMap<String, Typed>,
}

impl TypedCounts {
    /// Counts the text that one change inserted. A line break counts as a line, and the indentation
    /// that an editor puts in behind it does not count as typed.
    pub fn note(&mut self, uri: &str, inserted: &str) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_count_and_what_is_pasted_or_put_in_does_not() {
        let mut counts = TypedCounts::default();
        for inserted in ["l", "e", "t", " ", "()", "\n    ", "\r\n", "", "fn pasted() {}", "é"] {
            counts.note("a", inserted);
        }
        counts.note("b", "x");
        assert_eq!(counts.take("a"), Typed { chars: 7, lines: 2 });
        assert_eq!(counts.take("a"), Typed::default(), "they are taken once");
        assert_eq!(counts.take("b"), Typed { chars: 1, lines: 0 });
    }
}
