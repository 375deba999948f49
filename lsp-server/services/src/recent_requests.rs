//! The latest requests for completions and next edits, and why each ended as it did, for
//! `hone why`. They are kept in memory only, and hold no text of a document.

use crate::reason::Reason;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The number of requests that are remembered: those of a few minutes of typing.
const REQUESTS_MAX: usize = 1_000;

/// The wait, in milliseconds, from which on a user misses an answer that never came.
const MISSED_MS: u64 = 1_000;

/// What was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskedFor {
    #[default]
    Completion,
    NextEdit,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecentRequest {
    pub asked_for: AskedFor,
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The path of the document, or its URI if it is not a file.
    pub path: String,
    /// Counted from one, as editors show it.
    pub line: u32,
    /// True if the user invoked it.
    pub invoked: bool,
    /// From the request to its answer.
    pub took_ms: u64,
    /// How it ended. A reason has fields of its own, such as the path of another file.
    pub why: Reason,
}

impl RecentRequest {
    /// Returns true if a user has no reason to ask about it. Editors ask at each key, and the next
    /// one mostly comes first. They ask for the next edit at each pause in typing, and mostly there
    /// is none.
    pub fn is_routine(&self) -> bool {
        let is_asked_at_each_pause = self.asked_for == AskedFor::NextEdit && !self.invoked;
        match self.why {
            Reason::Superseded => true,
            Reason::NothingAlike
            | Reason::NextEditsByKey
            | Reason::NextEditsOff
            | Reason::ModelSilent { .. } => is_asked_at_each_pause,
            Reason::Unanswered { after_ms, .. } => after_ms < MISSED_MS,
            _ => false,
        }
    }
}

#[derive(Default)]
pub struct RecentRequests(Mutex<VecDeque<RecentRequest>>);

impl RecentRequests {
    pub fn note(&self, request: RecentRequest) {
        let mut requests = self.0.lock();
        if requests.len() == REQUESTS_MAX {
            requests.pop_front();
        }
        requests.push_back(request);
    }

    /// The remembered requests, the latest first.
    pub fn latest(&self) -> Vec<RecentRequest> {
        self.0.lock().iter().rev().cloned().collect()
    }

    /// The last request for a completion that no newer one has replaced.
    pub fn last_answered(&self) -> Option<RecentRequest> {
        let requests = self.0.lock();
        let is_it = |request: &&RecentRequest| {
            request.asked_for == AskedFor::Completion
                && !matches!(request.why, Reason::Unanswered { .. })
        };
        requests.iter().rev().find(is_it).cloned()
    }

    /// Forgets everything, because the user asked for something to be forgotten.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::worker::Work;

    #[test]
    fn the_latest_requests_are_remembered_and_no_more() {
        let requests = RecentRequests::default();
        for line in 1..=REQUESTS_MAX as u32 + 1 {
            requests.note(RecentRequest {
                asked_for: AskedFor::Completion,
                at_ms: 0,
                path: "/a.rs".into(),
                line,
                invoked: false,
                took_ms: 1,
                why: Reason::Shown,
            });
        }
        let latest = requests.latest();
        assert_eq!(latest.len(), REQUESTS_MAX);
        assert_eq!((latest[0].line, latest[REQUESTS_MAX - 1].line), (REQUESTS_MAX as u32 + 1, 2));
        requests.clear();
        assert!(requests.latest().is_empty());
    }

    #[test]
    fn a_next_edit_is_no_completion_and_mostly_routine() {
        let asked = |asked_for, invoked, why| RecentRequest {
            asked_for,
            at_ms: 0,
            path: "/a.rs".into(),
            line: 1,
            invoked,
            took_ms: 1,
            why,
        };
        let unanswered = |after_ms| Reason::Unanswered { after_ms, engine: Work::Scoring };
        let requests = RecentRequests::default();
        requests.note(asked(AskedFor::Completion, false, Reason::TooShort));
        requests.note(asked(AskedFor::Completion, false, unanswered(1_400)));
        requests.note(asked(AskedFor::NextEdit, false, Reason::NothingAlike));
        assert_eq!(requests.last_answered().map(|last| last.why), Some(Reason::TooShort));
        let routine: Vec<bool> = [
            asked(AskedFor::NextEdit, false, Reason::NothingAlike),
            asked(AskedFor::NextEdit, true, Reason::NothingAlike),
            asked(AskedFor::NextEdit, false, Reason::TurnedDown),
            asked(AskedFor::Completion, false, Reason::NothingToAdd),
            asked(AskedFor::Completion, false, unanswered(110)),
            asked(AskedFor::Completion, false, unanswered(1_400)),
        ]
        .iter()
        .map(RecentRequest::is_routine)
        .collect();
        assert_eq!(routine, [true, false, false, false, true, false]);
    }

    #[test]
    fn a_request_reads_back_whose_next_edit_is_in_another_file() {
        let request = RecentRequest {
            asked_for: AskedFor::NextEdit,
            at_ms: 0,
            path: "/a.rs".into(),
            line: 1,
            invoked: true,
            took_ms: 1,
            why: Reason::InAnotherFile { path: "/b.rs".into(), line: 2 },
        };
        let written = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<RecentRequest>(&written).unwrap(), request);
    }
}
