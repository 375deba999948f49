//! When a model is asked: after a rest, and not where the user has just said no.

/// The rest after a change.
const REST_MS: u64 = 300;

/// The rest at the end of a line, where a completion is likelier to be wanted, and comes first.
const REST_AT_LINE_END_MS: u64 = 2_000;

/// The time after a rejected edit in which none is asked for.
const AFTER_REJECT_MS: u64 = 5_000;

/// A change that inserts so many characters was not typed.
const PASTED_CHARS_MIN: usize = 16;

/// What happened last, as far as it decides when the model is asked. It knows no clock: each event
/// comes with its time, in milliseconds.
#[derive(Debug, Default)]
pub struct Moment {
    last: Last,
    changed_ms: u64,
    rejected_ms: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    Typed,
    /// A text was pasted, or an offer accepted.
    AtOnce,
    /// The text is as it was before.
    Undone,
}

/// What the user did last, as a client reports it. Its editor knows, and the text only hints at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastChange {
    Typing,
    Paste,
    /// An undo or a redo.
    Undo,
    /// An offer was accepted.
    Accept,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Ask after so many milliseconds, if nothing happens until then.
    After(u64),
    Never(Never),
}

/// Why the model is not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Never {
    /// Nothing was changed yet.
    NothingChanged,
    /// The last change was an undo or a redo.
    Undone,
    /// An edit was rejected a moment ago.
    JustRejected,
}

impl Moment {
    /// A text was inserted. `is_back` is true if that looks like an undo.
    pub fn changed(&mut self, inserted: &str, is_back: bool, now_ms: u64) {
        let is_pasted = inserted.chars().count() >= PASTED_CHARS_MIN && !inserted.trim().is_empty();
        self.changed_ms = now_ms;
        self.last = match (is_back, is_pasted) {
            (true, _) => Last::Undone,
            (false, true) => Last::AtOnce,
            (false, false) => Last::Typed,
        };
    }

    /// The client reports what the last change was.
    pub fn told(&mut self, change: LastChange) {
        if self.last == Last::Nothing {
            return;
        }
        self.last = match change {
            LastChange::Typing => Last::Typed,
            LastChange::Paste | LastChange::Accept => Last::AtOnce,
            LastChange::Undo => Last::Undone,
        };
    }

    /// The user had an edit made.
    pub fn accepted(&mut self, now_ms: u64) {
        (self.last, self.changed_ms) = (Last::AtOnce, now_ms);
    }

    pub fn rejected(&mut self, now_ms: u64) {
        self.rejected_ms = Some(now_ms);
    }

    /// Returns whether the model is asked for an edit. One that the user asks for with a key comes
    /// at once.
    pub fn ask(&self, is_invoked: bool, is_line_end: bool, now_ms: u64) -> Decision {
        if is_invoked {
            return Decision::After(0);
        }
        let since_reject = self.rejected_ms.map(|at| now_ms.saturating_sub(at));
        if since_reject.is_some_and(|since| since < AFTER_REJECT_MS) {
            return Decision::Never(Never::JustRejected);
        }
        let rest = match self.last {
            Last::Nothing => return Decision::Never(Never::NothingChanged),
            Last::Undone => return Decision::Never(Never::Undone),
            Last::AtOnce => 0,
            Last::Typed if is_line_end => REST_AT_LINE_END_MS,
            Last::Typed => REST_MS,
        };
        Decision::After(rest.saturating_sub(now_ms.saturating_sub(self.changed_ms)))
    }
}

const _: () = assert!(REST_MS < REST_AT_LINE_END_MS && REST_AT_LINE_END_MS < AFTER_REJECT_MS);
