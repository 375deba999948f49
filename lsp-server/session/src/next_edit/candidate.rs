//! A place that was found, with all that the gate and the log want to know of it.

use super::Asked;
use crate::State;
use completion::document::Document;
use feedback::event::NextEditKind;
use feedback::secrets;
use next_edit::model::{Place, Signs};
use next_edit::{NextEdit, RuleKind, Unit};
use policy::next_edit::surroundings::{ByModel, Surroundings};
use privacy::{is_near_secret, may_tell};
use ropey::Rope;
use std::ops::Range;

/// How far cursor and place may be apart, in lines, for both to be looked at as one block.
const BLOCK_LINES_MAX: usize = 400;

pub struct EditCandidate {
    pub edit: NextEdit,
    /// The replaced characters.
    pub place: Range<usize>,
    pub path: String,
    pub language: String,
    pub seen: Surroundings,
    pub cursor_line: usize,
    /// True if the log may hold it, by what is around it.
    pub may_store: bool,
}

impl EditCandidate {
    /// Returns what was found, if it fits the documents as they are now. `examples` are the changes
    /// that it repeats, each with the line at which it stands now. They may hold a secret of which
    /// the edit alone is no more than a word.
    pub fn of(
        state: &State,
        asked: &Asked,
        edit: NextEdit,
        examples: &[(Unit, usize)],
    ) -> Option<EditCandidate> {
        let document = state.documents.get(&*edit.file)?;
        let text = &document.text;
        if edit.range.end > text.len_bytes() {
            return None;
        }
        let place = text.byte_to_char(edit.range.start)..text.byte_to_char(edit.range.end);
        let is_here = *edit.file == *asked.uri;
        let may_carry_secret = is_near_secret(text, &place, &edit.new)
            || examples.iter().any(|(unit, line)| is_secret_example(state, unit, *line));
        // A secret stays in its own file.
        if !is_here && may_carry_secret {
            return None;
        }
        // The log holds a hash of both texts, by which a guess could be tested.
        let may_store = !may_carry_secret && !is_near_secret(text, &place, &edit.old);
        let cursor =
            state.documents.get(&asked.uri)?.offset(asked.position, state.editor.encoding).ok()?;
        let cursor_line = state.documents.get(&asked.uri)?.text.char_to_line(cursor);
        let line = text.char_to_line(place.start);
        let seen = Surroundings {
            rule: edit.rule.0,
            kind: kind(edit.kind),
            support: edit.support as u32,
            lines_away: is_here.then(|| line.abs_diff(cursor_line) as u32),
            is_in_same_block: is_here && is_in_same_block(text, line, cursor_line),
            by_model: None,
        };
        let Document { path, language, .. } = document;
        let (path, language) = (path.clone(), language.clone());
        Some(EditCandidate { edit, place, path, language, seen, cursor_line, may_store })
    }

    /// Returns whether what is to be replaced stands at the place now.
    pub fn fits(&self, state: &State) -> bool {
        state.documents.get(&*self.edit.file).is_some_and(|document| {
            let text = &document.text;
            self.place.end <= text.len_chars()
                && text.char_to_byte(self.place.start) == self.edit.range.start
                && text.slice(self.place.clone()) == self.edit.old
        })
    }
}

/// Returns whether a change was made in or near a secret. `line` is where it stands now, if its
/// document is open.
fn is_secret_example(state: &State, unit: &Unit, line: usize) -> bool {
    let is_near = |document: &Document| {
        let text = &document.text;
        !may_tell(text, text.line_to_char(line.min(text.len_lines())))
    };
    [&unit.before, &unit.after].into_iter().any(|lines| secrets::holds_secret(lines))
        || state.documents.get(&*unit.file).is_some_and(is_near)
}

/// Returns whether no line between these two begins at the left margin, as the lines of a function
/// do.
fn is_in_same_block(text: &Rope, one: usize, other: usize) -> bool {
    let lines = one.min(other)..one.max(other);
    lines.len() <= BLOCK_LINES_MAX
        && lines.chain([one.max(other)]).all(|line| {
            text.get_line(line)
                .and_then(|line| line.get_char(0))
                .is_none_or(|first| first.is_whitespace())
        })
}

/// What the gate is told of a model's edit, which was asked for at this place.
pub fn by_model(signs: &Signs, place: Place) -> ByModel {
    let Signs { logprobs, lines, known_words } = *signs;
    ByModel { logprobs, lines: lines as u32, known_words, is_at_cursor: place == Place::Cursor }
}

fn kind(kind: RuleKind) -> NextEditKind {
    match kind {
        RuleKind::Rewrite => NextEditKind::Rewrite,
        RuleKind::RewriteWithHoles => NextEditKind::RewriteWithHoles,
        RuleKind::Insertion => NextEditKind::Insertion,
        RuleKind::InlineDeletion => NextEditKind::InlineDeletion,
        RuleKind::InsertedLines => NextEditKind::InsertedLines,
        RuleKind::DeletedLines => NextEditKind::DeletedLines,
        RuleKind::Rename => NextEditKind::Rename,
        RuleKind::Model => NextEditKind::Model,
    }
}
