//! One open document: its text as a rope, of which a copy is cheap, and the mapping between LSP
//! positions and characters.

use ropey::{Rope, RopeSlice};
use std::path::PathBuf;

/// The unit in which the client counts columns (LSP `positionEncoding`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16,
}

/// A zero-based line, and a column in the client's encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

#[derive(Debug, Clone)]
pub struct Document {
    /// The path of a file, or the URI if there is no file. Events are recorded under it.
    pub path: String,
    pub language: String,
    pub version: i32,
    pub text: Rope,
}

/// The things by which the rules decide whether a document may be quoted. Its language counts next
/// to its name, because a document of credentials may have any name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source {
    /// The path or URI.
    pub path: String,
    pub language: String,
}

/// One change as it was applied, in characters of the text before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub start: usize,
    pub removed: usize,
    pub inserted: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{path}: line {line} is past the end (the document has {lines} lines); editor and server \
     are out of step: close and open the file again"
)]
pub struct PastTheEnd {
    pub path: PathBuf,
    pub line: u32,
    pub lines: usize,
}

impl Document {
    pub fn source(&self) -> Source {
        Source { path: self.path.clone(), language: self.language.clone() }
    }

    /// The character offset of a position. A column past the end of its line means the end of that
    /// line, as LSP demands. A line past the last one is an error.
    pub fn offset(&self, position: Position, encoding: Encoding) -> Result<usize, PastTheEnd> {
        let lines = self.text.len_lines();
        if position.line as usize >= lines {
            let path = PathBuf::from(&self.path);
            return Err(PastTheEnd { path, line: position.line, lines });
        }
        Ok(self.clamped(position, encoding))
    }

    /// The position of a character offset that does not lie past the end.
    pub fn position(&self, offset: usize, encoding: Encoding) -> Position {
        let line = self.text.char_to_line(offset);
        let before = self.text.slice(self.text.line_to_char(line)..offset);
        let column = match encoding {
            Encoding::Utf16 => before.len_utf16_cu(),
            Encoding::Utf8 => before.len_bytes(),
        };
        Position { line: line as u32, column: column as u32 }
    }

    /// Like [`Document::offset`], but a line past the last one means the end of the text: clients
    /// replace whole documents with a range that reaches beyond it.
    fn clamped(&self, position: Position, encoding: Encoding) -> usize {
        let line = position.line as usize;
        if line >= self.text.len_lines() {
            return self.text.len_chars();
        }
        let start = self.text.line_to_char(line);
        let content = self.text.line(line);
        let column = position.column as usize;
        let in_line = match encoding {
            Encoding::Utf16 => content.utf16_cu_to_char(column.min(content.len_utf16_cu())),
            Encoding::Utf8 => content.byte_to_char(column.min(content.len_bytes())),
        };
        let breaks = content.chars_at(content.len_chars()).reversed();
        let line_break = breaks.take_while(|c| matches!(c, '\n' | '\r')).count();
        start + in_line.min(content.len_chars() - line_break)
    }

    /// Applies one content change. Without a range it replaces the whole text.
    ///
    /// # Errors
    /// The change begins past the end, so the editor that sends it has another text. A line right
    /// behind the last one is no error, because some clients append there.
    pub fn apply(
        &mut self,
        range: Option<(Position, Position)>,
        inserted: String,
        encoding: Encoding,
    ) -> Result<Edit, PastTheEnd> {
        let lines = self.text.len_lines();
        if let Some((start, _)) = range.filter(|(start, _)| start.line as usize > lines) {
            return Err(PastTheEnd { path: PathBuf::from(&self.path), line: start.line, lines });
        }
        let (start, end) = match range {
            None => (0, self.text.len_chars()),
            Some((start, end)) => (self.clamped(start, encoding), self.clamped(end, encoding)),
        };
        let end = end.max(start);
        let edit = minimal(start, self.text.slice(start..end), &inserted);
        self.text.remove(start..end);
        self.text.insert(start, &inserted);
        Ok(edit)
    }

    /// The change just applied, expressed as a change at `cursor` (an offset before the change) if
    /// that has the same effect. Editors find a change by comparing two texts. Where the new text
    /// equals the text next to it, several places fit and they may report another one.
    pub fn seen_at(&self, edit: Edit, cursor: usize) -> Edit {
        let length = edit.inserted.chars().count();
        let (from, to) = (cursor.min(edit.start), cursor.max(edit.start));
        let pure = edit.removed == 0 && length > 0;
        if !pure || from == to || to + length > self.text.len_chars() {
            return edit;
        }
        // Removing either insertion must leave the same text.
        if self.text.slice(from..to) != self.text.slice(from + length..to + length) {
            return edit;
        }
        let inserted = self.text.slice(cursor..cursor + length).to_string();
        Edit { start: cursor, removed: 0, inserted }
    }
}

/// A replacement without the parts that stay as they are: some clients send a whole line, or the
/// whole document, for one character.
fn minimal(start: usize, removed: RopeSlice, inserted: &str) -> Edit {
    let (before, after) = (removed.len_chars(), inserted.chars().count());
    let same = |pair: &(char, char)| pair.0 == pair.1;
    let prefix = removed.chars().zip(inserted.chars()).take_while(same).count();
    let most = before.min(after) - prefix;
    let backwards = removed.chars_at(before).reversed().zip(inserted.chars().rev());
    let suffix = backwards.take(most).take_while(same).count();
    Edit {
        start: start + prefix,
        removed: before - prefix - suffix,
        inserted: inserted.chars().skip(prefix).take(after - prefix - suffix).collect(),
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document { path: "a.rs".into(), language: "rust".into(), version: 1, text: text.into() }
    }

    fn at(line: u32, column: u32) -> Position {
        Position { line, column }
    }

    /// Applies a change of the client and returns the text and the edit that is recorded for this
    /// cursor.
    fn read(text: &str, change: (u32, u32, &str), cursor: usize) -> (String, Edit) {
        let mut document = document(text);
        let range = Some((at(0, change.0), at(0, change.1)));
        let edit = document.apply(range, change.2.to_owned(), Encoding::Utf16).unwrap();
        let edit = document.seen_at(edit, cursor);
        (document.text.to_string(), edit)
    }

    fn insertion(start: usize, inserted: &str) -> Edit {
        Edit { start, removed: 0, inserted: inserted.into() }
    }

    /// Neovim compares lines from both ends: it reports `b, c,` typed at 2 before ` b` as `, c, b`
    /// typed at 4.
    #[test]
    fn an_insertion_is_recorded_at_the_cursor_where_that_is_the_same_change() {
        let typed = "a b, c, b";
        assert_eq!(read("a b", (3, 3, ", c, b"), 2), (typed.into(), insertion(2, "b, c, ")));
        assert_eq!(read("a b", (2, 2, "b, c, "), 2), (typed.into(), insertion(2, "b, c, ")));
        // The reported place may also lie before the cursor.
        assert_eq!(read("foo", (1, 1, "o"), 3), ("fooo".into(), insertion(3, "o")));
        assert_eq!(read("a b", (0, 0, "x"), 2).1, insertion(0, "x"), "another change there");
        assert_eq!(read("a b", (3, 3, "x"), 2).1, insertion(3, "x"));
    }

    #[test]
    fn a_replacement_is_recorded_as_what_it_changes() {
        let mut document = document("let x = fo;\nend\n");
        let whole = document.apply(None, "let x = foo();\nend\n".into(), Encoding::Utf16).unwrap();
        assert_eq!(document.seen_at(whole, 10), insertion(10, "o()"));
        assert_eq!(read("abc", (0, 3, "abc"), 1).1, insertion(3, ""), "nothing");
        let other = Edit { start: 1, removed: 1, inserted: "x".into() };
        assert_eq!(read("abc", (0, 3, "axc"), 1).1, other);
    }

    #[test]
    fn columns_count_utf16_units_or_bytes() {
        let document = document("a😀é|x\n");
        assert_eq!(document.offset(at(0, 3), Encoding::Utf16), Ok(2));
        assert_eq!(document.offset(at(0, 4), Encoding::Utf16), Ok(3));
        assert_eq!(document.offset(at(0, 5), Encoding::Utf8), Ok(2));
        assert_eq!(document.offset(at(0, 7), Encoding::Utf8), Ok(3));
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            let width = |c: char| match encoding {
                Encoding::Utf8 => c.len_utf8(),
                Encoding::Utf16 => c.len_utf16(),
            };
            let mut column = 0;
            for (offset, c) in "a😀é|x".chars().enumerate() {
                assert_eq!(document.offset(at(0, column), encoding), Ok(offset), "{encoding:?}");
                column += width(c) as u32;
            }
        }
    }

    #[test]
    fn a_position_inside_a_surrogate_pair_rounds_down() {
        assert_eq!(document("a😀b").offset(at(0, 2), Encoding::Utf16), Ok(1));
    }

    #[test]
    fn a_column_past_the_line_is_the_lines_end_before_its_break() {
        let document = document("ab\r\ncd");
        assert_eq!(document.offset(at(0, 99), Encoding::Utf16), Ok(2));
        assert_eq!(document.offset(at(1, 99), Encoding::Utf16), Ok(6));
    }

    #[test]
    fn a_line_past_the_end_names_the_file_and_the_fix() {
        let error = document("a\n").offset(at(7, 0), Encoding::Utf16).unwrap_err().to_string();
        assert!(error.starts_with("a.rs: line 7 is past the end"), "{error}");
        assert!(error.contains("open the file again"), "{error}");
    }

    #[test]
    fn changes_apply_incrementally_and_as_a_whole() {
        let mut document = document("fn a() {}\nfn b() {}\n");
        let edit =
            document.apply(Some((at(1, 3), at(1, 4))), "c😀".into(), Encoding::Utf16).unwrap();
        assert_eq!(edit, Edit { start: 13, removed: 1, inserted: "c😀".into() });
        assert_eq!(document.text, "fn a() {}\nfn c😀() {}\n");
        document.apply(Some((at(0, 0), at(99, 0))), "x".into(), Encoding::Utf16).unwrap();
        assert_eq!(document.text, "x");
        document.apply(None, "y\n".into(), Encoding::Utf16).unwrap();
        assert_eq!(document.text, "y\n");
    }
}
