//! How a request for a completion ended: what is offered, and why. The reason is remembered, so
//! that the user can ask for it.

use super::{Session, SessionError, Suggestion};
use crate::services::reason::Reason;
use crate::services::recent_requests::{AskedFor, RecentRequest};
use crate::session::request::Trigger;
use completion::document::Position;
use std::time::Duration;

/// The answer to a request. It offers something if and only if its reason says so.
#[derive(Debug)]
pub struct Completed {
    pub suggestions: Vec<Suggestion>,
    pub reason: Reason,
}

impl Completed {
    pub fn nothing(reason: Reason) -> Completed {
        Completed { suggestions: vec![], reason }
    }

    /// These suggestions, or nothing for the reason if there are none.
    pub fn of(suggestions: Vec<Suggestion>, shown: Reason, otherwise: Reason) -> Completed {
        let reason = if suggestions.is_empty() { otherwise } else { shown };
        Completed { suggestions, reason }
    }
}

impl SessionError {
    pub fn reason(&self) -> Reason {
        match self {
            SessionError::Superseded => Reason::Superseded,
            SessionError::Loading => Reason::Loading,
            SessionError::NotOpen { .. }
            | SessionError::Unserved { .. }
            | SessionError::PastTheEnd(_) => Reason::OutOfStep,
            SessionError::Engine(error) => Reason::Failed { message: error.to_string() },
        }
    }
}

impl Session {
    /// Remembers why a request ended as it did.
    pub(super) fn remember(
        &self,
        asked_for: AskedFor,
        (uri, position, trigger): (&str, Position, Trigger),
        reason: Reason,
        took: Duration,
    ) {
        let path = self.state.lock().documents.get(uri).map(|document| document.path.clone());
        self.services.requests.note(RecentRequest {
            asked_for,
            at_ms: self.services.clock.unix_ms(),
            path: path.unwrap_or_else(|| uri.to_owned()),
            line: position.line.saturating_add(1),
            invoked: trigger == Trigger::Invoked,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            reason,
        });
    }
}
