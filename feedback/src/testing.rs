//! Events for tests: one way to make each, with everything filled in that the test does
//! not care about. It belongs to no feature, because a feature that only tests ask for would
//! compile this package and all that stand on it twice.
//!
//! What a test cares about it sets by struct update:
//!
//! ```
//! use feedback::event::Completion;
//! use feedback::testing::completion;
//!
//! let long = Completion { shown: "push(item);".into(), ..completion("1-1") };
//! ```

use crate::event::{
    Completion, Decision, Event, EventKind, Evidence, Outcome, Sampling, StopReason, Timing, Typed,
};

/// A completion that offers a text of ten characters in a Rust file, decoded greedily by
/// the base model `base`. It has a prompt of three tokens and no generated ones.
pub fn completion(id: &str) -> Completion {
    Completion {
        id: id.into(),
        path: "src/lib.rs".into(),
        context: vec![],
        real_names: vec![],
        language: "rust".into(),
        model_sha256: "base".into(),
        adapter: 0,
        sampling: Sampling::GREEDY,
        prompt: vec![1, 2, 3],
        adapter_from: 2,
        healing: String::new(),
        tokens: vec![],
        stop: StopReason::Newline,
        shown: "0123456789".into(),
        shown_from: 0,
        timing: Timing::default(),
        decision: Decision::default(),
        typed: Typed::default(),
        experts: None,
    }
}

/// The event of a completion.
pub fn served(completion: Completion) -> EventKind {
    EventKind::Completion(Box::new(completion))
}

/// The event of a completion that offers this text. An empty text is no offer.
pub fn offer(id: &str, shown: &str) -> EventKind {
    served(Completion { shown: shown.into(), ..completion(id) })
}

pub fn outcome(id: &str, outcome: Outcome, evidence: Evidence) -> EventKind {
    EventKind::Outcome { id: id.into(), outcome, evidence }
}

/// The client said that the offer was accepted.
pub fn accepted(id: &str) -> EventKind {
    outcome(id, Outcome::Accepted, Evidence::Command)
}

/// Events in log order, numbered from 0, ten milliseconds apart.
pub fn numbered(kinds: impl IntoIterator<Item = EventKind>) -> impl Iterator<Item = Event> {
    (0..).zip(kinds).map(|(seq, kind)| Event { seq, at_ms: 10 * seq, kind })
}
