//! Requests as if an offer was taken. Some clients ask for what follows as soon as they show an
//! offer, and at the accept they show that answer without asking again. So the answer is computed
//! and kept, and nothing is recorded of it before its client has come to its place.

use super::{CurrentRequest, Session, SessionError, State, Turn, asking};
use crate::response::ResponseBuilder;
use completion::document::Position;
use completion::postprocess::replaced_suffix;
use engine::EngineError;
use feedback::event::{Completion, EventKind, OfferId};
use offers::{Offer, Served};

/// An answer whose place the client has not come to yet.
#[derive(Debug)]
pub struct AheadAnswer {
    completion: Completion,
    offer: Offer,
    /// The marks behind the cursor that the offer replaces.
    marks: String,
    /// How often the session had forgotten when it was asked.
    forgets: u64,
}

impl AheadAnswer {
    pub fn id(&self) -> &OfferId {
        &self.offer.id
    }

    pub fn text(&self) -> &str {
        &self.offer.text
    }

    pub fn marks(&self) -> &str {
        &self.marks
    }
}

impl Session {
    /// Completes behind a text as if that stood at the cursor. What is on screen stays. Returns
    /// `None` if nothing is worth showing there.
    pub async fn complete_as_if(
        &self,
        uri: &str,
        position: Position,
        taken: &str,
    ) -> Result<Option<AheadAnswer>, SessionError> {
        self.services.touch();
        let settings = self.services.settings.current();
        let arrived =
            self.turn(|state, turn| state.arrive_as_if(turn, (uri, position), taken, settings))?;
        let Some(place) = arrived else { return Ok(None) };
        let mut pending = self.prepare(place)?;
        let _current = CurrentRequest { abort: pending.abort.clone() };
        match asking::ask(&self.services, &mut pending).await {
            Ok(generated) => {
                let response = ResponseBuilder::new(&self.services, &pending, &generated);
                self.turn(|state, _| state.keep_ahead(&response))
            }
            Err(error) => {
                self.turn(|state, _| state.fail(&pending));
                match error {
                    EngineError::Aborted => Err(SessionError::Superseded),
                    EngineError::OverBudget => Ok(None),
                    error => Err(SessionError::Engine(error)),
                }
            }
        }
    }

    /// Makes an answer the live offer, and records it. The document must be the one that it was
    /// asked about, with the text that was taken.
    pub fn adopt(&self, answer: AheadAnswer) {
        self.turn(|state, turn| state.adopt(turn, answer));
    }
}

impl State {
    fn keep_ahead(
        &mut self,
        response: &ResponseBuilder,
    ) -> Result<Option<AheadAnswer>, SessionError> {
        let (asked, generated) = response.asked();
        if !self.end_request(asked) {
            return Err(SessionError::Superseded);
        }
        let Some(answer) = generated.answers.first().filter(|_| asked.forgets == self.forgets)
        else {
            return Ok(None);
        };
        let was_rejected = |shown: &str| asked.context.was_rejected(&self.offers, shown);
        let (completion, _) = response.completion(answer, was_rejected);
        let offer = asked.context.offer(&completion);
        if offer.text.is_empty() {
            return Ok(None);
        }
        let marks = replaced_suffix(&offer.text, &asked.context.around).to_owned();
        Ok(Some(AheadAnswer { completion, offer, marks, forgets: self.forgets }))
    }

    fn adopt(&mut self, turn: &mut Turn, answer: AheadAnswer) {
        let AheadAnswer { mut completion, offer, marks, forgets } = answer;
        if forgets < self.forgets {
            return;
        }
        let id = offer.id.clone();
        completion.typed = self.offers.take_typed(&offer.uri);
        turn.events.push(EventKind::Completion(Box::new(completion)));
        let served = Served { offers: vec![offer], continues: false, is_complete: false };
        turn.log(self.offers.serve(served, &self.documents, turn.now_ms));
        self.offers.told(&id, &marks, "");
    }
}
