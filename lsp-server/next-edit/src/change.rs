//! What a unit changes, line by line: lines that are rewritten, deleted or inserted.

use crate::language::Language;
use crate::tokens::{Class, Inside, Kind, Token, tokens};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Lines with more tokens are not written by people.
pub(crate) const LINE_TOKENS_MAX: usize = 200;

/// The share of tokens that an old and a new line have in common if one became the other.
const SAME_LINE_SHARE: f32 = 0.5;

/// A line without its line break, and its tokens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub text: String,
    pub tokens: Vec<Token>,
}

#[derive(Debug, Clone)]
pub(crate) enum Change {
    Rewritten(Rewrite),
    Deleted(Vec<Line>),
    Inserted {
        lines: Vec<Line>,
        /// The nearest lines above and below that are not blank.
        above: Option<Line>,
        below: Option<Line>,
    },
}

/// A line that became another one.
#[derive(Debug, Clone)]
pub(crate) struct Rewrite {
    pub old: Line,
    pub new: Line,
    /// The tokens that are the same before and behind what differs.
    pub prefix: usize,
    pub suffix: usize,
}

impl Line {
    pub fn of(text: &str, language: &Language) -> Line {
        lines(text, language, Inside::Code)
            .pop()
            .unwrap_or(Line { text: "".into(), tokens: vec![] })
    }

    pub fn word(&self, at: usize) -> &str {
        let token = self.tokens[at];
        &self.text[token.start as usize..token.end as usize]
    }

    pub fn words(&self) -> impl Iterator<Item = &str> {
        (0..self.tokens.len()).map(|at| self.word(at))
    }

    /// The blanks before the token, or behind the last one.
    pub fn gap(&self, before: usize) -> &str {
        let from = before.checked_sub(1).map_or(0, |at| self.tokens[at].end as usize);
        let to = self.tokens.get(before).map_or(self.text.len(), |token| token.start as usize);
        &self.text[from..to]
    }

    pub fn indent(&self) -> &str {
        &self.text[..self.text.len() - self.text.trim_start().len()]
    }
}

impl Rewrite {
    /// None if only blanks differ.
    fn of(old: Line, new: Line) -> Option<Rewrite> {
        let most = old.tokens.len().min(new.tokens.len());
        let prefix = old.words().zip(new.words()).take_while(|(a, b)| a == b).count();
        if prefix == old.tokens.len() && prefix == new.tokens.len() {
            return None;
        }
        let last = |line: &Line, back: usize| line.tokens.len() - 1 - back;
        let suffix = (0..most - prefix)
            .take_while(|back| old.word(last(&old, *back)) == new.word(last(&new, *back)))
            .count();
        Some(Rewrite { old, new, prefix, suffix })
    }

    /// The tokens that differ: of the old line, and of the new one.
    pub fn spans(&self) -> (Range<usize>, Range<usize>) {
        let span = |line: &Line| self.prefix..line.tokens.len() - self.suffix;
        (span(&self.old), span(&self.new))
    }

    /// The blanks before and behind these tokens of the new line, where they are not those around
    /// the old ones.
    pub fn gaps(&self, old: &Range<usize>, new: &Range<usize>) -> [Option<String>; 2] {
        let is_gone = old.is_empty() || new.is_empty();
        [(old.start, new.start), (old.end, new.end)].map(|(old, new)| {
            let (was, is) = (self.old.gap(old), self.new.gap(new));
            (is_gone || was != is).then(|| is.to_owned())
        })
    }
}

/// The changes of a unit. `around` are the nearest full lines above and below it.
pub(crate) fn changes(
    language: &Language,
    inside: Inside,
    was: &str,
    is: &str,
    around: [Option<String>; 2],
) -> Vec<Change> {
    let old = lines(was, language, inside);
    let new = lines(is, language, inside);
    let outer = around.map(|line| line.map(|line| Line::of(&line, language)));
    let [above, below] = outer;
    let mut changes = vec![];
    let (mut from_old, mut from_new) = (0, 0);
    let mut pairs = pairs(&old, &new);
    pairs.push((old.len(), new.len()));
    for (at_old, at_new) in pairs {
        let (deleted, inserted) = (&old[from_old..at_old], &new[from_new..at_new]);
        let full = |lines: &[Line]| lines.iter().any(|line| !line.tokens.is_empty());
        if full(deleted) && !full(inserted) {
            changes.push(Change::Deleted(deleted.to_vec()));
        } else if full(inserted) && !full(deleted) {
            let full = |line: &&Line| !line.tokens.is_empty();
            let above = new[..from_new].iter().rev().find(full).or(above.as_ref()).cloned();
            let below = new[at_new..].iter().find(full).or(below.as_ref()).cloned();
            changes.push(Change::Inserted { lines: inserted.to_vec(), above, below });
        } else if deleted.len() == inserted.len() {
            let pairs = deleted.iter().zip(inserted);
            changes.extend(pairs.filter_map(|(old, new)| rewritten(old, new)));
        }
        if at_old < old.len() {
            changes.extend(rewritten(&old[at_old], &new[at_new]));
        }
        (from_old, from_new) = (at_old + 1, at_new + 1);
    }
    changes
}

fn rewritten(old: &Line, new: &Line) -> Option<Change> {
    let is_empty = old.tokens.is_empty() || new.tokens.is_empty();
    if is_empty || old.tokens.len().max(new.tokens.len()) > LINE_TOKENS_MAX {
        return None;
    }
    Rewrite::of(old.clone(), new.clone()).map(Change::Rewritten)
}

/// The lines of a text whose beginning stands inside a comment, a string or code.
pub(crate) fn lines(text: &str, language: &Language, inside: Inside) -> Vec<Line> {
    let all = tokens(text, language, inside);
    let mut lines = vec![];
    let (mut start, mut tokens) = (0, vec![]);
    let mut line = |range: Range<usize>, tokens: Vec<Token>| {
        let text = text[range].trim_end_matches(['\r', '\n']).to_owned();
        lines.push(Line { text, tokens });
    };
    for token in all {
        if token.kind == Kind::Break {
            line(start..token.end as usize, std::mem::take(&mut tokens));
            start = token.end as usize;
        } else {
            let (from, to) = (token.start - start as u32, token.end - start as u32);
            tokens.push(Token { start: from, end: to, ..token });
        }
    }
    if start < text.len() {
        line(start..text.len(), tokens);
    }
    lines
}

/// Which old line became which new one: the pairs in their order that have most in common.
fn pairs(old: &[Line], new: &[Line]) -> Vec<(usize, usize)> {
    // best[i][j] is the most that the lines from i and from j on can have in common.
    let mut best = vec![vec![0.0f32; new.len() + 1]; old.len() + 1];
    let shares: Vec<Vec<f32>> =
        old.iter().map(|old| new.iter().map(|new| share(old, new)).collect()).collect();
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            let apart = best[i + 1][j].max(best[i][j + 1]);
            let paired = best[i + 1][j + 1] + shares[i][j];
            best[i][j] = if shares[i][j] >= SAME_LINE_SHARE { apart.max(paired) } else { apart };
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, vec![]);
    while i < old.len() && j < new.len() {
        let is_pair = shares[i][j] >= SAME_LINE_SHARE;
        if is_pair && best[i][j] == best[i + 1][j + 1] + shares[i][j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[i][j] == best[i + 1][j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// The share of tokens that two lines have in common, wherever these stand.
fn share(old: &Line, new: &Line) -> f32 {
    let most = old.tokens.len() + new.tokens.len();
    if most == 0 || most > 2 * LINE_TOKENS_MAX {
        return 0.0;
    }
    let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
    old.words().for_each(|word| *counts.entry(word).or_default() += 1);
    let mut common = 0;
    for word in new.words() {
        if let Some(count) = counts.get_mut(word).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    2.0 * common as f32 / most as f32
}

/// Returns what is the same in both classes; otherwise code, which comments and strings are kept
/// from.
pub(crate) fn common_class(a: Class, b: Class) -> Class {
    if a == b { a } else { Class::Code }
}
