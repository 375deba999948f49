//! Whether a next edit is what the author did.

use crate::case::{Moment, Step};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The author did it in this commit.
    Useful,
    /// Nothing is shown.
    Harmless,
    /// The author did not do it.
    Wrong,
}

/// What became of the cases of one sort.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub cases: usize,
    pub useful: usize,
    pub wrong: usize,
}

/// By repository and sort.
pub type Tallies = BTreeMap<(String, String), Tally>;

pub fn outcome(moment: &Moment) -> Outcome {
    let Some(edit) = &moment.shown else { return Outcome::Harmless };
    let Some(file) = moment.case.file(&edit.file) else { return Outcome::Wrong };
    let text = &moment.texts[file];
    assert!(edit.fits(text), "an edit that is found fits its text");
    let mut after = text.clone();
    after.replace_range(edit.range.clone(), &edit.new);
    let (was, is): (Vec<&str>, Vec<&str>) =
        (text.split('\n').collect(), after.split('\n').collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let first = was.iter().zip(&is).take_while(same).count();
    let most = was.len().min(is.len()) - first;
    let last = was.iter().rev().zip(is.iter().rev()).take(most).take_while(same).count();
    let (was, is) = (&was[first..was.len() - last], &is[first..is.len() - last]);
    let left: Vec<(usize, &Step)> = moment
        .left
        .iter()
        .filter(|(_, step)| step.0 == file)
        .map(|(at, step)| (*at, *step))
        .collect();
    if is_done(first, was, is, &left) { Outcome::Useful } else { Outcome::Wrong }
}

/// Returns true if the author turns these lines into those.
fn is_done(at: usize, was: &[&str], is: &[&str], left: &[(usize, &Step)]) -> bool {
    let step_of =
        |line: usize| left.iter().find(|(from, step)| (*from..from + step.2.len()).contains(&line));
    if was.is_empty() {
        return left.iter().any(|(from, step)| {
            (*from..=from + step.2.len()).contains(&at)
                && step.3.len() != step.2.len()
                && step.3.windows(is.len()).any(|new| new.iter().zip(is).all(|(a, b)| alike(a, b)))
        });
    }
    if is.is_empty() {
        let is_deleted = |line| step_of(line).is_some_and(|(_, step)| step.3.len() < step.2.len());
        return (at..at + was.len()).all(is_deleted);
    }
    was.len() == is.len()
        && was.iter().zip(is).enumerate().all(|(number, (was, is))| {
            was == is
                || step_of(at + number).is_some_and(|(from, step)| {
                    match step.3.get(at + number - from) {
                        Some(new) if step.2.len() == step.3.len() => is_on_the_way(was, is, new),
                        _ => step.3.iter().any(|new| alike(new, is)),
                    }
                })
        })
}

/// Returns true if all that differs between `was` and `is` also differs so between `was` and `new`.
fn is_on_the_way(was: &str, is: &str, new: &str) -> bool {
    if alike(is, new) {
        return true;
    }
    let (shown, made) = (differences(was, is), differences(was, new));
    !shown.is_empty() && shown.iter().all(|one| made.contains(one))
}

fn alike(a: &str, b: &str) -> bool {
    words(a) == words(b)
}

fn words(line: &str) -> Vec<&str> {
    let mut words = vec![];
    let mut from = 0;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for (at, c) in line.char_indices() {
        if !is_word(c) {
            words.push(&line[from..at]);
            words.push(&line[at..at + c.len_utf8()]);
            from = at + c.len_utf8();
        }
    }
    words.push(&line[from..]);
    words.retain(|word| !word.trim().is_empty());
    words
}

/// Returns where words are left out or put in, and which.
fn differences<'a>(old: &'a str, new: &'a str) -> Vec<(usize, usize, Vec<&'a str>)> {
    let (old, new) = (words(old), words(new));
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => i32::max(common[i + 1][j], common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut found: Vec<(usize, usize, Vec<&str>)> = vec![];
    let mut is_open = false;
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j, is_open) = (i + 1, j + 1, false);
            continue;
        }
        if !is_open {
            found.push((i, i, vec![]));
            is_open = true;
        }
        let last = found.last_mut().expect("one was just pushed");
        if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            i += 1;
            last.1 = i;
        } else {
            last.2.push(new[j]);
            j += 1;
        }
    }
    found
}
