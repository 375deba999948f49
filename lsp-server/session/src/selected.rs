//! The editor's suggestion list. While it is open, an offer has to continue the entry that is
//! chosen in it, or the editor does not show it.

use completion::document::{Document, Encoding, PastTheEnd, Position};

/// The chosen entry as the editor reports it: `text` takes the place of `range`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    pub range: (Position, Position),
    pub text: String,
}

/// The chosen entry at a cursor, where its beginning is typed already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where the typed part begins.
    pub from: Position,
    pub typed: String,
    /// The part of the entry that is not typed yet.
    pub rest: String,
}

impl Selected {
    /// The entry at this cursor. `None` if it does not begin with what is typed, or if it takes the
    /// place of text behind the cursor.
    pub fn at(
        &self,
        document: &Document,
        cursor: usize,
        encoding: Encoding,
    ) -> Result<Option<Entry>, PastTheEnd> {
        let start = document.offset(self.range.0, encoding)?;
        let end = document.offset(self.range.1, encoding)?;
        if start > cursor || end != cursor {
            return Ok(None);
        }
        let typed = document.text.slice(start..cursor).to_string();
        let rest = self.text.strip_prefix(&typed).map(str::to_owned);
        Ok(rest.map(|rest| Entry { from: self.range.0, typed, rest }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(range: (u32, u32), text: &str) -> Option<Entry> {
        let document = Document {
            path: "/a.js".into(),
            language: "javascript".into(),
            version: 1,
            text: "list.fin()".into(),
        };
        let at = |column| Position { line: 0, column };
        let selected = Selected { range: (at(range.0), at(range.1)), text: text.into() };
        selected.at(&document, 8, Encoding::Utf16).unwrap()
    }

    #[test]
    fn an_entry_continues_from_what_is_typed_of_it() {
        let found = entry((5, 8), "findIndex").unwrap();
        assert_eq!((found.typed.as_str(), found.rest.as_str()), ("fin", "dIndex"));
        assert_eq!(entry((8, 8), "x").unwrap().rest, "x");
        assert_eq!(entry((5, 8), "fin").unwrap().rest, "", "it is typed as a whole");
    }

    #[test]
    fn an_entry_that_is_spelled_otherwise_or_reaches_further_does_not_fit() {
        assert_eq!(entry((5, 8), "Finder"), None);
        assert_eq!(entry((5, 9), "findIndex"), None);
    }
}
