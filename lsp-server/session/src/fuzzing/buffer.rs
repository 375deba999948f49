//! A document of the played editor: its text, its cursor, and the forms in which editors report a
//! change.

use super::lsp_text::{self, Change};
use completion::document::{Encoding, Position};

/// How a client reports a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// What was changed.
    Exact,
    /// What differs between the two texts, compared from their start.
    Difference,
    /// The lines that were changed.
    Lines,
    /// The whole document, by its range.
    Whole,
    /// The whole document without a range.
    NoRange,
}

pub const FORMS: [Form; 5] =
    [Form::Exact, Form::Difference, Form::Lines, Form::Whole, Form::NoRange];

/// A change as the server gets it.
pub type Report = (Option<(Position, Position)>, String);

#[derive(Debug)]
pub struct Buffer {
    pub uri: String,
    pub path: String,
    pub text: String,
    pub line_break: &'static str,
    /// The cursor, in bytes.
    pub caret: usize,
    /// Where the marks are that the editor has closed and the cursor stands before, in bytes.
    pub closed: Vec<usize>,
    pub undo: Vec<String>,
    pub disk: String,
    pub is_open: bool,
    pub version: i32,
}

/// The steps that can be undone.
const UNDO_LIMIT: usize = 10;

impl Buffer {
    pub fn new(uri: &str, path: &str, text: &str, line_break: &'static str) -> Buffer {
        let text = text.replace('\n', line_break);
        Buffer {
            uri: uri.into(),
            path: path.into(),
            disk: text.clone(),
            text,
            line_break,
            caret: 0,
            closed: vec![],
            undo: vec![],
            is_open: false,
            version: 0,
        }
    }

    /// The bytes that this change replaces if it is reported in this form, and the report.
    pub fn report(&self, change: &Change, form: Form, encoding: Encoding) -> (Change, Report) {
        let old = &self.text;
        let whole = || Change { start: 0, end: old.len(), text: change.applied_to(old) };
        let sent = match form {
            Form::Exact => change.clone(),
            Form::Difference => Change::between(old, &change.applied_to(old)),
            Form::Lines => change.of_lines(old),
            Form::Whole | Form::NoRange => whole(),
        };
        let sent = sent.expressible(old);
        let at = |offset| lsp_text::position(old, offset, encoding);
        let range = (form != Form::NoRange).then(|| (at(sent.start), at(sent.end)));
        let text = sent.text.clone();
        (sent, (range, text))
    }

    pub fn apply(&mut self, change: &Change) {
        self.undo.push(self.text.clone());
        if self.undo.len() > UNDO_LIMIT {
            self.undo.remove(0);
        }
        let moved = |at: usize| at - (change.end - change.start) + change.text.len();
        self.text = change.applied_to(&self.text);
        self.closed.retain(|at| *at < change.start || *at >= change.end);
        for at in self.closed.iter_mut().filter(|at| **at >= change.end) {
            *at = moved(*at);
        }
        self.caret = match self.caret {
            caret if caret < change.start => caret,
            caret if caret >= change.end => moved(caret),
            _ => change.start + change.text.len(),
        };
        self.settle();
    }

    /// Moves the cursor to a place that has a position.
    pub fn settle(&mut self) {
        let at = lsp_text::position(&self.text, self.caret, Encoding::Utf8);
        self.caret = lsp_text::offset(&self.text, at, Encoding::Utf8).unwrap_or(self.text.len());
    }

    pub fn put_caret(&mut self, at: usize) {
        let at = at.min(self.text.len());
        let before = self.text.char_indices().map(|(at, _)| at).take_while(|start| *start <= at);
        self.caret = if at == self.text.len() { at } else { before.last().unwrap_or(0) };
        self.closed.clear();
        self.settle();
    }

    /// The line of the cursor up to it, and the rest of it.
    pub fn around_caret(&self) -> (&str, &str) {
        let line = lsp_text::line_at(&self.text, self.caret);
        (&self.text[line.start..self.caret], &self.text[self.caret..line.end])
    }

    pub fn next(&self) -> Option<char> {
        self.text[self.caret..].chars().next()
    }

    pub fn previous(&self) -> Option<char> {
        self.text[..self.caret].chars().next_back()
    }

    /// The bytes of the character before the cursor, a line break counted as one.
    pub fn before_caret(&self) -> std::ops::Range<usize> {
        let length = match self.text[..self.caret].ends_with("\r\n") {
            true => 2,
            false => self.previous().map_or(0, char::len_utf8),
        };
        self.caret - length..self.caret
    }

    pub fn behind_caret(&self) -> std::ops::Range<usize> {
        let length = match self.text[self.caret..].starts_with("\r\n") {
            true => 2,
            false => self.next().map_or(0, char::len_utf8),
        };
        self.caret..self.caret + length
    }
}
