//! How a request for a completion ended: what is offered, and why. The reason is remembered, so
//! that the user can ask for it.

use super::{SessionError, Suggestion};
use crate::request::Trigger;
use completion::document::Position;
use services::Services;
use services::reason::Reason;
use services::recent_requests::{AskedFor, RecentRequest};
use std::time::Instant;

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
    /// Why there was no answer. `None` if a newer key or request came first.
    pub fn reason(&self) -> Option<Reason> {
        Some(match self {
            SessionError::Superseded => return None,
            SessionError::Loading => Reason::Loading,
            SessionError::NotOpen { .. }
            | SessionError::Unserved { .. }
            | SessionError::PastTheEnd(_) => Reason::OutOfStep,
            SessionError::Engine(error) => Reason::Failed { message: error.to_string() },
        })
    }
}

/// A request that has no answer yet. However it ends, that is remembered. Editors cancel a request
/// at the next key, and its future is dropped.
pub struct OpenRequest<'a> {
    services: &'a Services,
    asked_for: AskedFor,
    path: String,
    position: Position,
    trigger: Trigger,
    since: Instant,
    reason: Option<Reason>,
}

impl<'a> OpenRequest<'a> {
    /// A request about the document at this path, which came at `since`.
    pub fn new(
        services: &'a Services,
        asked_for: AskedFor,
        (path, position, trigger): (String, Position, Trigger),
        since: Instant,
    ) -> OpenRequest<'a> {
        OpenRequest { services, asked_for, path, position, trigger, since, reason: None }
    }

    /// Ends the request for this reason. `None`: a newer key or request came before the answer.
    pub fn end(mut self, reason: Option<Reason>) {
        self.reason = reason;
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        let took_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let why = self.reason.take().unwrap_or_else(|| match self.asked_for {
            AskedFor::Completion => {
                Reason::Unanswered { after_ms: took_ms, engine: self.services.engine.work() }
            }
            AskedFor::NextEdit => Reason::Superseded,
        });
        self.services.requests.note(RecentRequest {
            asked_for: self.asked_for,
            at_ms: self.services.clock.unix_ms(),
            path: std::mem::take(&mut self.path),
            line: self.position.line.saturating_add(1),
            invoked: self.trigger == Trigger::Invoked,
            took_ms,
            why,
        });
    }
}
