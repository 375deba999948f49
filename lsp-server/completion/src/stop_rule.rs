//! The stop rule: where the generation of a completion ends. It ends with the line, or after
//! several lines with the block that the cursor stands in.
//!
//! In every language, indentation shows where a block ends. Where there is a grammar
//! ([`crate::syntax`]), brackets show it too: a bracket that closes what was opened above the
//! cursor ends the block wherever it stands, and the indentation of a line that begins in a string
//! or between brackets does not count.

mod block;
mod cursor_lines;
mod lines;
mod whole;

use crate::syntax;
use block::BlockStart;
use cursor_lines::CursorLines;
use feedback::event::StopReason;
use ropey::Rope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// When completions of several lines are computed. As one types, they complete no more than line
/// after line does (docs/lab/refuted.md).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Multiline {
    /// Never.
    Never,
    /// Where you invoke a completion and no text stands behind the cursor on its line.
    #[default]
    Invoked,
}

/// The user's settings for completions of several lines.
#[derive(Debug, Clone, Copy)]
pub struct MultilineSetting {
    pub multiline: Multiline,
    pub max_lines: usize,
}

/// The rule by which the answer to one request ends.
#[derive(Debug, Clone)]
pub struct StopRule {
    /// The most lines that are shown.
    lines: usize,
    /// The block that is completed, or `None` for a single line.
    block: Option<Arc<BlockStart>>,
}

impl StopRule {
    /// The rule that ends an answer with its line.
    pub const LINE: StopRule = StopRule { lines: 1, block: None };

    /// The rule for a cursor, which is given in characters.
    pub fn at(
        text: &Rope,
        cursor: usize,
        language: &str,
        invoked: bool,
        setting: MultilineSetting,
    ) -> StopRule {
        if !invoked || setting.multiline == Multiline::Never || setting.max_lines < 2 {
            return StopRule::LINE;
        }
        let cursor_lines = CursorLines::of(text, cursor, setting.max_lines);
        // The model ends lines with `\n`, which stands for `\r\n` too. A file in which a lone `\r`
        // ends lines gets single lines.
        let Some(cursor_lines) = cursor_lines.filter(|cursor_lines| !cursor_lines.has_other_breaks)
        else {
            return StopRule::LINE;
        };
        let grammar = syntax::grammar(language);
        let kind = cursor_lines.block_kind(cursor_lines.is_opened(grammar.as_ref()));
        let CursorLines { above, line, below, .. } = cursor_lines;
        let block = BlockStart { grammar, above, line, kind, below };
        StopRule { lines: setting.max_lines, block: Some(Arc::new(block)) }
    }

    /// The most lines that are shown.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Returns whether an answer ends here. `answer` is the answer behind the text that healing
    /// reproduces, and `new` is the piece of its last token.
    pub fn stop(&self, answer: &[u8], new: &[u8]) -> Option<StopReason> {
        if self.block.is_none() {
            return new.contains(&b'\n').then_some(StopReason::Newline);
        }
        // Only two events can end a block: a line has ended, or the next line has shown its
        // indentation.
        let old = &answer[..answer.len().saturating_sub(new.len())];
        let (before, after) = (last_line(old), last_line(answer));
        let begins = is_blank(before) && !is_blank(after) && answer.contains(&b'\n');
        if !new.contains(&b'\n') && !begins {
            return None;
        }
        self.end(valid_utf8_prefix(answer), false).map(|(_, stop)| stop)
    }

    /// The part of an answer that may be shown.
    pub fn within<'a>(&self, answer: &'a [u8]) -> &'a [u8] {
        self.end(valid_utf8_prefix(answer), true).map_or(answer, |(at, _)| &answer[..at])
    }

    /// The part of an offer that ends with a whole statement. `next` is what was generated behind
    /// the offer.
    pub fn whole<'a>(&self, shown: &'a str, next: &[u8]) -> &'a str {
        let end = self.block.as_ref().map(|block| block.whole(shown, valid_utf8_prefix(next)));
        &shown[..end.unwrap_or(shown.len())]
    }

    /// The cursor's line up to the cursor, and the lines with text below it, which an answer must
    /// not repeat. `None` for a single line.
    pub fn lines_around(&self) -> Option<(&str, &[String])> {
        self.block.as_ref().map(|block| (block.line.as_str(), block.below.as_slice()))
    }

    /// The byte at which the part of an answer that may be shown ends, and the reason. `is_whole`
    /// says that nothing will be added to the answer.
    fn end(&self, answer: &str, is_whole: bool) -> Option<(usize, StopReason)> {
        let first_break = answer.find(['\n', '\r']);
        let Some(block) = &self.block else {
            return first_break.map(|at| (at, StopReason::Newline));
        };
        // A line break right at the cursor only leaves its line, so it is not counted as a line.
        let leaves = first_break.is_some_and(|at| answer[..at].trim().is_empty());
        let mut breaks = answer.match_indices('\n').map(|(at, _)| at);
        let line_limit = breaks.nth(self.lines + usize::from(leaves) - 1);
        // The indentation of the next line says whether the last one is the header of a block.
        let line_limit = line_limit.filter(|at| is_whole || !answer[*at..].trim().is_empty());
        let other_break = answer.find('\r').map(|at| (at, StopReason::BlockEnd));
        let block = block.end(answer, is_whole).map(|at| (at, StopReason::BlockEnd));
        let line_limit = line_limit.map(|at| (at, StopReason::MaxLines));
        [other_break, block, line_limit].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

fn last_line(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default()
}

fn is_blank(text: &[u8]) -> bool {
    text.trim_ascii().is_empty()
}

/// The text without an incomplete character at its end, since a token may end inside a character.
pub fn valid_utf8_prefix(text: &[u8]) -> &str {
    match std::str::from_utf8(text) {
        Ok(all) => all,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
