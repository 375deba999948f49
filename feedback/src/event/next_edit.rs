//! The record of next edits: which rule offered one, where, and what became of it. The text
//! of the edit is not recorded, because nothing learns from it.

use super::{GateRecord, OfferId};
use serde::{Deserialize, Serialize};

/// A next edit that was sent to an editor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NextEdit {
    pub id: OfferId,
    /// Path of the document to be changed, or its URI if it is not a file. `hone forget` goes by
    /// it.
    pub path: String,
    /// The path behind its links, if it was opened by a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_name: Option<String>,
    pub language: String,
    /// The first changed line, counted from 1.
    pub line: u32,
    /// The number of the rule, which is the same for the same edit.
    pub rule: u64,
    pub kind: NextEditKind,
    /// The number of times that the user had made such an edit.
    pub support: u32,
    /// The user asked for it with a key.
    pub invoked: bool,
    pub gate: Option<GateRecord>,
}

/// The kind of edit that a rule repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextEditKind {
    Rewrite,
    RewriteWithHoles,
    Insertion,
    InlineDeletion,
    InsertedLines,
    DeletedLines,
    /// The use of a name that was changed where it is declared.
    Rename,
    /// What a model wrote, where no rule fits.
    Model,
}

/// The outcome of a next edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextEditOutcome {
    /// The user had it made.
    Accepted,
    /// The user made the same edit by hand.
    MadeByHand,
    /// The user rejected it with a key.
    Rejected,
    /// The user wrote something else at its place.
    EditedOtherwise,
    /// The user saw it, and continued at other lines.
    PassedBy,
    /// The user took it back right after it was made.
    Undone,
    /// Another answer or another text took its place before anything was decided.
    Superseded,
    /// It was gone before the user can have seen it.
    Unseen,
}

impl NextEditOutcome {
    /// Returns whether the user wanted this edit at this place. None if that is not known.
    pub fn is_right(self) -> Option<bool> {
        match self {
            NextEditOutcome::Accepted | NextEditOutcome::MadeByHand => Some(true),
            NextEditOutcome::Rejected
            | NextEditOutcome::EditedOtherwise
            | NextEditOutcome::PassedBy
            | NextEditOutcome::Undone => Some(false),
            NextEditOutcome::Superseded | NextEditOutcome::Unseen => None,
        }
    }
}
