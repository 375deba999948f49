//! Where in a generated text the block or statement ends that was block.

use super::lines::{columns, continues, is_leading, starts_closing};
use crate::syntax::{self, SyntaxScan};
use tree_sitter::Language;

#[derive(Debug)]
pub(super) struct BlockStart {
    pub(super) grammar: Option<Language>,
    /// The lines above the cursor's, as many as are read.
    pub(super) above: String,
    /// The cursor's line up to the cursor.
    pub(super) line: String,
    pub(super) kind: BlockKind,
    /// The lines with text below the cursor's, as many as may be repeated.
    pub(super) below: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Lines of a block that was opened before: none of them is less deep than so
    /// many columns. `closed`: its closing bracket stands below already.
    Body { columns: usize, closed: bool },
    /// One statement, with the block it opens; `opens` if the line has opened it.
    Statement { opens: bool },
}

impl BlockStart {
    /// Where in the generated text the block that was block ends, in bytes.
    pub(super) fn end(&self, said: &str, is_whole: bool) -> Option<usize> {
        let cursor_line_is_blank = self.line.trim().is_empty();
        let first = said.split('\n').next().unwrap_or_default();
        let leaves = first.trim().is_empty() && said.len() > first.len();
        if cursor_line_is_blank && leaves {
            // Nothing is to be said on this line.
            return Some(0);
        }
        let from = self.above.len() + self.line.len();
        let text = format!("{}{}{said}", self.above, self.line);
        let read = |grammar| syntax::scan(grammar, &text);
        let scan = self.grammar.as_ref().and_then(read).unwrap_or_default();

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
        let mut brackets = scan.brackets.iter().filter(|b| b.at >= from).peekable();
        let mut at = 0;
        for line in said.split_inclusive('\n') {
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

    /// Brackets open at the cursor that are the completion's to close.
    fn depth(&self, scan: &SyntaxScan) -> usize {
        let (start, end) = (self.above.len(), self.above.len() + self.line.len());
        match self.kind {
            BlockKind::Body { .. } => 0,
            BlockKind::Statement { .. } => {
                let own = scan.brackets.iter().filter(|b| (start..end).contains(&b.at));
                own.fold(0, |depth: usize, bracket| match bracket.opens {
                    true => depth + 1,
                    false => depth.saturating_sub(1),
                })
            }
        }
    }

    /// Whether a line so many columns deep is none of the block's. `continues` if it
    /// can be of a statement that is no deeper.
    fn ends_before(&self, deep: usize, least: usize, depth: usize, continues: bool) -> bool {
        match self.kind {
            BlockKind::Body { .. } => depth == 0 && deep < least,
            // Less deep than the statement it cannot be, whatever is open.
            BlockKind::Statement { .. } => {
                deep < least || depth == 0 && deep == least && !continues
            }
        }
    }

    /// Bytes at the start of a line that are shown though the block ends there: the
    /// bracket that closes it, if nobody has written that yet.
    fn closing(&self, line: &str) -> usize {
        let blanks = line.len() - line.trim_start().len();
        let is_open = matches!(self.kind, BlockKind::Body { closed: false, .. });
        if is_open && starts_closing(line) { blanks + 1 } else { 0 }
    }
}
