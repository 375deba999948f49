//! The latest changes, as the model reads them.

use crate::diff::affixes;
use crate::history::{By, Unit};
use std::ops::Range;

/// Lines that became others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The path of the file, as the model reads it.
    pub path: String,
    /// States the order in which changes began.
    began: u64,
    /// The first line that is shown, counted from 1, in the file as it was then. So it stays the
    /// same, and what was computed of it stays too.
    line: usize,
    /// Its lines in the file as it is now, counted from 0.
    place: Range<usize>,
    old: String,
    new: String,
    /// The lines above and below it, if they are known.
    above: String,
    below: String,
}

impl Changed {
    /// A unit as the model reads it. `text` is its file now, if that is known. None for a unit that
    /// a program made, or that was taken back.
    pub fn of(unit: &Unit, path: &str, text: Option<&str>) -> Option<Changed> {
        if unit.by == By::Tool || unit.is_undone {
            return None;
        }
        let (old, new) = (with_lf(&unit.before), with_lf(&unit.after));
        let place = unit.line_now..unit.line_now + new.lines().count();
        let around = text.and_then(|text| {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let own = lines.get(place.clone())?.concat();
            let line = |at: usize| lines.get(at).map(|line| with_lf(line)).unwrap_or_default();
            let above = place.start.checked_sub(1).map(line).unwrap_or_default();
            // It may have been changed again since.
            (with_lf(&own) == new).then(|| (above, line(place.end)))
        });
        let (above, below) = around.unwrap_or_default();
        let line = unit.line + usize::from(above.is_empty());
        let (path, began) = (path.to_owned(), unit.message);
        Some(Changed { path, began, line, place, old, new, above, below })
    }

    /// Returns true if nothing but blanks differs.
    fn is_blank(&self) -> bool {
        without_blanks(&self.old) == without_blanks(&self.new)
    }

    /// Its lines in the file as it is now, none for a deletion.
    pub(super) fn place(&self) -> &Range<usize> {
        &self.place
    }

    pub(super) fn shown(&self) -> String {
        let [old, new] = self.around();
        let end = self.line + new.lines().count().saturating_sub(1);
        let (old, new) = (old.trim_matches('\n'), new.trim_matches('\n'));
        format!("{}:{}:{end}\noriginal:\n{old}\nupdated:\n{new}", self.path, self.line)
    }

    /// The text without this change, if the change is found in it.
    pub(super) fn taken_back(&self, text: &str) -> Option<String> {
        let whole = format!("{text}\n");
        let [old, new] = self.around();
        let pairs = [(&new, &old), (&self.new, &self.old)];
        let (new, old) = pairs
            .into_iter()
            .find(|(new, _)| !new.trim().is_empty() && whole.contains(new.as_str()))?;
        let before = whole.replacen(new.as_str(), old, 1);
        Some(before.strip_suffix('\n').unwrap_or(&before).to_owned())
    }

    /// The text that the change inserted, without what its lines had before.
    pub(super) fn typed(&self) -> &str {
        let (head, tail) = affixes(&self.old, &self.new);
        &self.new[head..self.new.len() - tail]
    }

    pub(super) fn old(&self) -> &str {
        &self.old
    }

    pub(super) fn new_text(&self) -> &str {
        &self.new
    }

    fn around(&self) -> [String; 2] {
        [&self.old, &self.new].map(|own| format!("{}{own}{}", self.above, self.below))
    }
}

/// Which of the latest changes a model is shown. The oldest ones are left out several at a time:
/// between that the prompt begins as the one before, and what was computed of it stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shown {
    since: u64,
}

impl Shown {
    /// The most changes that are shown, and those that stay when the oldest ones are left out.
    pub const MAX: usize = 6;
    const LEFT: usize = 4;

    /// Takes notice of newer changes.
    pub fn after(self, changes: &[Changed]) -> Shown {
        let (shown, all) = (self.of(changes).count(), latest(changes).count());
        // Fewer are left where a file was closed, or changes were undone.
        if (Shown::LEFT.min(all)..=Shown::MAX).contains(&shown) {
            return self;
        }
        Shown { since: latest(changes).take(Shown::LEFT).last().map_or(0, |change| change.began) }
    }

    /// The changes that are shown, the newest first.
    pub(super) fn of(self, changes: &[Changed]) -> impl Iterator<Item = &Changed> {
        latest(changes).filter(move |change| change.began >= self.since)
    }
}

/// The changes that say something, the newest first.
pub(super) fn latest(changes: &[Changed]) -> impl Iterator<Item = &Changed> {
    changes.iter().rev().filter(|change| !change.is_blank())
}

/// The text as the model reads it, with `\n` alone.
pub(super) fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

pub(super) fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}
