//! A text document as the protocol sees it: positions, ranges, edits.

use serde::{Deserialize, Serialize};

/// What one unit of [`Position::character`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16 => "utf-16",
        }
    }

    pub fn from_name(name: &str) -> Option<Encoding> {
        [Encoding::Utf8, Encoding::Utf16].into_iter().find(|encoding| encoding.name() == name)
    }

    /// Returns how long a text is in the units of a position.
    pub fn units(self, text: &str) -> usize {
        match self {
            Encoding::Utf8 => text.len(),
            Encoding::Utf16 => text.encode_utf16().count(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    pub line: u32,
    pub character: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    pub start: Position,
    pub end: Position,
}

/// A document and the encoding in which its positions are counted. Lines end in `\n` or `\r\n`. A
/// lone `\r` is not supported (see [`crate::developer::history`]).
#[derive(Debug, Clone)]
pub struct Document {
    text: String,
    encoding: Encoding,
}

impl Document {
    pub fn new(text: String, encoding: Encoding) -> Document {
        Document { text, encoding }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Byte offset of the start of a line. Past the last line it is the end of the text.
    pub fn line_start(&self, line: usize) -> usize {
        match line.checked_sub(1) {
            None => 0,
            Some(earlier) => self
                .text
                .match_indices('\n')
                .nth(earlier)
                .map_or(self.text.len(), |(newline, _)| newline + 1),
        }
    }

    /// The line's text without its ending.
    pub fn line(&self, line: usize) -> &str {
        let rest = &self.text[self.line_start(line)..];
        let end = rest.find('\n').unwrap_or(rest.len());
        rest[..end].strip_suffix('\r').unwrap_or(&rest[..end])
    }

    /// Position of a byte offset, which must be on a character boundary.
    pub fn position(&self, offset: usize) -> Position {
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Position {
            line: before.matches('\n').count() as u32,
            character: self.encoding.units(&before[line_start..]) as u32,
        }
    }

    /// Byte offset of a position. A character past the end of its line means the end of the line,
    /// as the protocol says.
    pub fn offset(&self, position: Position) -> usize {
        let start = self.line_start(position.line as usize);
        let line = self.line(position.line as usize);
        let mut units = 0;
        for (index, character) in line.char_indices() {
            if units >= position.character as usize {
                return start + index;
            }
            units += self.encoding.units(character.encode_utf8(&mut [0; 4]));
        }
        start + line.len()
    }

    /// Replaces a byte range and returns it as the protocol writes it.
    pub fn replace(&mut self, start: usize, end: usize, text: &str) -> Range {
        let range = Range { start: self.position(start), end: self.position(end) };
        self.text.replace_range(start..end, text);
        range
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a🙂b\r\nzwei\n";

    #[test]
    fn positions_count_in_the_negotiated_units() {
        let wide = Document::new(TEXT.to_owned(), Encoding::Utf16);
        let bytes = Document::new(TEXT.to_owned(), Encoding::Utf8);
        let offset = TEXT.find('b').unwrap();
        assert_eq!(wide.position(offset), Position { line: 0, character: 3 });
        assert_eq!(bytes.position(offset), Position { line: 0, character: 5 });
        for document in [wide, bytes] {
            for (offset, _) in TEXT.char_indices().filter(|(_, c)| !c.is_control()) {
                assert_eq!(document.offset(document.position(offset)), offset);
            }
        }
    }

    #[test]
    fn lines_lose_their_ending_and_positions_past_the_end_are_clamped() {
        let document = Document::new(TEXT.to_owned(), Encoding::Utf16);
        assert_eq!(document.line(0), "a🙂b");
        assert_eq!(document.line(1), "zwei");
        assert_eq!(document.line(2), "");
        assert_eq!(document.line(9), "");
        let clamped = document.offset(Position { line: 0, character: 99 });
        assert_eq!(&TEXT[clamped..clamped + 1], "\r");
        assert_eq!(document.offset(Position { line: 9, character: 0 }), TEXT.len());
    }

    #[test]
    fn an_edit_reports_the_range_it_replaced() {
        let mut document = Document::new(TEXT.to_owned(), Encoding::Utf16);
        let range = document.replace(document.line_start(1), document.line_start(2), "x\n");
        assert_eq!(document.text(), "a🙂b\r\nx\n");
        assert_eq!(range.start, Position { line: 1, character: 0 });
        assert_eq!(range.end, Position { line: 2, character: 0 });
    }
}
