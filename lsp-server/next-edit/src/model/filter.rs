//! Which answers are not worth showing.

use super::answer::{Hunk, hunks, is_unchanged, updated};
use super::changes::{Changed, with_lf, without_blanks};
use super::ending::settled;
use super::form::{Form, Window};
use crate::NextEdit;
use crate::diff::{Stretch, stretches};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The rejected edits that are remembered. The oldest are forgotten first.
pub const REJECTED_MAX: usize = 20;

/// An answer that writes more lines than this anew, and deletes as many, is given up if it changes
/// something above the cursor.
const REWRITTEN_LINES_MAX: usize = 5;

/// Files with more lines, or longer ones on average, are not written by people.
const LINES_MAX: usize = 50_000;
const MEAN_LINE_BYTES_MAX: usize = 240;

/// The most pairs of lines that are compared to find what stood at a place before.
const COMPARED_MAX: usize = 1 << 18;

/// How lines begin that import something.
const IMPORTS: &[&str] = &[
    "import ",
    "from '",
    "from \"",
    "use ",
    "pub use ",
    "using ",
    "#include",
    "require ",
    "require(",
    "require_relative ",
    "open ",
    "export * from ",
    "package ",
];

/// Why an answer is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// It leaves the window as it is.
    Unchanged,
    /// It ran out of tokens, lines or time.
    CutOff,
    /// It has nothing but blanks, which would delete the rest of the window.
    Blank,
    /// It is not in the form.
    Malformed,
    /// It only writes lines above the cursor.
    OnlyAbove,
    /// It writes the window anew.
    Rewrites,
    /// It leads to what stood there before.
    TakesBack,
    /// It deletes what was just typed.
    DeletesTyped,
    OnlyBlanks,
    OnlyImports,
    /// The user rejected it.
    RejectedBefore,
}

/// Returns true if people write such a file.
pub fn is_served(text: &str) -> bool {
    let lines = text.lines().count().max(1);
    lines <= LINES_MAX && text.len() / lines <= MEAN_LINE_BYTES_MAX
}

/// The edits of models that the user rejected lately: the file, and the whole lines as they were
/// and as they were to be. Lines tell the place well enough, and need not be followed when others
/// change.
#[derive(Debug, Clone, Default)]
pub struct Rejected(VecDeque<(Arc<str>, [String; 2])>);

impl Rejected {
    pub fn note(&mut self, edit: &NextEdit) {
        let Some(whole) = edit.whole.clone() else { return };
        if self.0.len() == REJECTED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((edit.file.clone(), whole));
    }

    fn holds(&self, file: &str, whole: &[String; 2]) -> bool {
        self.0.iter().any(|(other, rejected)| **other == *file && rejected == whole)
    }
}

/// An answer, and what is known of it.
#[derive(Debug, Clone, Copy)]
pub struct Offered<'a> {
    pub form: &'a Form<'a>,
    pub window: &'a Window,
    pub answer: &'a str,
    /// The model ended the answer by itself. Another one counts if it is clear how it ends.
    pub is_whole: bool,
}

impl Offered<'_> {
    /// The hunk to offer, or why none is.
    pub fn hunk(&self, file: &str, rejected: &Rejected) -> Result<Hunk, Dropped> {
        let Offered { form, window, is_whole, .. } = *self;
        let text = form.text;
        let settled = match is_whole {
            true => None,
            false => Some(settled(text, window, self.answer).ok_or(Dropped::CutOff)?),
        };
        let answer = settled.as_deref().unwrap_or(self.answer);
        if answer.trim().is_empty() {
            return Err(Dropped::Blank);
        }
        if answer.trim_start().starts_with("<|") {
            return Err(Dropped::Malformed);
        }
        if is_unchanged(text, window, answer) {
            return Err(Dropped::Unchanged);
        }
        let all = hunks(text, window, answer);
        let cursor = window.line + window.cursor_line(text);
        let only_inserts_above =
            |hunk: &Hunk| hunk.old_lines.is_empty() && hunk.lines.start <= cursor;
        if all.iter().all(only_inserts_above) && !is_blank_line(text, cursor) {
            return Err(Dropped::OnlyAbove);
        }
        let added: usize = all.iter().map(|hunk| hunk.new_lines.len()).sum();
        let deleted: usize = all.iter().map(|hunk| hunk.old_lines.len()).sum();
        if added.min(deleted) > REWRITTEN_LINES_MAX
            && all.iter().any(|hunk| hunk.lines.start < cursor)
        {
            return Err(Dropped::Rewrites);
        }
        let now = updated(text, window, answer).join("\n");
        let left = form.left(window);
        if left.iter().any(|before| full_lines(before.lines()) == full_lines(now.lines())) {
            return Err(Dropped::TakesBack);
        }
        let mut dropped = Dropped::Unchanged;
        for hunk in all {
            if !is_whole && hunk.is_above(cursor) {
                // One at the cursor or below it may still come.
                return Err(Dropped::CutOff);
            }
            match self.why_not(&hunk, file, &left, rejected) {
                None => return Ok(hunk),
                Some(why) => dropped = why,
            }
        }
        Err(dropped)
    }

    fn why_not(
        &self,
        hunk: &Hunk,
        file: &str,
        left: &[String],
        rejected: &Rejected,
    ) -> Option<Dropped> {
        let (old, new) = (hunk.old_lines.join("\n"), hunk.new_lines.join("\n"));
        if without_blanks(&old) == without_blanks(&new) {
            return Some(Dropped::OnlyBlanks);
        }
        if only_imports(hunk) {
            return Some(Dropped::OnlyImports);
        }
        if self.takes_back(hunk, left) {
            return Some(Dropped::TakesBack);
        }
        if self.deletes_typed(hunk) {
            return Some(Dropped::DeletesTyped);
        }
        rejected.holds(file, &hunk.whole(self.form.text)).then_some(Dropped::RejectedBefore)
    }

    /// Returns true if a hunk alone writes what stood in its place before changes of the user's: in
    /// one of the windows that were left, or in the file as it was opened.
    fn takes_back(&self, hunk: &Hunk, left: &[String]) -> bool {
        let Form { opened, text, .. } = *self.form;
        let new = full_lines(hunk.new_lines.iter().map(String::as_str));
        let stood = |now: &str, before: &str, first: usize| {
            let [now, before] = [now, before].map(|text| text.split('\n').collect::<Vec<&str>>());
            let lines = hunk.lines.start - first..hunk.lines.end - first;
            stood_at(&now, &before, lines)
                .is_some_and(|lines| full_lines(lines.iter().copied()) == new)
        };
        let (window, first) = (self.window.text(text), self.window.line);
        left.iter().any(|before| stood(&window, before, first))
            || stood(&with_lf(text), &with_lf(opened), 0)
    }

    /// Returns true if a hunk deletes what a change that is shown wrote in these lines.
    fn deletes_typed(&self, hunk: &Hunk) -> bool {
        let gone = with_lf(&self.form.text[hunk.range.clone()]);
        let gone = gone.trim();
        let is_typed = |change: &Changed| {
            let (typed, place) = (change.typed().trim(), change.place());
            let is_here = change.path == self.form.path
                && place.start < hunk.lines.end
                && hunk.lines.start < place.end;
            is_here && !typed.is_empty() && (gone.contains(typed) || typed.contains(gone))
        };
        let is_deletion = hunk.new.trim().is_empty() && !gone.is_empty();
        is_deletion && self.form.changes.iter().any(is_typed)
    }
}

/// Returns true if lines are changed, and each of them imports something.
pub(super) fn only_imports(hunk: &Hunk) -> bool {
    let Hunk { old_lines, new_lines, .. } = hunk;
    let gone = old_lines.iter().filter(|line| !new_lines.contains(line));
    let come = new_lines.iter().filter(|line| !old_lines.contains(line));
    let mut changed = gone.chain(come).filter(|line| !line.trim().is_empty()).peekable();
    changed.peek().is_some() && changed.all(|line| is_import(line.trim()))
}

/// `from` begins a clause of a query too, and `using var` a variable of C#.
fn is_import(line: &str) -> bool {
    let is_from = line.starts_with("from ") && line.contains(" import");
    let has_word = IMPORTS.iter().any(|word| line.starts_with(word));
    is_from || has_word && !line.starts_with("using var ")
}

/// The lines of an earlier text that stand where these lines of the text are now. None where a
/// change begins or ends within them, or where too much was changed to compare.
fn stood_at<'a>(now: &[&str], before: &'a [&'a str], lines: Range<usize>) -> Option<&'a [&'a str]> {
    let is_large = |a: usize, b: usize| a.saturating_mul(b) > COMPARED_MAX;
    let head = now.iter().zip(before).take_while(|(a, b)| a == b).count();
    let [more_now, more_before] = [now.len() - head, before.len() - head];
    // A common end is left to the comparison, which finds the hunks of an answer too, if it can be.
    let most = if is_large(more_now, more_before) { more_now.min(more_before) } else { 0 };
    let ends = now.iter().rev().zip(before.iter().rev()).take(most);
    let tail = ends.take_while(|(a, b)| a == b).count();
    let (a, b) = (&now[head..now.len() - tail], &before[head..before.len() - tail]);
    if is_large(a.len(), b.len()) {
        return None;
    }
    let stretches = stretches(a, b);
    let within = |stretch: &Stretch, at: usize, is_end: bool| match stretch {
        Stretch { a, b, .. } if at == a.start && !(is_end && at == a.end) => Some(b.start),
        Stretch { a, b, .. } if at == a.end => Some(b.end),
        // As many lines as there were are taken to be those, one by one.
        Stretch { a, b, .. } => (a.len() == b.len()).then(|| b.start + at - a.start),
    };
    let place = |line: usize, is_end: bool| {
        if line < head {
            return Some(line);
        }
        if line > head + a.len() {
            return Some(line + before.len() - now.len());
        }
        // Lines that only the earlier text has between two others are among those that stood there.
        let at = line - head;
        let found = match is_end {
            false => stretches.iter().find(|stretch| at <= stretch.a.end),
            true => stretches.iter().rfind(|stretch| stretch.a.start <= at),
        };
        match found {
            Some(stretch) => Some(head + within(stretch, at, is_end)?),
            None => Some(line),
        }
    };
    before.get(place(lines.start, false)?..place(lines.end, true)?)
}

fn full_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    lines.map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

fn is_blank_line(text: &str, line: usize) -> bool {
    text.lines().nth(line).is_none_or(|line| line.trim().is_empty())
}
