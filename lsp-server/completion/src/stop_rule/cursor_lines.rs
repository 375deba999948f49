//! The cursor's line and the text around it, and the kind of block that stands there.

use super::block::BlockKind;
use super::lines::{columns, opens, starts_closing};
use crate::auto_closed::is_between_braces;
use crate::prompt::{LINE_CHARS, with_lf};
use crate::syntax;
use ropey::Rope;
use tree_sitter::Language;

/// Characters that are read above the cursor's line. Parsing them takes one to two milliseconds.
const WINDOW_CHARS: usize = 4_000;

/// Characters that are read behind the cursor.
const AFTER_CHARS: usize = 1_000;

/// A cursor and the text around it.
pub(super) struct CursorLines {
    pub(super) above: String,
    pub(super) line: String,
    /// The text behind the cursor, as far as it is read.
    after: String,
    /// The lines of `after` that hold text.
    pub(super) below: Vec<String>,
    /// True if a line ends with a lone `\r`.
    pub(super) has_other_breaks: bool,
}

impl CursorLines {
    /// `None` where text stands behind the cursor on its line, or where the line is too long. The
    /// brace that the editor closed is no such text.
    pub(super) fn of(text: &Rope, cursor: usize, max_lines: usize) -> Option<CursorLines> {
        let row = text.char_to_line(cursor);
        let start = text.line_to_char(row);
        let own = text.line(row);
        if own.len_chars() > LINE_CHARS {
            return None;
        }
        let rest = text.slice(cursor..start + own.len_chars()).to_string();
        let before = text.slice(start..cursor).to_string();
        if !rest.trim().is_empty() && !is_between_braces(&before, &rest) {
            return None;
        }
        let earliest = start.saturating_sub(WINDOW_CHARS);
        let cut = text.char_to_line(earliest);
        let whole = if text.line_to_char(cut) == earliest { cut } else { cut + 1 };
        let above = text.slice(text.line_to_char(whole).min(start)..start).to_string();
        let end = (cursor + AFTER_CHARS).min(text.len_chars());
        let after = text.slice(cursor..end).to_string();
        let (above, after) = (with_lf(above), with_lf(after));
        let below = after.lines().map(|line| line.trim_end().to_owned());
        let mut below: Vec<_> = below.filter(|line| !line.is_empty()).take(max_lines).collect();
        if let Some(closing) = below.first_mut().filter(|_| !rest.trim().is_empty()) {
            // The brace behind the cursor goes onto a line of its own.
            let indentation = &before[..before.len() - before.trim_start().len()];
            closing.insert_str(0, indentation);
        }
        let has_other_breaks = above.contains('\r') || after.contains('\r');
        let line = text.slice(start..cursor).to_string();
        Some(CursorLines { above, line, after, below, has_other_breaks })
    }

    fn is_blank(&self) -> bool {
        self.line.trim().is_empty()
    }

    /// The cursor's line, or the last line above it that holds text.
    fn head(&self) -> &str {
        if !self.is_blank() {
            return &self.line;
        }
        self.above.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default()
    }

    /// Returns true if a bracket or colon right before the cursor opens the block around it.
    pub(super) fn is_opened(&self, grammar: Option<&Language>) -> bool {
        let text = format!("{}{}{}", self.above, self.line, self.after);
        let Some(scan) = grammar.and_then(|grammar| syntax::scan(grammar, &text)) else {
            return opens(self.head().trim_end());
        };
        // A comment behind the opener does not count.
        let mut code = text[..self.above.len() + self.line.len()].trim_end();
        while let Some(comment) = scan.text_ranges.iter().find(|text_range| {
            (text_range.start + 1..=text_range.end).contains(&code.len())
                && ["//", "/*", "#"].iter().any(|start| text[text_range.start..].starts_with(start))
        }) {
            code = text[..comment.start].trim_end();
        }
        let Some(at) = code.len().checked_sub(1) else { return false };
        match scan.brackets.iter().find(|bracket| bracket.at == at) {
            Some(bracket) => bracket.opens,
            None => code.ends_with(':') && !scan.is_text(at),
        }
    }

    /// The kind of block at the cursor, as the lines above and below show it.
    pub(super) fn block_kind(&self, opens: bool) -> BlockKind {
        let (head, here) = (columns(self.head()), columns(&self.line));
        let next = self.below.first();
        // Returns whether the block of lines deeper than `outer` is closed below, or continues
        // there.
        let is_closed = |outer: usize| {
            next.is_some_and(|next| match columns(next) {
                deep if deep > outer => true,
                deep => starts_closing(next) && (!opens || deep == outer),
            })
        };
        match (self.is_blank(), opens) {
            (true, true) => BlockKind::Body { columns: head + 1, closed: is_closed(head) },
            (true, false) if here > 0 => {
                BlockKind::Body { columns: here, closed: is_closed(here - 1) }
            }
            (false, true) if is_closed(head) => BlockKind::Body { columns: head + 1, closed: true },
            (_, opens) => BlockKind::Statement { opens },
        }
    }
}
