//! What a rule does at a place where its pattern fits, if it may.

use crate::brackets::balance_alike;
use crate::language::Language;
use crate::pattern::{Lexed, Part, Pattern};
use crate::rules::{Action, Indent, InsertedLine, Rule};
use crate::template::write;
use crate::tokens::{Inside, tokens};
use std::ops::Range;

/// The bytes that are replaced, and the new text. None if the edit is made there already, would
/// change nothing, or would leave brackets open.
pub(super) fn written(
    rule: &Rule,
    pattern: &Pattern,
    lexed: &Lexed,
    spans: &[Range<usize>],
    language: &Language,
) -> Option<(Range<usize>, String)> {
    let holes: Vec<&str> = pattern
        .parts
        .iter()
        .zip(spans)
        .filter(|(part, _)| **part == Part::Hole)
        .map(|(_, span)| text_of(lexed, span))
        .collect();
    let tokens = match (spans.first(), spans.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => return None,
    };
    let (range, new) = match &rule.action {
        Action::Replace { pieces, gaps } => {
            let replaced = match (spans.get(pattern.replaced.start), pattern.replaced.is_empty()) {
                (Some(next), true) => next.start..next.start,
                (None, _) => tokens.end..tokens.end,
                (Some(first), false) => first.start..spans[pattern.replaced.end - 1].end,
            };
            let new = write(pieces, &holes);
            if is_made_already(lexed, &replaced, &new, language) {
                return None;
            }
            replace(lexed, &replaced, new, gaps)
        }
        Action::DeleteLines { below } => (deleted(lexed, tokens, below)?, String::new()),
        Action::InsertLines { is_below, lines } => {
            inserted(lexed, tokens, *is_below, lines, &holes, language)?
        }
    };
    let old = &lexed.text[range.clone()];
    (old != new && balance_alike(old, &new, language)).then_some((range, new))
}

/// The text from the first of these tokens to the last.
fn text_of<'a>(lexed: &Lexed<'a>, span: &Range<usize>) -> &'a str {
    if span.is_empty() {
        return "";
    }
    let (first, last) = (lexed.tokens[span.start], lexed.tokens[span.end - 1]);
    &lexed.text[first.start as usize..last.end as usize]
}

/// Returns true if the replaced tokens stand in the new text already, as `x` does in `f(x)` after
/// it was wrapped.
fn is_made_already(lexed: &Lexed, replaced: &Range<usize>, new: &str, language: &Language) -> bool {
    let new_tokens = tokens(new, language, Inside::Code);
    let new_words: Vec<&str> =
        new_tokens.iter().map(|token| &new[token.start as usize..token.end as usize]).collect();
    let old_words: Vec<&str> = replaced.clone().map(|at| lexed.word(at)).collect();
    if new_words.is_empty() {
        return false;
    }
    let stands_at = |from: usize| {
        from + new_words.len() <= lexed.tokens.len()
            && new_words.iter().enumerate().all(|(at, word)| lexed.word(from + at) == *word)
    };
    (0..=new_words.len()).any(|offset| {
        let holds_old = new_words[offset..].starts_with(&old_words);
        holds_old && replaced.start.checked_sub(offset).is_some_and(stands_at)
    })
}

/// Replaces tokens by text, and the blanks around by those of the example where it changed them.
/// Indentation stays, and a line gets no blanks at its end.
fn replace(
    lexed: &Lexed,
    replaced: &Range<usize>,
    new: String,
    gaps: &[Option<String>; 2],
) -> (Range<usize>, String) {
    let start_of = |at: usize| lexed.tokens.get(at).map(|token| token.start as usize);
    let end_of = |at: usize| lexed.tokens[at].end as usize;
    let (is_first, is_last) = (lexed.is_start(replaced.start), lexed.is_end(replaced.end));
    let before = replaced.start.checked_sub(1).map_or(0, end_of);
    let (first, last) = match (replaced.is_empty(), is_first) {
        (false, _) => (start_of(replaced.start).unwrap_or(before), end_of(replaced.end - 1)),
        (true, true) => (start_of(replaced.start).unwrap_or(before), before),
        (true, false) => (before, before),
    };
    let (from, left) = match &gaps[0] {
        Some(gap) if !is_first => (before, gap.as_str()),
        _ => (first, ""),
    };
    let (to, right) = match &gaps[1] {
        Some(gap) if !is_last => (start_of(replaced.end).unwrap_or(last), gap.as_str()),
        _ => (last.max(from), ""),
    };
    let text = match new.is_empty() {
        true if is_first || is_last => String::new(),
        // What is left and right of nothing is one gap.
        true => left.to_owned(),
        false => format!("{left}{new}{right}"),
    };
    (from..to, text)
}

/// The first byte of the line with this token, and the first one behind its line break.
fn whole_line(lexed: &Lexed, token: usize) -> Range<usize> {
    let at = lexed.tokens[token].start as usize;
    let start = lexed.text[..at].rfind('\n').map_or(0, |found| found + 1);
    let end = lexed.text[at..].find('\n').map_or(lexed.text.len(), |found| at + found + 1);
    start..end
}

/// The lines of a block that stands there.
fn deleted(lexed: &Lexed, tokens: Range<usize>, below: &[Pattern]) -> Option<Range<usize>> {
    let first = whole_line(lexed, tokens.start);
    let (mut end, mut next) = (first.end, tokens.end + 1);
    for pattern in below {
        while lexed.tokens.get(next).is_some() && lexed.is_end(next) {
            next += 1;
        }
        lexed.tokens.get(next)?;
        let spans = pattern.at(lexed, 0, next)?;
        end = whole_line(lexed, next).end;
        next = spans.last()?.end + 1;
    }
    Some(first.start..end)
}

/// The lines that are put next to a line, and where. None if the first of them stands there
/// already.
fn inserted(
    lexed: &Lexed,
    tokens: Range<usize>,
    is_below: bool,
    lines: &[InsertedLine],
    holes: &[&str],
    language: &Language,
) -> Option<(Range<usize>, String)> {
    let anchor = whole_line(lexed, tokens.start);
    let text = &lexed.text[anchor.clone()];
    let end = if text.ends_with("\r\n") { "\r\n" } else { "\n" };
    if is_below && !text.ends_with('\n') {
        return None;
    }
    let indent = &text[..text.len() - text.trim_start().len()];
    let written: String = lines
        .iter()
        .map(|line| match (&line.pieces, &line.indent) {
            (pieces, _) if pieces.is_empty() => end.to_owned(),
            (pieces, Indent::Deeper(more)) => {
                format!("{indent}{more}{}{end}", write(pieces, holes))
            }
            (pieces, Indent::Exactly(all)) => format!("{all}{}{end}", write(pieces, holes)),
        })
        .collect();
    let at = if is_below { anchor.end } else { anchor.start };
    let neighbour = match is_below {
        true => lexed.text[at..].trim_start().lines().next(),
        false => lexed.text[..at].trim_end().lines().next_back(),
    };
    let mut full = written.lines().filter(|line| !line.trim().is_empty());
    let next_to_it = if is_below { full.next() } else { full.next_back() }?;
    let is_there = neighbour.is_some_and(|neighbour| is_same(neighbour, next_to_it, language));
    (!is_there).then_some((at..at, written))
}

/// Returns true if two lines are the same but for their blanks.
fn is_same(a: &str, b: &str, language: &Language) -> bool {
    let words = |text: &str| -> Vec<String> {
        let tokens = tokens(text, language, Inside::Code);
        tokens.iter().map(|t| text[t.start as usize..t.end as usize].to_owned()).collect()
    };
    words(a) == words(b)
}
