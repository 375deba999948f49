//! How a request for a completion ended: what is offered, and why. The reason is remembered, so
//! that the user can ask for it.

use super::{SessionError, Suggestion};
use crate::services::Services;
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

/// Remembers why a request about the document at this path ended as it did.
pub fn remember(
    services: &Services,
    asked_for: AskedFor,
    (path, position, trigger): (String, Position, Trigger),
    reason: Reason,
    took: Duration,
) {
    services.requests.note(RecentRequest {
        asked_for,
        at_ms: services.clock.unix_ms(),
        path,
        line: position.line.saturating_add(1),
        invoked: trigger == Trigger::Invoked,
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        reason,
    });
}
