//! Finds where an edit that was made twice comes next, without a model. Where no rule fits, it says
//! what a model is asked and what its answer is worth ([`model`]).
//!
//! The stream of edits is folded into units: what was changed at one place ([`History`]). Two units
//! that are alike make a rule ([`Rule`]): a rewrite, with holes for what differs; an insertion next
//! to the same text; or lines that are deleted. A rule is searched for below the cursor, then from
//! the file's start, then in the next file, and every place is checked ([`NextEdit`]). Where no
//! rule fits, a name that was changed where it is declared is offered where it is used
//! ([`Rename`]).
//!
//! Everything here is pure: no file is read, no model is run, and no setting is looked up. Whoever
//! shows an edit says whether it was taken or rejected, and a rule ends after [`MISSES_MAX`]
//! misses, until the user continues it by hand.
//!
//! ```
//! use next_edit::{By, Edit, File, Language, NextEdits, Query};
//! use ropey::Rope;
//!
//! let rust = Language::named("rust");
//! let mut text = Rope::from("file.load(1);\nfile.load(2);\nfile.load(3);\n");
//! let mut next = NextEdits::default();
//! // The user changes `load` to `fetch` in the first line, and then in the second one.
//! for start in [5, 20] {
//!     let edit = Edit { start, removed: 4, inserted: "fetch".into() };
//!     next.change("a.rs", rust, &text, std::slice::from_ref(&edit), By::Person);
//!     text.remove(start..start + 4);
//!     text.insert(start, "fetch");
//! }
//! let text = text.to_string();
//! let files = [File { name: "a.rs", text: &text, language: rust }];
//! let edits = next.find(&Query { files: &files, cursor: 25, count: 1 }).unwrap();
//! assert_eq!((edits[0].line, &*edits[0].old, &*edits[0].new), (2, "load", "fetch"));
//! assert!(edits[0].fits(&text));
//! ```

mod brackets;
mod change;
mod diff;
mod feedback;
mod history;
mod language;
pub mod model;
mod pattern;
mod places;
mod renames;
mod rules;
mod template;
mod tokens;

pub use diff::affixes;
pub use feedback::{EXAMPLES_TO_BEGIN_ANEW, MISSES_MAX};
pub use history::{
    By, DOCUMENT_BYTES_MAX, Edit, History, ONGOING_MAX, UNIT_BYTES_MAX, UNIT_LINES_MAX, UNITS_MAX,
    Unit,
};
pub use language::Language;
pub use places::{
    FILE_BYTES_MAX, File, HITS_MAX, LEXED_FILES_MAX, LINE_BYTES_MAX, NextEdit, Query,
};
pub use renames::Rename;
pub use rules::{EVIDENCE_UNITS_MAX, RECENT_UNITS, RULES_MAX, Rule, RuleId, RuleKind};

use feedback::Feedback;
use ropey::Rope;
use std::cell::Cell;

/// The reason why nothing is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// No edit was made twice lately.
    NoRule,
    /// No place fits a rule, or none that the user has not passed by.
    NoPlace,
    /// The user rejected what there is.
    Rejected,
}

/// The edits of one user, and what can be made of them.
#[derive(Debug, Default)]
pub struct NextEdits {
    history: History,
    feedback: Feedback,
}

impl NextEdits {
    /// Notes the changes of one message, of which the first one changes `text`.
    pub fn change(
        &mut self,
        file: &str,
        language: &'static Language,
        text: &Rope,
        edits: &[Edit],
        by: By,
    ) {
        self.history.change(file, language, text, edits, by);
    }

    /// Settles what is begun, because changes are missing from here on.
    pub fn settle(&mut self) {
        self.history.settle_all();
    }

    /// Returns what was changed so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The rules that the edits so far give and that have not ended, the most likely first. There
    /// is at least one, or a reason.
    pub fn rules(&self) -> Result<Vec<Rule>, Nothing> {
        let mut rules = rules::rules(&self.history.latest(EVIDENCE_UNITS_MAX));
        if rules.is_empty() {
            return Err(Nothing::NoRule);
        }
        rules.retain(|rule| !self.feedback.has_ended(rule.id, rule.support));
        if rules.is_empty() { Err(Nothing::Rejected) } else { Ok(rules) }
    }

    /// The units that a rule is made from, each with the line at which it stands now. Other kinds
    /// of edits are made from none.
    pub fn examples(&self, rule: RuleId) -> Vec<(Unit, usize)> {
        let units = self.history.latest(EVIDENCE_UNITS_MAX);
        let rules = rules::rules(&units);
        let places = rules.iter().filter(|one| one.id == rule).flat_map(|one| &one.examples);
        let mut numbers: Vec<usize> = places.map(|place| place.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let units = numbers.into_iter().filter_map(|number| units.get(number));
        units.map(|unit| (unit.clone(), unit.line_now)).collect()
    }

    /// The name that the user has just changed where it is declared, unless the user rejected
    /// that.
    pub fn rename(&self) -> Option<Rename> {
        let rename = Rename::latest(&self.history.latest(renames::UNITS_MAX))?;
        (!self.feedback.has_ended(rename.id(), rename.support())).then_some(rename)
    }

    /// Returns where the user may want to continue, the most likely place first. No two edits
    /// overlap.
    pub fn find(&self, query: &Query) -> Result<Vec<NextEdit>, Nothing> {
        let found = self.rules().and_then(|rules| self.find_for(&rules, query));
        found.or_else(|nothing| match self.rename() {
            Some(rename) => self.find_uses(&rename, query).ok_or(nothing),
            None => Err(nothing),
        })
    }

    /// The uses of a renamed name in its file, if that is among the files and there are any.
    pub fn find_uses(&self, rename: &Rename, query: &Query) -> Option<Vec<NextEdit>> {
        let in_file = |(number, file): (usize, &File)| {
            rename.edits(file, if number == 0 { query.cursor } else { 0 })
        };
        let mut edits: Vec<NextEdit> = query.files.iter().enumerate().flat_map(in_file).collect();
        edits.retain(|edit| !self.feedback.is_rejected(edit));
        edits.truncate(query.count);
        (!edits.is_empty()).then_some(edits)
    }

    /// The same for rules that are known already.
    pub fn find_for(&self, rules: &[Rule], query: &Query) -> Result<Vec<NextEdit>, Nothing> {
        let is_refused = Cell::new(false);
        let found = places::next_edits(rules, query, |edit| {
            let is_rejected = self.feedback.is_rejected(edit);
            is_refused.set(is_refused.get() || is_rejected);
            !is_rejected
        });
        match (found.is_empty(), is_refused.get()) {
            (false, _) => Ok(found),
            (true, true) => Err(Nothing::Rejected),
            (true, false) => Err(Nothing::NoPlace),
        }
    }

    /// Notes that the user took an edit. The change itself comes as any other ([`By::Person`]).
    pub fn taken(&mut self, edit: &NextEdit) {
        self.feedback.taken(edit);
    }

    /// Notes that the user rejected an edit, or continued elsewhere. It is not offered again, and
    /// its rule ends with [`MISSES_MAX`] of them in a row.
    pub fn rejected(&mut self, edit: &NextEdit) {
        self.feedback.rejected(edit);
    }
}

#[cfg(test)]
mod tests;
