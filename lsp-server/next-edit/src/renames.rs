//! A name that was changed where it is declared: its uses come next.
//!
//! Unlike the rules of [`crate::rules`] this needs a single edit, because a declaration that was
//! renamed leaves its uses without one. No syntax tree is needed: words like `let` and `class` show
//! a declaration ([`declaration`]), and indentation shows how far it reaches ([`uses`]). Where that
//! could mean another name, nothing is found.

mod declaration;
mod uses;

use crate::change::{Change, Line, Rewrite};
use crate::history::{By, Unit};
use crate::places::{File, NextEdit};
use crate::rules::{RuleId, RuleKind, id};
use crate::tokens::{Class, Kind, Token};
use declaration::declared;
use std::ops::Range;
use std::sync::Arc;
use uses::Uses;

/// The latest units among which a renamed declaration is looked for. Its uses that were changed
/// since follow it.
pub(crate) const UNITS_MAX: usize = 32;

/// The largest file that is looked through, in bytes. The uses of a name are known only once all of
/// the text is cut into tokens.
const FILE_BYTES_MAX: usize = 256 * 1024;

/// Shorter names are begun, or stand for too many things.
const NAME_BYTES_MIN: usize = 2;

/// A name that became another one where it is declared.
#[derive(Debug, Clone)]
pub struct Rename {
    file: Arc<str>,
    old: String,
    new: String,
    /// The lines on which the new name was written, the declaration's first.
    lines: Vec<usize>,
}

impl Rename {
    /// The rename that the latest unit begins or continues. The oldest unit comes first.
    pub(crate) fn latest(units: &[Unit]) -> Option<Rename> {
        let (file, old, new) = names(units.last()?)?;
        if old.len().min(new.len()) < NAME_BYTES_MIN {
            return None;
        }
        let mut lines = vec![];
        let mut until_declaration = None;
        for unit in units.iter().rev() {
            if names(unit) != Some((file, old, new)) {
                break;
            }
            lines.push(unit.line_now);
            let rewrite = rewrite(unit)?;
            if declared(&rewrite.new, rewrite.prefix).is_some() {
                until_declaration = Some(lines.len());
            }
        }
        lines.truncate(until_declaration?);
        lines.reverse();
        Some(Rename { file: file.clone(), old: old.to_owned(), new: new.to_owned(), lines })
    }

    /// Returns the id under which the user's verdicts on the rename are remembered. It stays while
    /// the new name is being typed.
    pub(crate) fn id(&self) -> RuleId {
        id((RuleKind::Rename, &self.file, &self.old))
    }

    /// Returns how many lines have the new name already.
    pub(crate) fn support(&self) -> usize {
        self.lines.len()
    }

    /// The lines that have the old name still, in the order in which a person would go: below the
    /// cursor, then from the first one.
    pub(crate) fn edits(&self, file: &File, cursor: usize) -> Vec<NextEdit> {
        if *file.name != *self.file || file.text.len() > FILE_BYTES_MAX {
            return vec![];
        }
        let mut edits: Vec<NextEdit> = vec![];
        for (line, range) in Uses::of(self, file).find() {
            if let Some(last) = edits.last_mut().filter(|last| last.line == line) {
                let between = &file.text[last.range.end..range.start];
                last.new = format!("{}{between}{}", last.new, self.new);
                last.range.end = range.end;
                last.old = file.text[last.range.clone()].to_owned();
                continue;
            }
            let rule = (self.id(), RuleKind::Rename, self.support());
            edits.push(NextEdit::of(file, (range, line), self.new.clone(), rule));
        }
        let before = &file.text.as_bytes()[..cursor.min(file.text.len())];
        let cursor_line = before.iter().filter(|byte| **byte == b'\n').count();
        edits.sort_by_key(|edit| (edit.line < cursor_line, edit.line));
        edits
    }
}

/// The file, the old name and the new one, if a unit changes nothing but one name in one line.
fn names(unit: &Unit) -> Option<(&Arc<str>, &str, &str)> {
    let rewrite = rewrite(unit)?;
    let at = rewrite.prefix;
    Some((&unit.file, rewrite.old.word(at), rewrite.new.word(at)))
}

fn rewrite(unit: &Unit) -> Option<&Rewrite> {
    let [Change::Rewritten(rewrite)] = unit.changes.as_slice() else { return None };
    let (old, new) = rewrite.spans();
    let is_name = |(line, span): (&Line, Range<usize>)| {
        span.len() == 1 && line.tokens.get(span.start).is_some_and(is_word)
    };
    let is_one_line = unit.before.lines().count() == 1 && unit.after.lines().count() == 1;
    let is_renamed = is_name((&rewrite.old, old)) && is_name((&rewrite.new, new));
    let is_wanted = unit.by == By::Person && !unit.is_undone;
    (is_renamed && is_one_line && is_wanted).then_some(rewrite)
}

fn is_word(token: &Token) -> bool {
    token.kind == Kind::Word && token.class == Class::Code
}
