//! What clients say of offers: that they are shown, accepted or rejected. A message names an offer
//! by its id and may come on another connection than the offer's, such as after a window was
//! reloaded. The session that made the offer gets it (`app/mod.rs:session_of`), and the log
//! itself once that session has ended.

use super::{Session, State, Turn};
use feedback::event::{EventKind, Evidence, NextEditOutcome, OfferId, Outcome};
use offers::ClientReport;

impl Session {
    /// Returns true if this session made the offer or the next edit with this id, and still knows
    /// what became of it.
    pub fn made(&self, id: &str) -> bool {
        self.read(|state| state.made(id))
    }

    /// Notes that the client of this session reports which offers it shows.
    pub fn client_reports(&self) {
        self.turn(|state, turn| {
            let entries = state.offers.client_reports();
            turn.log(entries);
        });
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
            let is_forgotten = state.offers.is_forgotten(id);
            state.follow(turn, ClientReport::Accepted(id));
            is_forgotten
        });
        if is_settled { Ok(()) } else { self.services.recorder.ensure_accepted(id) }
    }

    pub fn shown(&self, id: &str) {
        let late = || EventKind::Shown { id: id.to_owned() };
        self.report(id, ClientReport::Shown(id), late);
    }

    /// Notes that the user turned to an offer, as reported by a client that cannot report each
    /// offer that it shows.
    pub fn turned_to(&self, id: &str) {
        let late = || EventKind::Shown { id: id.to_owned() };
        self.report(id, ClientReport::TurnedTo(id), late);
    }

    /// Notes that the client has put a part of an offer into the document: `utf16` UTF-16 units.
    pub fn partly_accepted(&self, id: &str, utf16: u32) {
        if utf16 == 0 {
            return;
        }
        let late = || outcome(id, Outcome::PartlyAccepted { utf16 });
        self.report(id, ClientReport::PartlyAccepted { id, utf16 }, late);
    }

    /// Notes that the client is about to put an offer, or a part of it, into the document.
    ///
    /// # Errors
    /// Nothing is recorded of this offer, so its acceptance cannot be recorded either.
    pub fn taking(&self, id: &str) -> anyhow::Result<()> {
        let is_known = self.turn(|state, turn| {
            let is_known = state.made(id);
            if is_known {
                state.follow(turn, ClientReport::Taking(id));
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
        let is_known = self.turn(|state, turn| {
            let is_known = ids.iter().any(|id| state.made(id));
            state.follow(turn, ClientReport::Dismissed(ids));
            is_known
        });
        if !is_known {
            self.services.recorder.record_dismissal(ids);
        }
    }

    pub fn rejected(&self, id: &str, reason: Outcome) {
        let edit_outcome = match reason {
            Outcome::RejectedEsc => NextEditOutcome::Rejected,
            _ => NextEditOutcome::Superseded,
        };
        let is_known = self.turn(|state, turn| {
            let by = Evidence::ClientNotice;
            state.next_edit_decided(turn, id, edit_outcome, by)
                || state.report(turn, id, ClientReport::Rejected { id, outcome: reason })
        });
        if !is_known {
            self.services.recorder.record_late(outcome(id, reason));
        }
    }

    /// Follows a report about an offer, or records `late` if no session knows the offer any more.
    fn report(&self, id: &str, report: ClientReport, late: impl FnOnce() -> EventKind) {
        if !self.turn(|state, turn| state.report(turn, id, report)) {
            self.services.recorder.record_late(late());
        }
    }
}

impl State {
    fn made(&self, id: &str) -> bool {
        self.offers.knows(id) || self.next_edits.knows(id)
    }

    /// Follows a report about an offer. Returns true if the offer was known by then.
    fn report(&mut self, turn: &mut Turn, id: &str, report: ClientReport) -> bool {
        let is_known = self.made(id);
        self.follow(turn, report);
        is_known
    }

    fn follow(&mut self, turn: &mut Turn, report: ClientReport) {
        let entries = self.offers.reported(report, &self.documents, turn.now_ms);
        turn.log(entries);
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
        let State { next_edits, documents, .. } = self;
        turn.events.extend(next_edits.decided(id, outcome, evidence, documents, turn.now_ms));
        is_known
    }
}

fn outcome(id: &str, outcome: Outcome) -> EventKind {
    EventKind::Outcome { id: id.to_owned(), outcome, evidence: Evidence::ClientNotice }
}
