//! What clients say of offers: that they are shown, accepted or rejected. A message names an offer
//! by its id and may come on another connection than the offer's, such as after a window was
//! reloaded. The session that made the offer gets it ([`crate::app::App::session_of`]), and the log
//! itself once that session has ended.

use super::{Session, State, Turn};
use crate::session::tracker::Tracker;
use feedback::event::{EventKind, Evidence, NextEditOutcome, OfferId, Outcome};

impl Session {
    /// Returns true if this session made the offer or the next edit with this id, and still knows
    /// what became of it.
    pub fn made(&self, id: &str) -> bool {
        self.read(|state| state.made(id))
    }

    /// Notes that the client of this session reports which offers it shows.
    pub fn client_reports(&self) {
        self.turn(|state, _| state.tracker.client_reports());
    }

    /// Records that an offer was accepted.
    ///
    /// # Errors
    /// Nothing is recorded of this offer, so its acceptance cannot be recorded either.
    pub fn accepted(&self, id: &str) -> anyhow::Result<()> {
        let is_settled = self.turn(|state, turn| {
            let (outcome, by) = (NextEditOutcome::Accepted, Evidence::Command);
            if state.next_edit_decided(turn, id, outcome, by) {
                return true;
            }
            // The user wants nothing recorded of it.
            let is_forgotten = state.forgotten.contains(id);
            state.track(turn, |tracker, _| tracker.accepted(id));
            is_forgotten
        });
        if is_settled { Ok(()) } else { self.services.recorder.ensure_accepted(id) }
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
        let is_known = self.turn(|state, turn| {
            let is_known = state.made(id);
            if is_known {
                state.track(turn, |tracker, now_ms| tracker.taking(id, now_ms));
            }
            is_known
        });
        if is_known { Ok(()) } else { self.services.recorder.ensure_accepted(id) }
    }

    /// Notes that the user dismissed whichever of these offers is on screen.
    pub fn dismissed(&self, ids: &[OfferId]) {
        if let [id] = ids {
            return self.rejected(id, Outcome::RejectedEsc);
        }
        self.turn(|state, turn| {
            state.track(turn, |tracker, now_ms| match tracker.on_screen() {
                Some(id) if ids.contains(&id) => {
                    tracker.rejected(&id, Outcome::RejectedEsc, now_ms)
                }
                _ => vec![],
            });
        });
    }

    pub fn rejected(&self, id: &str, reason: Outcome) {
        let edit_outcome = match reason {
            Outcome::RejectedEsc => NextEditOutcome::Rejected,
            _ => NextEditOutcome::Superseded,
        };
        let is_known = self.turn(|state, turn| {
            let by = Evidence::ClientNotice;
            state.next_edit_decided(turn, id, edit_outcome, by)
                || state.report(turn, id, |tracker, now_ms| tracker.rejected(id, reason, now_ms))
        });
        if !is_known {
            self.services.recorder.record_late(outcome(id, reason));
        }
    }

    /// Follows a report about an offer, or records `late` if no session knows the offer any more.
    fn report(
        &self,
        id: &str,
        late: impl FnOnce() -> EventKind,
        step: impl FnOnce(&mut Tracker, u64) -> Vec<EventKind>,
    ) {
        if !self.turn(|state, turn| state.report(turn, id, step)) {
            self.services.recorder.record_late(late());
        }
    }
}

impl State {
    fn made(&self, id: &str) -> bool {
        self.tracker.knows(id) || self.next_edits.knows(id)
    }

    /// Follows a report about an offer. Returns true if the offer was known by then.
    fn report(
        &mut self,
        turn: &mut Turn,
        id: &str,
        step: impl FnOnce(&mut Tracker, u64) -> Vec<EventKind>,
    ) -> bool {
        let is_known = self.made(id);
        self.track(turn, step);
        is_known
    }

    pub(super) fn track(
        &mut self,
        turn: &mut Turn,
        step: impl FnOnce(&mut Tracker, u64) -> Vec<EventKind>,
    ) {
        let events = step(&mut self.tracker, turn.now_ms);
        self.conclude(turn, events, None);
    }

    /// Follows what the client says of a next edit. Returns true if this is the id of one.
    fn next_edit_decided(
        &mut self,
        turn: &mut Turn,
        id: &str,
        outcome: NextEditOutcome,
        evidence: Evidence,
    ) -> bool {
        let is_known = self.next_edits.knows(id);
        turn.events.extend(self.next_edits.decided(id, outcome, evidence, turn.now_ms));
        is_known
    }
}

fn outcome(id: &str, outcome: Outcome) -> EventKind {
    EventKind::Outcome { id: id.to_owned(), outcome, evidence: Evidence::ClientNotice }
}
