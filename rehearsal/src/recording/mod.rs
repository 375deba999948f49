//! A recorded session of a person: what happened in their editor, key by key, in the format
//! `workspaceRecording@1.0` (docs/book/src/evaluation/recordings.md).
//!
//! - [`reader`] reads a file and keeps what stands before its first fault.
//! - [`play`] plays it to a daemon, asks when an editor would ask, and compares each offer with
//!   what the person wrote next, which [`written`] says.
//! - [`screen`] is what the editor would show meanwhile.
//! - [`figures`] counts and prints.

mod entry;
pub mod figures;
pub mod play;
pub mod reader;
pub mod screen;
pub mod written;

pub use entry::replacements;

use std::ops::Range;

/// A recording that was read.
#[derive(Debug, Default)]
pub struct Recording {
    pub documents: Vec<RecordedDocument>,
    pub events: Vec<Event>,
    /// Why the rest of the file was not read.
    pub fault: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RecordedDocument {
    /// Relative to the folder of the session, with slashes.
    pub path: String,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The number of its entry in the log, from 1 on.
    pub entry: usize,
    /// Since the first entry. It never goes back.
    pub at_ms: u64,
    pub what: What,
}

/// All offsets are in bytes. `document` is an index into [`Recording::documents`].
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// The document was opened with this text, or got it from elsewhere.
    Text {
        document: usize,
        text: String,
    },
    /// These ranges were replaced. They are in the text before, from the last to the first, and do
    /// not overlap.
    Changed {
        document: usize,
        replacements: Vec<Replacement>,
        /// What the editor says made the change, where it does. Typing has none.
        reason: Option<String>,
    },
    Selected {
        document: usize,
        carets: Vec<Range<usize>>,
    },
    Focused {
        document: usize,
    },
    Closed {
        document: usize,
    },
    /// The editor asked another tool for completions.
    Asked {
        document: usize,
        request: u64,
    },
    /// What the other tool answered. It is nothing if the request was given up.
    Answered {
        request: u64,
        answers: Option<Vec<OtherAnswer>>,
    },
}

/// A range that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    pub range: Range<usize>,
    pub text: String,
    /// Bytes at the beginning and at the end of the range that `text` has too.
    pub same: (usize, usize),
}

impl Replacement {
    /// The bytes that it takes away, and what it puts there, without what stays the same.
    pub fn minimal(&self) -> (Range<usize>, &str) {
        let (head, tail) = self.same;
        let range = self.range.start + head..self.range.end - tail;
        (range, &self.text[head..self.text.len() - tail])
    }
}

/// One of the other tool's answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherAnswer {
    /// The lines and columns that it replaces, from 1 on, in UTF-16 units.
    pub range: [u32; 4],
    pub text: String,
    /// True if it is an edit anywhere in the document, and no text at the cursor.
    pub is_edit: bool,
}

/// The reason that VS Code gives where an offer was accepted.
pub const ACCEPTED: &str = "inlineSuggestion.accept";

impl Event {
    /// The document in which the person acts.
    pub fn acts_in(&self) -> Option<usize> {
        match self.what {
            What::Text { document, .. }
            | What::Changed { document, .. }
            | What::Selected { document, .. }
            | What::Focused { document }
            | What::Closed { document } => Some(document),
            What::Asked { .. } | What::Answered { .. } => None,
        }
    }
}
