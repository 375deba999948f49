//! What is wrong at the moment. Each source of trouble has one slot, so that a source that recovers
//! does not hide another's trouble.

use crate::part::Part;
use parking_lot::Mutex;

/// A source of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleSource {
    /// The registry of adapters, or an adapter that cannot be served.
    Adapters,
    /// An adapter that serves or is on trial, and cannot answer.
    Answers,
    EventLog,
    /// The HTTP API, which does not listen.
    Http,
    Learner,
    /// The model for next edits, which cannot be loaded or asked.
    NextEditModel,
    /// A part of the process that has died.
    Part(Part),
    Retention,
    Trial,
}

#[derive(Default)]
pub struct Health(Mutex<Vec<(TroubleSource, String)>>);

impl Health {
    /// Notes a reason. Returns `false` if it is known already.
    pub fn report(&self, source: TroubleSource, reason: impl Into<String>) -> bool {
        let reason = reason.into();
        let mut troubles = self.0.lock();
        let is_known = troubles.contains(&(source, reason.clone()));
        troubles.retain(|(other, _)| *other != source);
        troubles.push((source, reason));
        !is_known
    }

    pub fn clear(&self, source: TroubleSource) {
        self.0.lock().retain(|(other, _)| *other != source);
    }

    /// Clears a source whose reason is such a one.
    pub fn clear_if(&self, source: TroubleSource, is_such: impl Fn(&str) -> bool) {
        self.0.lock().retain(|(other, reason)| *other != source || !is_such(reason));
    }

    /// The latest reported reason of those that still hold.
    pub fn latest(&self) -> Option<String> {
        self.0.lock().last().map(|(_, reason)| reason.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_trouble_is_shown_until_its_source_recovers() {
        let health = Health::default();
        assert_eq!(health.latest(), None);
        assert!(health.report(TroubleSource::EventLog, "disk full"));
        assert!(health.report(TroubleSource::Learner, "it crashed"));
        assert!(
            !health.report(TroubleSource::Learner, "it crashed"),
            "the reason is known already"
        );
        assert_eq!(health.latest().as_deref(), Some("it crashed"));
        health.clear(TroubleSource::Learner);
        assert_eq!(health.latest().as_deref(), Some("disk full"));
        health.clear(TroubleSource::EventLog);
        assert_eq!(health.latest(), None);
    }
}
