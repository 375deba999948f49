//! What a rule looks for in a line: words that must stand there, and holes for what may differ.

use crate::brackets::depth_change;
use crate::change::Line;
use crate::history::UNIT_LINES_MAX;
use crate::language::Language;
use crate::tokens::{Class, Inside, Kind, Token, inside_at, lex_on};
use std::ops::Range;

/// The most tokens that a hole takes.
pub(crate) const HOLE_TOKENS_MAX: usize = 12;

/// How far behind a place a text is cut into tokens, in bytes, so that the places next to it are
/// known without another look.
const STRETCH_BYTES: usize = 1024;

/// A part of a pattern, which stands for tokens of one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// The beginning of a line, and its end.
    Start,
    End,
    Word(Box<str>, Class),
    /// Some tokens whose brackets are balanced: as few as fit.
    Hole,
}

/// The parts of one line, of which some are replaced and the others stand around them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Pattern {
    pub parts: Vec<Part>,
    pub replaced: Range<usize>,
}

/// A text with the tokens of some of its lines.
pub(crate) struct Lexed<'a> {
    pub text: &'a str,
    /// Those of whole lines, from the line with the number `first_line` on.
    pub tokens: Vec<Token>,
    first_line: usize,
    /// The bytes at which these lines end.
    breaks: Vec<u32>,
    language: &'a Language,
    /// The place where the tokens end so far, and what the text stands in there.
    end: (usize, Inside),
    /// Before this byte, the tokens of a place and of the lines below it are there.
    reached: usize,
    /// True if it is known what the tokens stand in. It is not for a line without the text above
    /// it; then all classes fit.
    pub has_classes: bool,
}

impl<'a> Lexed<'a> {
    /// A text whose tokens are cut when they are needed ([`Lexed::reach`]).
    pub fn begun(text: &'a str, language: &'a Language) -> Lexed<'a> {
        Lexed {
            text,
            tokens: vec![],
            first_line: 0,
            breaks: vec![],
            language,
            end: (0, Inside::default()),
            reached: 0,
            has_classes: true,
        }
    }

    /// A line without the text above it.
    pub fn of_line(text: &'a str, language: &'a Language) -> Lexed<'a> {
        let mut lexed = Lexed { has_classes: false, ..Lexed::begun(text, language) };
        lexed.cut_until(text.len());
        lexed
    }

    /// Makes sure that the tokens are there of the line with this byte, and of as many lines below
    /// it as a rule may look at. Places are looked at from the text's start to its end, so the
    /// lines before it may go.
    pub fn reach(&mut self, byte: usize) {
        if byte < self.reached {
            return;
        }
        self.skip_to(self.text[..byte].rfind('\n').map_or(0, |found| found + 1));
        self.reached = byte + STRETCH_BYTES;
        let rest = self.text.as_bytes().get(self.reached..).unwrap_or_default();
        let mut breaks = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let end =
            breaks.nth(UNIT_LINES_MAX).map_or(self.text.len(), |(at, _)| self.reached + at + 1);
        self.cut_until(end);
    }

    /// Leaves out the lines before the one that begins here, if it has no tokens yet.
    fn skip_to(&mut self, start: usize) {
        let (known, inside) = self.end;
        if start <= known {
            return;
        }
        let skipped = &self.text.as_bytes()[known..start];
        self.first_line += self.breaks.len() + skipped.iter().filter(|b| **b == b'\n').count();
        self.end = (start, inside_at(self.text, self.language, (known, inside), start));
        self.tokens.clear();
        self.breaks.clear();
    }

    fn cut_until(&mut self, end: usize) {
        let known = self.tokens.len();
        let tokens = &mut self.tokens;
        self.end = lex_on(self.text, self.language, self.end, end, |token| tokens.push(token));
        let new = self.tokens[known..].iter().filter(|token| token.kind == Kind::Break);
        self.breaks.extend(new.map(|token| token.start));
    }

    pub fn word(&self, at: usize) -> &'a str {
        let token = self.tokens[at];
        &self.text[token.start as usize..token.end as usize]
    }

    /// The number of the line with this byte.
    pub fn line(&self, byte: usize) -> usize {
        self.first_line + self.breaks.partition_point(|at| (*at as usize) < byte)
    }

    /// The token that begins at this byte.
    pub fn token_at(&self, byte: usize) -> Option<usize> {
        self.tokens.binary_search_by_key(&(byte as u32), |token| token.start).ok()
    }

    pub fn is_start(&self, at: usize) -> bool {
        at.checked_sub(1).is_none_or(|before| self.is_end(before))
    }

    /// Returns true if no token of the line is left at this one.
    pub fn is_end(&self, at: usize) -> bool {
        self.tokens.get(at).is_none_or(|token| token.kind == Kind::Break)
    }
}

impl Part {
    pub fn of(line: &Line, at: usize) -> Part {
        Part::Word(line.word(at).into(), line.tokens[at].class)
    }
}

impl Pattern {
    /// The word that is searched for: the longest one.
    pub fn needle(&self) -> Option<(usize, &str)> {
        let words = self.parts.iter().enumerate().filter_map(|(at, part)| match part {
            Part::Word(word, _) => Some((at, &**word)),
            _ => None,
        });
        words.max_by_key(|(at, word)| (word.len(), std::cmp::Reverse(*at)))
    }

    /// The tokens that each part stands for, if the part `anchor` stands at this token.
    pub fn at(&self, lexed: &Lexed, anchor: usize, token: usize) -> Option<Vec<Range<usize>>> {
        let mut back = vec![];
        if !backward(lexed, &self.parts[..anchor], token, &mut back) {
            return None;
        }
        back.reverse();
        forward(lexed, &self.parts[anchor..], token, &mut back).then_some(back)
    }
}

fn fits(lexed: &Lexed, part: &Part, at: usize) -> bool {
    match part {
        Part::Word(word, class) => lexed.tokens.get(at).is_some_and(|token| {
            (token.class == *class || !lexed.has_classes) && lexed.word(at) == &**word
        }),
        _ => false,
    }
}

/// Fits the parts to the tokens from `at` on.
fn forward(lexed: &Lexed, parts: &[Part], at: usize, spans: &mut Vec<Range<usize>>) -> bool {
    let Some((part, rest)) = parts.split_first() else { return true };
    let length = match part {
        Part::Start if lexed.is_start(at) => 0,
        Part::End if lexed.is_end(at) => 0,
        Part::Word(..) if fits(lexed, part, at) => 1,
        Part::Hole => {
            let mut depth = 0;
            for end in at..at + HOLE_TOKENS_MAX {
                if lexed.is_end(end) {
                    return false;
                }
                depth += depth_change(lexed.word(end), &lexed.tokens[end]);
                if depth < 0 {
                    return false;
                }
                let known = spans.len();
                spans.push(at..end + 1);
                if depth == 0 && forward(lexed, rest, end + 1, spans) {
                    return true;
                }
                spans.truncate(known);
            }
            return false;
        }
        _ => return false,
    };
    spans.push(at..at + length);
    forward(lexed, rest, at + length, spans)
}

/// Fits the parts to the tokens before `end`. The spans come in reverse.
fn backward(lexed: &Lexed, parts: &[Part], end: usize, spans: &mut Vec<Range<usize>>) -> bool {
    let Some((part, rest)) = parts.split_last() else { return true };
    let length = match part {
        Part::Start if lexed.is_start(end) => 0,
        Part::End if lexed.is_end(end) => 0,
        Part::Word(..) if end > 0 && fits(lexed, part, end - 1) => 1,
        Part::Hole => {
            let mut depth = 0;
            for start in (end.saturating_sub(HOLE_TOKENS_MAX)..end).rev() {
                if lexed.is_end(start) {
                    return false;
                }
                depth -= depth_change(lexed.word(start), &lexed.tokens[start]);
                if depth < 0 {
                    return false;
                }
                let known = spans.len();
                spans.push(start..end);
                if depth == 0 && backward(lexed, rest, start, spans) {
                    return true;
                }
                spans.truncate(known);
            }
            return false;
        }
        _ => return false,
    };
    spans.push(end - length..end);
    backward(lexed, rest, end - length, spans)
}
