//! Where a model is asked a second time, if it changes nothing at the cursor.

use super::changes::Shown;
use super::changes::{Changed, latest};
use super::form::{LINES_BELOW, Window};
use std::collections::{HashMap, HashSet};

/// How far a place lies from the cursor, in lines, so that it is not in its window.
const LINES_AWAY: usize = 10;

/// The fewest words of a deleted line whose equal is a place.
const WORDS_MIN: usize = 3;

/// How often an added word stands in the file for its places to be looked at.
const OCCURRENCES: std::ops::RangeInclusive<usize> = 2..=5;

/// The shortest word that is looked for, in bytes.
const WORD_BYTES_MIN: usize = 2;

/// Words of one change that are looked for.
const WORDS_MAX: usize = 16;

/// By what rule a place was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// The cursor's own.
    Cursor,
    /// A line is equal to one that was deleted lately.
    SameLine,
    /// The only word that a late change deleted stands there too.
    DeletedWord,
    /// A word that was just added stands there too.
    AddedWord,
    /// What lies behind the window.
    Below,
}

/// The place for a second request, and the window around it.
pub fn second(
    text: &str,
    path: &str,
    changes: &[Changed],
    first: &Window,
) -> Option<(Place, Window)> {
    let cursor = first.line + first.cursor_line(text);
    let lines: Vec<&str> = text.lines().collect();
    let shown = latest(changes).take(Shown::MAX);
    let here: Vec<&Changed> = shown.filter(|change| change.path == path).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in lines.iter().flat_map(|line| words(line)) {
        *counts.entry(word).or_default() += 1;
    }
    let found = same_line(&lines, &here, first)
        .map(|line| (Place::SameLine, line))
        .or_else(|| {
            let is_far = |line: usize| line.abs_diff(cursor) > LINES_AWAY;
            here.iter().find_map(|change| {
                let (mut gone, _) = differing(change);
                gone.retain(|word| counts.contains_key(word));
                let [word] = gone.as_slice() else { return None };
                let at = nearest(&lines, word, cursor, is_far)?;
                Some((Place::DeletedWord, at))
            })
        })
        .or_else(|| {
            let is_elsewhere = |line: usize| line.abs_diff(cursor) > LINES_BELOW;
            let (_, come) = differing(here.first()?);
            let is_seldom =
                |word: &&&str| counts.get(**word).is_some_and(|n| OCCURRENCES.contains(n));
            let at = |word: &&str| nearest(&lines, word, cursor, is_elsewhere);
            come.iter()
                .filter(is_seldom)
                .take(WORDS_MAX)
                .find_map(at)
                .map(|at| (Place::AddedWord, at))
        });
    let (place, line) = found.unwrap_or((Place::Below, cursor + LINES_BELOW + 1));
    let own = lines.get(line)?;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let window = Window::around(text, start + own.trim_end().len())?;
    (window.range != first.range).then_some((place, window))
}

/// The line outside of the window that is equal to a deleted one and nearest to it. Lines that a
/// later change wrote were moved.
fn same_line(lines: &[&str], changes: &[&Changed], window: &Window) -> Option<usize> {
    let end = window.line + LINES_BELOW + 1;
    let mut stays: HashSet<&str> = HashSet::new();
    changes.iter().find_map(|change| {
        stays.extend(change.new_text().lines().map(str::trim));
        let is_telling = |line: &&str| {
            words(line).collect::<HashSet<_>>().len() >= WORDS_MIN && !stays.contains(line)
        };
        let gone: HashSet<&str> = change.old().lines().map(str::trim).filter(is_telling).collect();
        let is_there =
            |at: &usize| gone.contains(lines[*at].trim()) && !(window.line..=end).contains(at);
        (0..lines.len()).filter(is_there).min_by_key(|at| at.abs_diff(window.line))
    })
}

fn nearest(
    lines: &[&str],
    word: &str,
    cursor: usize,
    is_wanted: impl Fn(usize) -> bool,
) -> Option<usize> {
    let has_word = |at: &usize| is_wanted(*at) && words(lines[*at]).any(|other| other == word);
    (0..lines.len()).filter(has_word).min_by_key(|at| at.abs_diff(cursor))
}

/// The words that a change took away, and those that it added.
fn differing(change: &Changed) -> (Vec<&str>, Vec<&str>) {
    let of = |text| words(text).collect::<HashSet<&str>>();
    let (old, new) = (of(change.old()), of(change.new_text()));
    let only = |text, other: &HashSet<&str>| {
        let mut seen = HashSet::new();
        words(text).filter(|word| !other.contains(word) && seen.insert(*word)).collect()
    };
    (only(change.old(), &new), only(change.new_text(), &old))
}

pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.len() >= WORD_BYTES_MIN)
}
