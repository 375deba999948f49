//! What clients say of offers whose session does not know them any more, or whose event was lost.
//! The fold decides what it changes, whoever made the offer.

use super::Recorder;
use crate::privacy;
use anyhow::{Result, bail};
use feedback::event::{EventKind, Evidence, Outcome};

impl Recorder {
    /// Makes sure that the acceptance of an offer is recorded. The session that made the offer has
    /// recorded it, unless that session has ended, or the log could not be written for a while.
    ///
    /// # Errors
    /// The offer itself is not in the log, so its acceptance says nothing.
    pub fn ensure_accepted(&self, id: &str) -> Result<()> {
        let (outcome, evidence) = (Outcome::Accepted, Evidence::Command);
        let id = id.to_owned();
        if privacy::is_unstored(&id) {
            return Ok(());
        }
        let (known, is_awaited, had_outage) = {
            let state = self.state.lock();
            let had_outage = state.outage.turns > 0;
            (state.fold.outcome(&id), state.fold.awaits(&id, evidence), had_outage)
        };
        match is_awaited {
            Some(true) if known != Some(outcome) => {
                self.record(vec![EventKind::Outcome { id, outcome, evidence }]);
            }
            Some(_) => {}
            None if had_outage => bail!("the event log could not be written when it was offered"),
            None if id.starts_with(&format!("{:08x}-", self.run_id)) => {
                bail!("nothing is recorded of this offer")
            }
            None => bail!("the daemon that offered it ended before the offer was on disk"),
        }
        Ok(())
    }

    /// Records what a client says of an offer that has no outcome and that no session follows any
    /// more. What was decided stays, because only an accept command outweighs it.
    pub fn record_late(&self, said: EventKind) {
        let id = said.offer_id().to_owned();
        let is_open = {
            let state = self.state.lock();
            state.fold.awaits(&id, Evidence::ClientNotice) == Some(true)
                && state.fold.outcome(&id).is_none()
        };
        if is_open {
            self.record(vec![said]);
        }
    }
}
