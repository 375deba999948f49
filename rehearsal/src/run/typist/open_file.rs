//! The file that the typist has on the screen, and the cursor in it.

use super::tool_edits::ToolEdits;
use crate::document::Document;

pub(super) struct OpenFile {
    pub uri: String,
    pub path: String,
    pub language: String,
    pub document: Document,
    /// The line of the cursor, as the document counts it now.
    pub line: usize,
    /// What the developer really wrote in this line.
    pub truth: String,
    /// Bytes of `truth` that are in the document, with the indentation.
    pub typed: usize,
    /// The marks that the editor closed and that stand behind the cursor. Nothing else stands
    /// there.
    pub closers: String,
    /// Marks that the editor closed and that stand alone on the lines below the cursor, because
    /// the developer pressed Enter between a bracket and its closing one. The last ones are on the
    /// line below.
    pub below: Vec<String>,
    /// What the current line ends with in the end. Lines below may be in the way so far.
    pub ending: String,
    pub tools: ToolEdits,
}

impl OpenFile {
    pub fn new(uri: String, path: &str, language: &str, document: Document) -> OpenFile {
        OpenFile {
            uri,
            path: path.to_owned(),
            language: language.to_owned(),
            document,
            line: 0,
            truth: String::new(),
            typed: 0,
            closers: String::new(),
            below: Vec::new(),
            ending: String::new(),
            tools: ToolEdits::default(),
        }
    }

    /// Byte offset of the cursor in the document.
    pub fn cursor(&self) -> usize {
        self.document.line_start(self.line) + self.typed
    }

    /// Byte offsets in the document of a line's end, with and without its ending.
    pub fn line_end(&self, line: usize) -> (usize, usize) {
        let start = self.document.line_start(line);
        (start + self.document.line(line).len(), self.document.line_start(line + 1))
    }

    /// Returns what the line ends with: "\n", "\r\n", or nothing at the end of the document.
    pub fn ending_of(&self, line: usize) -> &str {
        let (end, with_ending) = self.line_end(line);
        &self.document.text()[end..with_ending]
    }

    /// Returns true if the cursor is between an opening mark and the one that closes it.
    pub fn is_in_empty_pair(&self) -> bool {
        let before = self.truth[..self.typed].chars().next_back();
        let closing = before.and_then(crate::developer::pairs::closing);
        closing.is_some() && closing == self.closers.chars().next()
    }
}

/// The blanks that a line begins with.
pub(super) fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}
