//! A block or statement that the cursor stands in, and where it ends in a generated text.

use super::lines::{columns, continues, is_leading, starts_closing};
use crate::syntax::{self, Bracket, SyntaxScan};
use tree_sitter::Language;

/// The block that is completed: the text before the cursor, and the lines below it.
#[derive(Debug)]
pub(super) struct BlockStart {
    pub(super) grammar: Option<Language>,
    /// The lines above the cursor's line that are read.
    pub(super) above: String,
    /// The cursor's line up to the cursor.
    pub(super) line: String,
    pub(super) kind: BlockKind,
    /// The lines with text below the cursor's line that an answer may repeat.
    pub(super) below: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Lines of a block that was opened before. Each is indented by at least `columns`. `closed`
    /// says that the closing bracket stands below already.
    Body { columns: usize, closed: bool },
    /// One statement with the block it opens. `opens` says that the cursor's line has opened it.
    Statement { opens: bool },
}

impl BlockStart {
    /// The byte of the generated text at which the block ends.
    pub(super) fn end(&self, answer: &str, is_whole: bool) -> Option<usize> {
        let cursor_line_is_blank = self.line.trim().is_empty();
        let first = answer.split('\n').next().unwrap_or_default();
        let leaves = first.trim().is_empty() && answer.len() > first.len();
        if cursor_line_is_blank && leaves {
            // The answer leaves the blank line at once, so nothing is shown.
            return Some(0);
        }
        let from = self.above.len() + self.line.len();
        let text = format!("{}{}{answer}", self.above, self.line);
        let scan = |grammar| syntax::scan(grammar, &text);
        let scan = self.grammar.as_ref().and_then(scan).unwrap_or_default();

        let own = if cursor_line_is_blank {
            columns(&format!("{}{first}", self.line))
        } else {
            columns(&self.line)
        };
        let least = match self.kind {
            BlockKind::Body { columns, .. } if cursor_line_is_blank => columns.min(own),
            BlockKind::Body { columns, .. } => columns,
            BlockKind::Statement { .. } => own,
        };
        let mut depth = self.depth(&scan);
        let mut has_started = match self.kind {
            BlockKind::Body { .. } => true,
            BlockKind::Statement { opens } => {
                opens || !leaves && !is_leading(&format!("{}{first}", self.line))
            }
        };
        let mut brackets = scan.brackets.iter().filter(|bracket| bracket.at >= from).peekable();
        let mut at = 0;
        for line in answer.split_inclusive('\n') {
            let content = line.trim();
            let counts = at > 0 && !content.is_empty() && !scan.is_text(from + at);
            let may_grow = !is_whole && !line.ends_with('\n');
            let continues = !has_started || continues(content, may_grow);
            if counts && self.ends_before(columns(line), least, depth, continues) {
                return Some(at + self.closing(line));
            }
            has_started |= counts && !is_leading(line);
            let end = at + line.len();
            while let Some(bracket) = brackets.next_if(|bracket| bracket.at < from + end) {
                match (bracket.opens, depth) {
                    (true, _) => depth += 1,
                    (false, 0) => {
                        return Some(bracket.at - from + self.closing(&text[bracket.at..]));
                    }
                    (false, _) => depth -= 1,
                }
            }
            at = end;
        }
        None
    }

    /// The number of brackets that are open at the cursor and that the completion has to close.
    fn depth(&self, scan: &SyntaxScan) -> usize {
        let (start, end) = (self.above.len(), self.above.len() + self.line.len());
        match self.kind {
            BlockKind::Body { .. } => 0,
            BlockKind::Statement { .. } => {
                let own = scan.brackets.iter().filter(|bracket| (start..end).contains(&bracket.at));
                let add = |depth: usize, bracket: &Bracket| {
                    if bracket.opens { depth + 1 } else { depth.saturating_sub(1) }
                };
                own.fold(0, add)
            }
        }
    }

    /// Returns whether a line with this indentation is outside the block. `continues` says that it
    /// can belong to a statement of the same indentation.
    fn ends_before(&self, indent: usize, least: usize, depth: usize, continues: bool) -> bool {
        match self.kind {
            BlockKind::Body { .. } => depth == 0 && indent < least,
            // A line that is indented less than the statement never belongs to it, whatever is
            // open.
            BlockKind::Statement { .. } => {
                indent < least || depth == 0 && indent == least && !continues
            }
        }
    }

    /// The bytes at the start of the first line outside the block that are shown all the same: the
    /// bracket that closes the block, unless it is in the document already.
    fn closing(&self, line: &str) -> usize {
        let blanks = line.len() - line.trim_start().len();
        let is_open = matches!(self.kind, BlockKind::Body { closed: false, .. });
        if is_open && starts_closing(line) { blanks + 1 } else { 0 }
    }
}
