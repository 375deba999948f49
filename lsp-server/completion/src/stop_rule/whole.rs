//! The part of an offer of several lines that ends with a whole statement. A limit of lines, tokens
//! or time may cut an answer behind the header of a block, or in the middle of a list.

use super::block::BlockStart;
use super::lines::{columns, is_leading, opens};
use crate::syntax::{self, SyntaxScan};
use std::ops::Range;

/// Ends of lines that the next line continues.
const CONTINUED: &[&str] = &["=", "&&", "||", "->", "\\"];

/// Beginnings of lines that belong to what is declared below them, in the languages that have a
/// grammar here.
const ATTRIBUTES: &[&str] = &["@", "#["];

impl BlockStart {
    /// The byte of `shown` behind its last whole statement. `next` is the text that was generated
    /// behind it. The first line with text stays in any case, because an offer of a single line
    /// may be the header of a block.
    pub(super) fn whole(&self, shown: &str, next: &str) -> usize {
        let blank = shown.len() - shown.trim_start().len();
        let first = shown[blank..].find('\n').map_or(shown.len(), |at| blank + at);
        if first == shown.len() {
            return first;
        }
        let from = self.above.len() + self.line.len();
        let text = format!("{}{}{shown}{next}", self.above, self.line);
        let scan = |grammar| syntax::scan(grammar, &text);
        let scan = self.grammar.as_ref().and_then(scan).unwrap_or_default();

        let line_start = |at: usize| shown[..at].rfind('\n').map_or(0, |at| at + 1);
        let mut end = shown.len();
        while end > first {
            let cut = if self.is_begun(&text, &scan, from + line_start(end)..from + end) {
                end
            } else {
                match open_value(&scan, from..from + end) {
                    Some(at) if at > from + first => at - from,
                    _ => break,
                }
            };
            end = shown[..line_start(cut)].trim_end().len();
        }
        end
    }

    /// Returns true if a line of the text begins something that continues below it, as a block.
    fn is_begun(&self, text: &str, scan: &SyntaxScan, line: Range<usize>) -> bool {
        let (content, column) = (text[line.clone()].trim(), columns(&text[line.clone()]));
        if self.below.first().is_some_and(|below| columns(below) > column) {
            return false;
        }
        let ends_in_text = scan.is_text(line.end - 1);
        let is_comment = self.grammar.is_none() && is_leading(content);
        let by_mark = !ends_in_text
            && !is_comment
            && (opens(content) || CONTINUED.iter().any(|end| content.ends_with(end)));
        let is_attribute =
            self.grammar.is_some() && ATTRIBUTES.iter().any(|start| content.starts_with(start));
        by_mark || is_attribute || self.goes_deeper(text, scan, line.end, column)
    }

    /// Returns true if the next line with text behind `end` belongs to the one before it, by its
    /// indentation or by a brace at its start.
    fn goes_deeper(&self, text: &str, scan: &SyntaxScan, end: usize, column: usize) -> bool {
        let mut at = end;
        let next = text[end..].split_inclusive('\n').find(|line| {
            let is_below = at > end && !line.trim().is_empty();
            at += if is_below { 0 } else { line.len() };
            is_below
        });
        next.is_some_and(|next| {
            let belongs = columns(next) > column || next.trim_start().starts_with('{');
            belongs && !scan.is_text(at)
        })
    }
}

/// The byte of the innermost bracket that a part of the text leaves open, if values stand in it.
fn open_value(scan: &SyntaxScan, part: Range<usize>) -> Option<usize> {
    let mut open = vec![];
    for bracket in scan.brackets.iter().filter(|bracket| part.contains(&bracket.at)) {
        if bracket.opens {
            open.push(bracket);
        } else {
            open.pop();
        }
    }
    open.last().filter(|bracket| bracket.encloses_value).map(|bracket| bracket.at)
}
