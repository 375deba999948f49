//! Clients of the HTTP API. Each text that a client works in has a session of its own, as an
//! editor's window has one, so that clients neither cancel each other's requests nor share offers.

mod language;
mod text;

use crate::app::App;
use api::{Answer, Backend, Model, Offered, Request, Unavailable};
use feedback::event::OfferId;
use parking_lot::Mutex;
use session::SessionError;
use session::request::Trigger;
use std::sync::Arc;
use text::{Given, Insertable, Place, Text};

/// The texts that are followed at a time. The one that was used longest ago gives way.
const TEXTS_MAX: usize = 64;

/// The time in ms without a request after which a text is not followed any more. By then, the last
/// look at what is left of an accepted offer is over.
const UNUSED_MAX_MS: u64 = 15 * 60 * 1000;

pub struct HttpClients {
    app: Arc<App>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The one that was used last is the last.
    texts: Vec<Text>,
    /// The number of texts so far.
    count: u64,
}

impl HttpClients {
    pub fn new(app: Arc<App>) -> HttpClients {
        HttpClients { app, state: Mutex::default() }
    }

    /// Takes a request in: finds the text that it is about, and brings its document up to date.
    /// There is no await before it, so requests are seen in their order.
    fn arrive(&self, request: &Request) -> Option<Place> {
        let now_ms = self.app.services.clock.elapsed_ms();
        let mut state = self.state.lock();
        let State { texts, count } = &mut *state;
        texts.retain(|text| now_ms.saturating_sub(text.used_ms) < UNUSED_MAX_MS);
        let is_own = |text: &Text| text.client == request.client.name;
        if request.is_warming && request.around == api::Around::default() {
            let own = texts.iter_mut().filter(|text| is_own(text));
            own.for_each(|text| text.note_files(&request.files));
            return None;
        }
        let found = texts.iter().rposition(|text| is_own(text) && text.continues(request, now_ms));
        let latest = texts.iter().rposition(is_own);
        if let Some(latest) = latest.filter(|latest| Some(*latest) != found) {
            texts[latest].leave();
        }
        let mut text = match found {
            Some(index) => texts.remove(index),
            None => {
                *count += 1;
                Text::new(self.app.session(), request, *count)
            }
        };
        text.note_files(&request.files);
        let place = text.arrive(request, now_ms);
        texts.push(text);
        if texts.len() > TEXTS_MAX {
            texts.remove(0);
        }
        Some(place)
    }

    /// Finds the text of a request that is answered now, unless a newer request came meanwhile.
    fn with_text<T>(&self, place: &Place, then: impl FnOnce(&mut Text) -> T) -> Option<T> {
        let mut state = self.state.lock();
        let is_it = |text: &&mut Text| text.is_current(place);
        state.texts.iter_mut().find(is_it).map(then)
    }

    async fn ask(&self, place: &Place, request: &Request) -> Result<Answer, SessionError> {
        let services = &self.app.services;
        let cut =
            |text: &str| request.limits.cut(text, |text| services.engine.tokenize(text).len());
        let given = |answer: &Answer, is_whole, id: &OfferId| {
            let (around, text) = (request.around.clone(), answer.text.clone());
            let (asked_ms, at_ms) = (place.asked_ms, services.clock.elapsed_ms());
            Given::of(Offered { around, text, asked_ms, at_ms }, answer, is_whole, id)
        };
        let Place { session, uri, position, known, taken, .. } = place;
        if let Some(known) = known {
            return Ok(cut(known));
        }
        if let Some(taken) = taken {
            let Some(ahead) = session.complete_as_if(uri, *position, taken).await? else {
                return Ok(Answer::default());
            };
            let Insertable { text, is_whole } = Insertable::of(ahead.text(), ahead.marks());
            let answer = cut(text);
            let given = given(&answer, is_whole, ahead.id());
            self.with_text(place, |text| text.answered_ahead(given, ahead));
            return Ok(answer);
        }
        let completed = session.complete(uri, *position, Trigger::Automatic, None).await?;
        let Some(offer) = completed.suggestions.first() else {
            self.with_text(place, Text::answered_nothing);
            return Ok(Answer::default());
        };
        let marks = place.behind(offer.replaces as usize);
        let Insertable { text, is_whole } = Insertable::of(&offer.text, &marks);
        let answer = cut(text);
        let given = given(&answer, is_whole, &offer.id);
        self.with_text(place, |text| text.answered(given, &offer.id));
        Ok(answer)
    }
}

impl Backend for HttpClients {
    fn model(&self) -> Model {
        let model = self.app.services.adapters.model();
        Model {
            name: model.name.clone(),
            architecture: model.architecture.clone(),
            sha256: model.sha256.clone(),
            bytes: model.bytes,
            template: model.template,
        }
    }

    async fn complete(&self, request: Request) -> Result<Answer, Unavailable> {
        let Some(place) = self.arrive(&request) else { return Ok(Answer::default()) };
        if request.is_warming {
            // A text that cannot be prepared is answered when it is asked about.
            let _ = place.session.focus(&place.uri, place.position);
            return Ok(Answer::default());
        }
        let answer = self.ask(&place, &request).await;
        let now_ms = self.app.services.clock.elapsed_ms();
        self.with_text(&place, |text| text.is_free(now_ms));
        match answer {
            Ok(answer) => Ok(answer),
            // The client has a newer request by now, and has nothing to show of this one.
            Err(SessionError::Superseded | SessionError::Loading) => Ok(Answer::default()),
            Err(error) => Err(Unavailable(error.to_string())),
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tasks end with their tests")]
mod tests;
