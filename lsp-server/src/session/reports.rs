//! What clients say of offers: that they are shown, accepted or rejected. A message names an offer
//! by its id and may come on another connection than the offer's, such as after a window was
//! reloaded. The session that made the offer gets it ([`crate::app::App::session_of`]), and the log
//! itself once that session has ended.

use super::{Session, State};
use crate::session::tracker::Tracker;
use feedback::event::{EventKind, Evidence, OfferId, Outcome};

impl Session {
    /// Returns true if this session made the offer or the next edit with this id, and still knows
    /// what became of it.
    pub fn made(&self, id: &str) -> bool {
        self.state.lock().made(id)
    }

    /// Notes that the client of this session reports which offers it shows.
    pub fn client_reports(&self) {
        self.state.lock().tracker.client_reports();
    }

    /// Records that an offer was accepted.
    ///
    /// # Errors
    /// Nothing is recorded of this offer, so its acceptance cannot be recorded either.
    pub fn accepted(&self, id: &str) -> anyhow::Result<()> {
        if self.next_edit_accepted(id) {
            return Ok(());
        }
        let is_forgotten = self.state.lock().forgotten.contains(id);
        self.track(|tracker, _| tracker.accepted(id));
        // The user wants nothing recorded of it.
        if is_forgotten { Ok(()) } else { self.services.recorder.ensure_accepted(id) }
    }

    pub fn shown(&self, id: &str) {
        let late = || EventKind::Shown { id: id.to_owned() };
        self.report(id, late, |tracker, now_ms| tracker.shown(id, now_ms));
    }

    /// Notes that the client has put a part of an offer into the document: `utf16` UTF-16 units.
    pub fn partly_accepted(&self, id: &str, utf16: u32) {
        if utf16 == 0 {
            return;
        }
        let late = || outcome(id, Outcome::PartlyAccepted { utf16 });
        self.report(id, late, |tracker, _| tracker.partly_accepted(id, utf16));
    }

    /// Notes that the client is about to put an offer, or a part of it, into the document.
    ///
    /// # Errors
    /// Nothing is recorded of this offer, so its acceptance cannot be recorded either.
    pub fn taking(&self, id: &str) -> anyhow::Result<()> {
        if !self.made(id) {
            return self.services.recorder.ensure_accepted(id);
        }
        self.track(|tracker, now_ms| tracker.taking(id, now_ms));
        Ok(())
    }

    /// Notes that the user dismissed whichever of these offers is on screen.
    pub fn dismissed(&self, ids: &[OfferId]) {
        if let [id] = ids {
            return self.rejected(id, Outcome::RejectedEsc);
        }
        self.track(|tracker, now_ms| match tracker.on_screen() {
            Some(id) if ids.contains(&id) => tracker.rejected(&id, Outcome::RejectedEsc, now_ms),
            _ => vec![],
        });
    }

    pub fn rejected(&self, id: &str, reason: Outcome) {
        if self.next_edit_rejected(id, reason) {
            return;
        }
        let late = || outcome(id, reason);
        self.report(id, late, |tracker, now_ms| tracker.rejected(id, reason, now_ms));
    }

    /// Follows a report about an offer, or records `late` if no session knows the offer any more.
    fn report(
        &self,
        id: &str,
        late: impl FnOnce() -> EventKind,
        step: impl FnOnce(&mut Tracker, u64) -> Vec<EventKind>,
    ) {
        let is_known = self.made(id);
        self.track(step);
        if !is_known {
            self.services.recorder.record_late(late());
        }
    }

    /// Records under the session's lock, so that the log keeps the order of the messages.
    pub(super) fn track(&self, step: impl FnOnce(&mut Tracker, u64) -> Vec<EventKind>) {
        let mut state = self.state.lock();
        let now_ms = self.services.clock.elapsed_ms();
        let events = step(&mut state.tracker, now_ms);
        self.conclude(&mut state, events, None, now_ms);
    }
}

impl State {
    fn made(&self, id: &str) -> bool {
        self.tracker.knows(id) || self.next_edits.knows(id)
    }
}

fn outcome(id: &str, outcome: Outcome) -> EventKind {
    EventKind::Outcome { id: id.to_owned(), outcome, evidence: Evidence::ClientNotice }
}
