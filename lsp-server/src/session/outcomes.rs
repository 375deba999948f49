//! What happened to offers: the events of it, and the places that are watched from then on.

use super::{State, Turn};
use crate::session::survival::Finding;
use crate::session::tracker::{Decided, Offer};
use completion::document::Edit;
use feedback::event::{EventKind, Outcome};

impl Turn<'_> {
    /// Notes what was found where offers were made.
    pub(super) fn found(&mut self, findings: Vec<Finding>) {
        let engine = &self.services.engine;
        self.events.extend(findings.into_iter().map(|finding| match finding {
            Finding::Kept { id, check, share } => EventKind::Kept { id, check, share },
            Finding::Instead { id, text } => {
                EventKind::Replacement { id, tokens: engine.tokenize(&text) }
            }
        }));
    }
}

impl State {
    /// Ends the live offer without a verdict.
    pub(super) fn supersede(&mut self, turn: &mut Turn) {
        let events = self.tracker.supersede(turn.now_ms);
        self.conclude(turn, events, None);
    }

    /// Notes events. From now on it watches the places of the offers that they decide. `edit` is
    /// the edit that caused them, if one did.
    pub(super) fn conclude(
        &mut self,
        turn: &mut Turn,
        events: Vec<EventKind>,
        edit: Option<&Edit>,
    ) {
        turn.events.extend(events);
        let now_ms = turn.now_ms;
        let State { tracker, survival, documents, rejects, forgotten, accepted_until, .. } = self;
        for Decided { offer, outcome, chars_in_document } in tracker.take_decided() {
            let Offer { id, uri, start, text, healing, entry_chars, before: _ } = offer;
            if forgotten.remove(&id) {
                continue;
            }
            match outcome {
                Outcome::Accepted => {
                    *accepted_until = Some((uri.clone(), start + text.chars().count()));
                    survival.taken(id, uri, start, text, chars_in_document, now_ms)
                }
                Outcome::RejectedEsc | Outcome::RejectedTimeout | Outcome::RejectedEdit => {
                    if let Some(document) = documents.get(&uri) {
                        let at = start.min(document.text.len_chars());
                        let place = (uri.clone(), document.text.char_to_line(at));
                        let again = rejects.place == place;
                        rejects.count = if again { rejects.count.saturating_add(1) } else { 1 };
                        rejects.place = place;
                    }
                    let typed: String = text.chars().take(chars_in_document).collect();
                    // The prompt of an offer behind an entry holds the entry, which the user did
                    // not choose, so what is written instead says nothing about that prompt.
                    if entry_chars == 0 {
                        survival.not_taken(id, uri, start, &typed, healing, now_ms);
                        if let Some(edit) = edit {
                            survival.edit_newest(edit, now_ms);
                        }
                    }
                }
                Outcome::PartlyAccepted { .. }
                | Outcome::TypedThrough { .. }
                | Outcome::Superseded
                | Outcome::Unseen => {}
            }
        }
    }

    /// Notes what stands by now where offers were made.
    pub(super) fn look(&mut self, turn: &mut Turn) {
        let findings = self.survival.look(&self.documents, turn.now_ms);
        turn.found(findings);
    }
}
