//! The latest requests for completions and why each ended as it did, for `hone why`. They are kept
//! in memory only, and hold no text of a document.

use crate::services::reason::Reason;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The number of requests that are remembered: those of a few minutes of typing.
const REQUESTS_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecentRequest {
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The path of the document, or its URI if it is not a file.
    pub path: String,
    /// Counted from one, as editors show it.
    pub line: u32,
    /// Whether the user invoked it.
    pub invoked: bool,
    /// From the request to its answer.
    pub took_ms: u64,
    #[serde(flatten)]
    pub reason: Reason,
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

    /// The last request that no newer one has replaced.
    pub fn last_answered(&self) -> Option<RecentRequest> {
        let requests = self.0.lock();
        requests.iter().rev().find(|request| request.reason != Reason::Superseded).cloned()
    }

    /// Forgets everything, because the user asked for something to be forgotten.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_requests_are_remembered_and_no_more() {
        let requests = RecentRequests::default();
        for line in 1..=REQUESTS_MAX as u32 + 1 {
            requests.note(RecentRequest {
                at_ms: 0,
                path: "/a.rs".into(),
                line,
                invoked: false,
                took_ms: 1,
                reason: Reason::Shown,
            });
        }
        let latest = requests.latest();
        assert_eq!(latest.len(), REQUESTS_MAX);
        assert_eq!((latest[0].line, latest[REQUESTS_MAX - 1].line), (REQUESTS_MAX as u32 + 1, 2));
        requests.clear();
        assert!(requests.latest().is_empty());
    }
}
