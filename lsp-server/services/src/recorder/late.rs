//! What clients say of offers whose session does not know them any more, or whose event was lost.
//! The fold decides what it changes, whoever made the offer.

use super::Recorder;
use anyhow::{Result, bail};
use feedback::event::{EventKind, Evidence, OfferId, Outcome};

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
        let (known, had_outage) = {
            let state = self.state.lock();
            (state.fold.outcome(&id), state.outage.turns > 0)
        };
        match known {
            Some(Some((Outcome::Accepted, _))) => {}
            Some(_) => self.record(vec![EventKind::Outcome { id, outcome, evidence }]),
            None if had_outage => bail!("the event log could not be written when it was offered"),
            None if id.starts_with(&format!("{:08x}-", self.run_id)) => {
                bail!("nothing is recorded of this offer")
            }
            None => bail!("the daemon that offered it ended before the offer was on disk"),
        }
        Ok(())
    }

    /// Records what a client says of an offer that no session follows any more. A verdict that
    /// somebody gave stays, because only an accept command outweighs it. The end of a connection is
    /// none.
    pub fn record_late(&self, said: EventKind) {
        let known = self.state.lock().fold.outcome(&said.offer_id().to_owned());
        let counts = match (&said, known) {
            (_, None) => false,
            (_, Some(None)) => true,
            (&EventKind::Outcome { outcome, evidence, .. }, Some(Some(known))) => {
                use Outcome::{PartlyAccepted, Superseded, Unseen};
                !matches!(outcome, Superseded | Unseen)
                    && matches!(known.0, PartlyAccepted { .. } | Superseded | Unseen)
                    && outcome.outweighs(evidence, Some(known))
            }
            _ => false,
        };
        if counts {
            self.record(vec![said]);
        }
    }

    /// Records that the user dismissed whichever of these offers was on screen, once no session
    /// follows them any more: the last one that was reported, or else the first.
    pub fn record_dismissal(&self, ids: &[OfferId]) {
        let on_screen = {
            let fold = &self.state.lock().fold;
            ids.iter().rev().find(|id| fold.is_shown(id)).or(ids.first()).cloned()
        };
        if let Some(id) = on_screen {
            let (outcome, evidence) = (Outcome::RejectedEsc, Evidence::ClientNotice);
            self.record_late(EventKind::Outcome { id, outcome, evidence });
        }
    }
}
