//! Folds the stream of edits into units: what a person changed at one place, however many keys it
//! took.
//!
//! A unit is made of whole lines. Edits whose lines overlap belong to one unit; two neighbouring
//! lines that are changed one after the other are two units. A unit settles with the first message
//! that changes something else and not it. So the carets of a multi-cursor edit, which change in
//! one message, make one unit each and settle together.

use crate::change::{Change, changes};
use crate::language::Language;
use crate::tokens::{Inside, inside_at};
use ropey::Rope;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Settled units that are remembered. The oldest are dropped first.
pub const UNITS_MAX: usize = 256;

/// The most lines of a unit, before or after it. A larger one comes from a formatter, a paste or
/// another program, and teaches no rule. It is not remembered.
pub const UNIT_LINES_MAX: usize = 40;

/// The most bytes of a unit, before or after it.
pub const UNIT_BYTES_MAX: usize = 8 * 1024;

/// Places that change at the same time. A message that changes more settles what was begun.
pub const ONGOING_MAX: usize = 64;

/// The largest document that is looked at, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// How many units back an undone one is searched for.
const UNDO_LOOKS_BACK: usize = 32;

/// One change of a document, in characters of the text before it. The changes of one message are
/// applied one after the other, as LSP has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub start: usize,
    pub removed: usize,
    pub inserted: String,
}

/// Who makes a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The user types, pastes, deletes or undoes, or has accepted an offer.
    Person,
    /// A program: a formatter, another tool, or the file as it is read anew. It teaches nothing.
    Tool,
}

/// What was changed at one place. Units are given in the order in which they settled.
#[derive(Debug, Clone)]
pub struct Unit {
    pub file: Arc<str>,
    /// The first changed line, in the text in which all units before this one are applied and none
    /// after it.
    pub line: usize,
    /// The changed lines, with their line breaks. Both are whole lines.
    pub before: String,
    pub after: String,
    pub by: By,
    /// A later unit takes this one back, or this one takes an earlier one back.
    pub is_undone: bool,
    /// The message that began the unit. Units of one message are one example: a person who changes
    /// many places at once has chosen them.
    pub(crate) message: u64,
    /// The place where the first changed line is now, after all edits since.
    pub(crate) line_now: usize,
    pub(crate) changes: Vec<Change>,
}

impl Unit {
    /// The unit as a person would write it who types nothing else: it replaces these lines.
    pub fn apply(&self, text: &mut Rope) {
        let from = text.line_to_char(self.line);
        text.remove(from..from + self.before.chars().count());
        text.insert(from, &self.after);
    }
}

/// The units of all documents.
#[derive(Debug, Default)]
pub struct History {
    settled: VecDeque<Unit>,
    ongoing: Vec<Ongoing>,
    messages: u64,
}

/// A unit that is still being changed.
#[derive(Debug, Clone)]
struct Ongoing {
    file: Arc<str>,
    language: &'static Language,
    /// The document after its last edit, and the lines of the unit in it.
    text: Rope,
    lines: Range<usize>,
    /// What stood there before the unit.
    before: String,
    before_lines: usize,
    by: By,
    began: u64,
    touched: u64,
}

impl History {
    /// Notes the changes of one message, of which the first one changes `text`.
    pub fn change(
        &mut self,
        file: &str,
        language: &'static Language,
        text: &Rope,
        edits: &[Edit],
        by: By,
    ) {
        if edits.iter().all(|edit| edit.removed == 0 && edit.inserted.is_empty()) {
            return;
        }
        self.messages += 1;
        let mut was = text.clone();
        for edit in edits {
            let start = edit.start.min(was.len_chars());
            let removed = edit.removed.min(was.len_chars() - start);
            if removed == 0 && edit.inserted.is_empty() {
                continue;
            }
            let mut is = was.clone();
            is.remove(start..start + removed);
            is.insert(start, &edit.inserted);
            let lines = Lines::of(&was, &is, start, removed, edit.inserted.chars().count());
            self.fold(file, language, &was, &lines, by);
            was = is;
        }
        for ongoing in self.ongoing.iter_mut().filter(|ongoing| *ongoing.file == *file) {
            ongoing.text = was.clone();
        }
        let message = self.messages;
        self.settle(|ongoing| ongoing.touched != message);
        if self.ongoing.len() > ONGOING_MAX {
            self.settle(|_| true);
        }
    }

    /// Settles what is begun. A document that is closed, or read anew, ends its units.
    pub fn settle_all(&mut self) {
        self.settle(|_| true);
    }

    /// The settled units, the oldest first.
    pub fn settled(&self) -> impl Iterator<Item = &Unit> {
        self.settled.iter()
    }

    /// The latest units, the oldest first. Those that are still being changed are as they would be
    /// if they settled now.
    pub fn latest(&self, count: usize) -> Vec<Unit> {
        let older = self.settled.len() - self.settled.len().min(count);
        let settled = self.settled.iter().skip(older).cloned().collect();
        let mut copy = History { settled, ongoing: self.ongoing.clone(), messages: self.messages };
        copy.settle_all();
        copy.settled.into()
    }

    fn fold(
        &mut self,
        file: &str,
        language: &'static Language,
        was: &Rope,
        edited: &Lines,
        by: By,
    ) {
        for unit in self.settled.iter_mut().filter(|unit| *unit.file == *file) {
            if unit.line_now >= edited.was.end {
                unit.line_now = unit.line_now + edited.now_end - edited.was.end;
            }
        }
        let (mut touched, mut others) = (vec![], vec![]);
        for mut ongoing in std::mem::take(&mut self.ongoing) {
            let is_here = *ongoing.file == *file;
            if is_here && ongoing.lines.start >= edited.was.end {
                ongoing.lines.start = ongoing.lines.start + edited.now_end - edited.was.end;
                ongoing.lines.end = ongoing.lines.end + edited.now_end - edited.was.end;
            } else if is_here && ongoing.lines.end > edited.was.start {
                touched.push(ongoing);
                continue;
            }
            others.push(ongoing);
        }
        self.ongoing = others;
        touched.sort_by_key(|ongoing| ongoing.lines.start);
        let first = touched.first().map_or(edited.was.start, |unit| unit.lines.start);
        let last = touched.last().map_or(edited.was.end, |unit| unit.lines.end);
        let lines = first.min(edited.was.start)..last.max(edited.was.end);
        let (before, before_lines) = before(was, &lines, &touched);
        self.ongoing.push(Ongoing {
            file: touched.first().map_or_else(|| file.into(), |unit| unit.file.clone()),
            language,
            text: was.clone(),
            lines: lines.start..lines.end + edited.now_end - edited.was.end,
            before,
            before_lines,
            by: touched.iter().map(|unit| unit.by).find(|by| *by == By::Person).unwrap_or(by),
            began: touched.iter().map(|unit| unit.began).min().unwrap_or(self.messages),
            touched: self.messages,
        });
    }

    /// Settles the units that this is true of, from the top of each document to its end.
    fn settle(&mut self, settles: impl Fn(&Ongoing) -> bool) {
        self.ongoing.sort_by(|a, b| {
            a.began.cmp(&b.began).then(a.file.cmp(&b.file)).then(a.lines.start.cmp(&b.lines.start))
        });
        let (settling, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.ongoing).into_iter().partition(|ongoing| settles(ongoing));
        self.ongoing = left;
        for (at, ongoing) in settling.iter().enumerate() {
            // What is not settled yet does not count for the line that is told.
            let above = settling[at + 1..].iter().chain(&self.ongoing).filter(|other| {
                *other.file == *ongoing.file && other.lines.start < ongoing.lines.start
            });
            let (mut more, mut fewer) = (0, 0);
            above.for_each(|other| {
                more += other.lines.len();
                fewer += other.before_lines;
            });
            let unit = ongoing.unit(ongoing.lines.start + fewer - more);
            self.remember(unit);
        }
    }

    fn remember(&mut self, unit: Option<Unit>) {
        let Some(mut unit) = unit else { return };
        let takes_back = |other: &&mut Unit| {
            !other.is_undone
                && other.file == unit.file
                && other.before == unit.after
                && other.after == unit.before
        };
        let undone = self.settled.iter_mut().rev().take(UNDO_LOOKS_BACK).find(takes_back);
        if let Some(undone) = undone {
            undone.is_undone = true;
            unit.is_undone = true;
        }
        if self.settled.len() == UNITS_MAX {
            self.settled.pop_front();
        }
        self.settled.push_back(unit);
    }
}

/// The lines that an edit touches, before it and after it.
struct Lines {
    was: Range<usize>,
    now_end: usize,
}

impl Lines {
    fn of(was: &Rope, is: &Rope, start: usize, removed: usize, inserted: usize) -> Lines {
        // `\r` before the edit may be one line break with what the edit puts behind it.
        let is_return = start > 0 && was.char(start - 1) == '\r';
        let from = was.char_to_line(start - usize::from(is_return));
        let to = was.char_to_line(start + removed) + 1;
        Lines { was: from..to, now_end: is.char_to_line(start + inserted) + 1 }
    }
}

/// Returns what stood in these lines before the units that touch them.
fn before(was: &Rope, lines: &Range<usize>, touched: &[Ongoing]) -> (String, usize) {
    let (mut before, mut count) = (String::new(), 0);
    let mut at = lines.start;
    let mut unchanged = |before: &mut String, lines: Range<usize>| {
        let chars = was.line_to_char(lines.start)..was.line_to_char(lines.end);
        was.slice(chars).chunks().for_each(|chunk| before.push_str(chunk));
        count += lines.len();
    };
    for unit in touched {
        unchanged(&mut before, at..unit.lines.start);
        before.push_str(&unit.before);
        at = unit.lines.end;
    }
    unchanged(&mut before, at..lines.end);
    (before, count + touched.iter().map(|unit| unit.before_lines).sum::<usize>())
}

impl Ongoing {
    /// The unit, with its first line as it is told. None if nothing is changed after all, or if too
    /// much is.
    fn unit(&self, line: usize) -> Option<Unit> {
        let chars =
            self.text.line_to_char(self.lines.start)..self.text.line_to_char(self.lines.end);
        let is_large = self.before.len().max(chars.len()) > UNIT_BYTES_MAX;
        if is_large || self.lines.len().max(self.before_lines) > UNIT_LINES_MAX {
            return None;
        }
        let before = Rope::from_str(&self.before);
        let after = Rope::from(self.text.slice(chars));
        let (above, was, is) = changed_lines(&before, &after)?;
        let line_now = self.lines.start + above;
        let (was_text, is_text) = (lines_of(&before, &was), lines_of(&after, &is));
        let changes = match self.by {
            By::Person => self.changes(line_now, is.len(), &was_text, &is_text),
            By::Tool => vec![],
        };
        Some(Unit {
            file: self.file.clone(),
            line: line + above,
            before: was_text,
            after: is_text,
            by: self.by,
            is_undone: false,
            message: self.began,
            line_now,
            changes,
        })
    }

    fn changes(&self, line: usize, lines: usize, was: &str, is: &str) -> Vec<Change> {
        if self.text.len_bytes() > DOCUMENT_BYTES_MAX {
            return vec![];
        }
        let text = self.text.slice(..self.text.line_to_char(line)).to_string();
        let inside = inside_at(&text, self.language, (0, Inside::Code), text.len());
        let full = |line: &usize| self.text.line(*line).chars().any(|c| !c.is_whitespace());
        let above = (0..line).rev().find(full).map(|line| self.text.line(line).to_string());
        let below = (line + lines..self.text.len_lines()).find(full);
        let below = below.map(|line| self.text.line(line).to_string());
        changes(self.language, inside, was, is, [above, below])
    }
}

/// The lines that differ: how many are the same above them, and which they are in both texts.
fn changed_lines(before: &Rope, after: &Rope) -> Option<(usize, Range<usize>, Range<usize>)> {
    if before == after {
        return None;
    }
    let (was, is) = (before.len_lines(), after.len_lines());
    let same = |pair: &(ropey::RopeSlice, ropey::RopeSlice)| pair.0 == pair.1;
    let above = before.lines().zip(after.lines()).take_while(same).count();
    let most = was.min(is).saturating_sub(above);
    let below = before.lines_at(was).reversed().zip(after.lines_at(is).reversed());
    let below = below.take(most).take_while(same).count();
    Some((above, above..was - below, above..is - below))
}

fn lines_of(text: &Rope, lines: &Range<usize>) -> String {
    text.slice(text.line_to_char(lines.start)..text.line_to_char(lines.end)).to_string()
}

const _: () = assert!(UNIT_BYTES_MAX < DOCUMENT_BYTES_MAX);
