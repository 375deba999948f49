//! What a rule writes: text of its example, and what the holes of its pattern hold.

use crate::brackets::depth_change;
use crate::change::Line;
use crate::diff::stretches;
use crate::pattern::HOLE_TOKENS_MAX;
use std::ops::Range;

/// The most holes of a rule.
const HOLES_MAX: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Piece {
    Text(String),
    /// What the hole with this number holds.
    Hole(usize),
}

/// What is common to two lines: a word, by its number in both, or a hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Common {
    Word(usize, usize),
    Hole,
}

/// Tokens of a line.
#[derive(Clone)]
pub(crate) struct Tokens<'a> {
    pub line: &'a Line,
    pub range: Range<usize>,
}

impl<'a> Tokens<'a> {
    pub fn all(line: &'a Line) -> Tokens<'a> {
        Tokens { line, range: 0..line.tokens.len() }
    }

    pub fn words(&self) -> Vec<&'a str> {
        self.range.clone().map(|at| self.line.word(at)).collect()
    }

    /// The text from the first token to the last.
    pub fn text(&self) -> &'a str {
        if self.range.is_empty() {
            return "";
        }
        let tokens = &self.line.tokens[self.range.clone()];
        &self.line.text[tokens[0].start as usize..tokens[tokens.len() - 1].end as usize]
    }

    fn sub(&self, range: &Range<usize>) -> Tokens<'a> {
        let from = self.range.start;
        Tokens { line: self.line, range: from + range.start..from + range.end }
    }

    /// Returns true if a hole can hold these tokens.
    fn fits_a_hole(&self) -> bool {
        let mut depth = 0;
        let is_balanced = self.range.clone().all(|at| {
            depth += depth_change(self.line.word(at), &self.line.tokens[at]);
            depth >= 0
        });
        is_balanced && depth == 0 && (1..=HOLE_TOKENS_MAX).contains(&self.range.len())
    }
}

/// The holes of two texts: what the first and the second one have there.
#[derive(Default)]
pub(crate) struct Holes<'a> {
    found: Vec<[Tokens<'a>; 2]>,
}

impl<'a> Holes<'a> {
    /// Returns what two old texts have in common. Where they differ, there is a hole. None if
    /// something stands in only one of them.
    pub fn of(&mut self, first: &Tokens<'a>, second: &Tokens<'a>) -> Option<Vec<Common>> {
        let mut common = vec![];
        for stretch in stretches(&first.words(), &second.words()) {
            if stretch.is_same {
                let (a, b) = (first.range.start, second.range.start);
                common.extend(stretch.a.zip(stretch.b).map(|(i, j)| Common::Word(a + i, b + j)));
                continue;
            }
            let pair = [first.sub(&stretch.a), second.sub(&stretch.b)];
            if !pair.iter().all(Tokens::fits_a_hole) || self.found.len() == HOLES_MAX {
                return None;
            }
            common.push(Common::Hole);
            self.found.push(pair);
        }
        Some(common)
    }

    /// Returns what two new texts have in common. None if they differ in what no hole holds.
    pub fn fill(&self, first: &Tokens, second: &Tokens) -> Option<Vec<Piece>> {
        let mut pieces = vec![];
        // The blanks before what comes next.
        let mut gap = String::new();
        for stretch in stretches(&first.words(), &second.words()) {
            if stretch.b.start > 0 {
                gap = second.line.gap(second.range.start + stretch.b.start).to_owned();
            }
            if stretch.is_same {
                pieces.push(Piece::Text(format!("{gap}{}", second.sub(&stretch.b).text())));
                continue;
            }
            let new = [first.sub(&stretch.a).words(), second.sub(&stretch.b).words()];
            let holds = |hole: &[Tokens; 2]| hole[0].words() == new[0] && hole[1].words() == new[1];
            let hole = self.found.iter().position(holds)?;
            if !gap.is_empty() {
                pieces.push(Piece::Text(gap.clone()));
            }
            pieces.push(Piece::Hole(hole));
        }
        Some(pieces)
    }

    pub fn len(&self) -> usize {
        self.found.len()
    }
}

/// Writes the pieces, with what the holes hold at a place.
pub(crate) fn write(pieces: &[Piece], holes: &[&str]) -> String {
    let text = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.as_str(),
        Piece::Hole(hole) => holes[*hole],
    });
    text.collect()
}
