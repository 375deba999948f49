//! How far a completion may reach: to the end of its line, or over several lines
//! to the end of the block that was block.
//!
//! Indentation tells where a block ends, in every language. Where there is a
//! grammar ([`crate::syntax`]), its brackets tell besides: a bracket that closes
//! what was opened above the cursor ends the block wherever it stands, and a line
//! that begins in a string or between brackets has no indentation that counts.

mod block;
mod cursor_lines;
mod lines;

use crate::syntax;
use block::BlockStart;
use cursor_lines::CursorLines;
use feedback::event::StopReason;
use ropey::Rope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// When completions of several lines are computed. On a CPU each further line costs time, so
/// by default only a user who invokes a completion waits for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Multiline {
    /// Nowhere.
    Never,
    /// Where you ask by hand and nothing stands behind the cursor on its line.
    #[default]
    ByHand,
    /// As you type too, where the body of an empty block is to be written.
    Always,
}

/// What the user has set.
#[derive(Debug, Clone, Copy)]
pub struct MultilineSetting {
    pub multiline: Multiline,
    pub max_lines: usize,
}

/// How far the answer to one request may reach.
#[derive(Debug, Clone)]
pub struct StopRule {
    /// Most lines that are shown.
    lines: usize,
    /// Of more than one line: what was block.
    block: Option<Arc<BlockStart>>,
}

impl StopRule {
    /// To the end of the line.
    pub const LINE: StopRule = StopRule { lines: 1, block: None };

    /// What may be shown at a cursor, which is given in characters.
    pub fn at(
        text: &Rope,
        cursor: usize,
        language: &str,
        invoked: bool,
        setting: MultilineSetting,
    ) -> StopRule {
        let wanted = match setting.multiline {
            Multiline::Never => false,
            Multiline::ByHand => invoked,
            Multiline::Always => true,
        };
        if !wanted || setting.max_lines < 2 {
            return StopRule::LINE;
        }
        let place = CursorLines::of(text, cursor, setting.max_lines);
        // The model breaks lines by `\n`; what it says is not rewritten, so that the
        // record stays what was served.
        let Some(place) = place.filter(|place| !place.has_other_breaks) else {
            return StopRule::LINE;
        };
        let grammar = syntax::grammar(language);
        let opener = place.opener(grammar.as_ref());
        let is_to_be_filled = opener.is_some_and(|opener| opener.opens_block) && place.is_empty();
        if !invoked && !is_to_be_filled {
            return StopRule::LINE;
        }
        let kind = place.block_kind(opener.is_some());
        let CursorLines { above, line, below, .. } = place;
        let block = BlockStart { grammar, above, line, kind, below };
        StopRule { lines: setting.max_lines, block: Some(Arc::new(block)) }
    }

    /// Most lines that are shown.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Whether an answer ends here: `said` is all of it behind what healing had to
    /// reproduce, `new` the token's piece it ends with.
    pub fn stop(&self, said: &[u8], new: &[u8]) -> Option<StopReason> {
        if self.block.is_none() {
            return new.contains(&b'\n').then_some(StopReason::Newline);
        }
        // Nothing else can tell: a line has ended, or the next has shown how deep it is.
        let old = &said[..said.len().saturating_sub(new.len())];
        let (was, is) = (last_line(old), last_line(said));
        let begins = is_blank(was) && !is_blank(is) && said.contains(&b'\n');
        if !new.contains(&b'\n') && !begins {
            return None;
        }
        self.end(valid_utf8_prefix(said), false).map(|(_, stop)| stop)
    }

    /// The part of an answer that lies within.
    pub fn within<'a>(&self, said: &'a [u8]) -> &'a [u8] {
        self.end(valid_utf8_prefix(said), true).map_or(said, |(at, _)| &said[..at])
    }

    /// The lines with text that follow the cursor's, and that line up to it: what
    /// is not to be said again. `None` for a single line.
    pub fn lines_around(&self) -> Option<(&str, &[String])> {
        self.block.as_ref().map(|block| (block.line.as_str(), block.below.as_slice()))
    }

    /// Where in an answer what may be shown ends, in bytes, and why. `is_whole` if
    /// nothing will be added to it.
    fn end(&self, said: &str, is_whole: bool) -> Option<(usize, StopReason)> {
        let first_break = said.find(['\n', '\r']);
        let Some(block) = &self.block else {
            return first_break.map(|at| (at, StopReason::Newline));
        };
        // A break that leaves the cursor's line begins no line of its own.
        let leaves = first_break.is_some_and(|at| said[..at].trim().is_empty());
        let mut breaks = said.match_indices('\n').map(|(at, _)| at);
        let full = breaks.nth(self.lines + usize::from(leaves) - 1);
        let foreign = said.find('\r').map(|at| (at, StopReason::BlockEnd));
        let block = block.end(said, is_whole).map(|at| (at, StopReason::BlockEnd));
        let full = full.map(|at| (at, StopReason::MaxLines));
        [foreign, block, full].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

fn last_line(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default()
}

fn is_blank(text: &[u8]) -> bool {
    text.trim_ascii().is_empty()
}

/// Without half a character at its end: a token may end inside one.
pub fn valid_utf8_prefix(text: &[u8]) -> &str {
    match std::str::from_utf8(text) {
        Ok(all) => all,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
