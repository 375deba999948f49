//! How much of the text around its examples a pattern needs, so that it does not fit everywhere.

use crate::change::{Line, common_class};
use crate::pattern::{Part, Pattern};
use crate::template::Common;
use std::ops::Range;

/// The most tokens on each side that a pattern takes from around its examples.
const CONTEXT_MAX: usize = 6;

/// What the parts of a pattern must be worth together.
pub(super) const WORTH_MIN: f32 = 1.5;
pub(super) const WORTH_OF_INSERTION_MIN: f32 = 2.0;
pub(super) const WORTH_WITH_HOLES_MIN: f32 = 2.0;
pub(super) const WORTH_OF_LINES_MIN: f32 = 1.5;

/// What each example behind the second one makes up for, and what it never makes up for.
const WORTH_OF_EXAMPLE: f32 = 0.25;
const WORTH_ALWAYS: f32 = 0.9;

/// Returns what a pattern must be worth if an edit was made so often: who makes it again and again
/// in other surroundings means the words alone.
pub(super) fn worth_of_support(worth_min: f32, support: usize) -> f32 {
    let more = support.saturating_sub(2) as f32;
    (worth_min - WORTH_OF_EXAMPLE * more).max(WORTH_ALWAYS.min(worth_min))
}

/// A word of four letters is worth 1, and each more letter so much more.
const WORTH_OF_LETTER: f32 = 0.05;
const WORTH_OF_WORD_MAX: f32 = 1.5;

/// Words that stand everywhere in some language.
const COMMON_WORDS: &str = "\
    and async await bool break case catch class const continue def default else end enum \
    export extends false final finally float for from func function if impl import int \
    interface let local long match mut new nil none None not null private protected pub public \
    raise return self static str string struct super switch then this throw true try type use \
    val var void when while with yield char size_t unsigned err error True False";

/// Returns how much less of the code a pattern fits, with this part in it.
fn worth(part: &Part) -> f32 {
    match part {
        Part::Start | Part::End => 0.3,
        Part::Hole => 0.0,
        Part::Word(word, _) => match word.chars().next() {
            Some(first) if first.is_alphabetic() || first == '_' || first == '$' => {
                match word.len() {
                    _ if COMMON_WORDS.split(' ').any(|common| *common == **word) => 0.3,
                    0..=2 => 0.4,
                    3 => 0.7,
                    length => {
                        let more = WORTH_OF_LETTER * (length - 4) as f32;
                        (1.0 + more).min(WORTH_OF_WORD_MAX)
                    }
                }
            }
            Some(first) if first.is_ascii_digit() => 0.4,
            _ => 0.2,
        },
    }
}

pub(super) fn worth_of(parts: &[Part]) -> f32 {
    parts.iter().map(worth).sum()
}

/// Tokens of a line that are replaced.
pub(super) struct Replaced<'a> {
    pub line: &'a Line,
    pub range: Range<usize>,
}

/// Returns what is the same on one side of all these: the nearest first. One token may differ, if
/// the next one is the same again and `from`, the distance at which that is allowed, is reached: a
/// hole stands for it.
fn common(
    all: &[Replaced],
    token: impl Fn(&Replaced, usize) -> Option<usize>,
    edge: Part,
    hole_from: usize,
) -> Vec<Part> {
    let (first, others) = all.split_first().expect("a pattern has examples");
    let same = |distance| {
        let at = token(first, distance)?;
        let mut class = first.line.tokens[at].class;
        let is_same = others.iter().all(|other| {
            let Some(at_other) = token(other, distance) else { return false };
            class = common_class(class, other.line.tokens[at_other].class);
            other.line.word(at_other) == first.line.word(at)
        });
        is_same.then(|| Part::Word(first.line.word(at).into(), class))
    };
    let mut parts = vec![];
    let mut has_hole = false;
    for distance in 0..CONTEXT_MAX {
        if all.iter().all(|one| token(one, distance).is_none()) {
            parts.push(edge);
            break;
        }
        match same(distance) {
            Some(part) => parts.push(part),
            None if !has_hole && distance >= hole_from && same(distance + 1).is_some() => {
                parts.push(Part::Hole);
                has_hole = true;
            }
            None => break,
        }
    }
    // The token behind a hole may be farther away than the context reaches.
    if parts.last() == Some(&Part::Hole) {
        parts.pop();
    }
    parts
}

/// Patterns of the replaced parts with what stands around all examples: first with as little of it
/// as makes the pattern worth enough, then with all of it. None if all is not enough.
pub(super) fn patterns(middle: Vec<Part>, all: &[Replaced], worth_min: f32) -> Vec<Pattern> {
    // Two holes side by side would not know where one ends.
    let hole_from = |neighbour: Option<&Part>| usize::from(neighbour == Some(&Part::Hole));
    let left = common(
        all,
        |one, distance| one.range.start.checked_sub(1 + distance),
        Part::Start,
        hole_from(middle.first()),
    );
    let right = common(
        all,
        |one, distance| Some(one.range.end + distance).filter(|at| *at < one.line.tokens.len()),
        Part::End,
        hole_from(middle.last()),
    );
    let build = |to_left: usize, to_right: usize| {
        let mut parts: Vec<Part> = left[..to_left].iter().rev().cloned().collect();
        parts.extend(middle.iter().cloned());
        parts.extend(right[..to_right].iter().cloned());
        Pattern { parts, replaced: to_left..to_left + middle.len() }
    };
    // A hole at an end would not know where to end.
    let mut to_left = usize::from(middle.first() == Some(&Part::Hole));
    let mut to_right = usize::from(middle.last() == Some(&Part::Hole));
    if to_left > left.len() || to_right > right.len() {
        return vec![];
    }
    let past_hole = |side: &[Part], to: usize| {
        to + usize::from(to > 0 && side.get(to - 1) == Some(&Part::Hole))
    };
    while worth_of(&build(to_left, to_right).parts) < worth_min {
        match (to_left < left.len(), to_right < right.len()) {
            (false, false) => return vec![],
            (true, false) => to_left += 1,
            (false, true) => to_right += 1,
            (true, true) if to_left < to_right => to_left += 1,
            (true, true) => to_right += 1,
        }
        (to_left, to_right) = (past_hole(&left, to_left), past_hole(&right, to_right));
    }
    let mut patterns = vec![build(to_left, to_right), build(left.len(), right.len())];
    patterns.dedup();
    patterns.retain(|pattern| pattern.needle().is_some());
    patterns
}

/// The parts that stand for what two lines have in common.
pub(super) fn parts(common: &[Common], lines: [&Line; 2]) -> Vec<Part> {
    let part = |common: &Common| match common {
        Common::Hole => Part::Hole,
        Common::Word(first, second) => {
            let classes = (lines[0].tokens[*first].class, lines[1].tokens[*second].class);
            Part::Word(lines[1].word(*second).into(), common_class(classes.0, classes.1))
        }
    };
    common.iter().map(part).collect()
}
