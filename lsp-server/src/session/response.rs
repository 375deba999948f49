//! The engine's answer to a request: which part of it is shown, why, and what is recorded of it.

use super::{Session, SessionError, Suggestion, suggestion};
use crate::privacy::{self, Nearby};
use crate::services::Services;
use crate::session::gate::ask_gate;
use crate::session::request::{ALTERNATIVES, PendingRequest, Trigger};
use crate::session::suppressed::Suppressed;
use crate::session::tracker::Offer;
use completion::defects::{find_defect, without_special_tokens};
use completion::postprocess::shown_lines;
use engine::{Answer, Generated};
use feedback::event::{Completion, Decision, EventKind, OfferId, Sampling, Timing};
use std::sync::Arc;
use std::time::Duration;

pub struct ResponseBuilder<'a> {
    services: &'a Services,
    asked: &'a PendingRequest,
    generated: &'a Generated,
    /// Whether the record of these answers, prompt and all, may be stored.
    may_store: bool,
}

impl<'a> ResponseBuilder<'a> {
    /// Searches everything that would be stored for secrets, so it is not called under a lock.
    pub fn new(
        services: &'a Services,
        asked: &'a PendingRequest,
        generated: &'a Generated,
    ) -> ResponseBuilder<'a> {
        let may_store = may_store(services, asked, generated);
        ResponseBuilder { services, asked, generated, may_store }
    }

    /// The record of one answer, and which part of it may be shown.
    pub fn completion(&self, answer: &Answer) -> Completion {
        let ResponseBuilder { asked, generated, .. } = self;
        let (place, request) = (&asked.context, &asked.request);
        let healing = request.prompt.healing.clone();
        let offered = answer.offered();
        let length = shown_lines(offered, healing.len(), &request.stop_rule, &place.around);
        let shown_from = healing.len().min(offered.len());
        let shown = String::from_utf8_lossy(&offered[shown_from..shown_from + length]);
        let shown = without_special_tokens(&shown);
        let decision = self.decide(shown, answer);
        let ms = |time: Duration| time.as_secs_f32() * 1000.0;
        let id = self.services.recorder.next_offer_id();
        let quoted = request.prompt.context.iter().flat_map(|context| context.shown());
        let mut context: Vec<String> = vec![];
        for excerpt in quoted.filter(|excerpt| excerpt.source != place.path) {
            if !context.contains(&excerpt.source) {
                context.push(excerpt.source.clone());
            }
        }
        Completion {
            id: if self.may_store { id } else { privacy::unstored(id) },
            path: place.path.clone(),
            context,
            language: place.language.clone(),
            model_sha256: self.services.adapters.model().sha256.clone(),
            adapter: request.adapter,
            sampling: request.sampling,
            prompt: generated.prompt.clone(),
            adapter_from: generated.adapter_from,
            healing,
            tokens: answer.tokens.clone(),
            stop: answer.stop,
            shown: if held_back(&decision) { String::new() } else { shown.to_owned() },
            shown_from,
            timing: Timing {
                prompt_reused: generated.prompt_reused,
                prompt_evaluated: generated.prompt_evaluated,
                prompt_ms: ms(generated.prompt_time),
                decode_ms: ms(answer.decode_time),
                total_ms: ms(asked.arrived.elapsed()),
            },
            decision,
        }
    }

    /// An answer that was not worth showing, if the engine would give the same again.
    pub fn suppressed(&self, answer: &Answer, completion: &Completion) -> Option<Suppressed> {
        let (place, request) = (&self.asked.context, &self.asked.request);
        let is_line = request.stop_rule.lines() == 1;
        let is_greedy = request.sampling == Sampling::GREEDY;
        let unwanted = held_back(&completion.decision) || answer.given_up.is_some();
        let healing = completion.healing.len();
        (unwanted && is_line && is_greedy)
            .then(|| Suppressed::of(answer, healing, completion.adapter, &place.uri, place.cursor))
    }

    /// Whether an answer may be shown, and why.
    fn decide(&self, text: &str, answer: &Answer) -> Decision {
        let asked = self.asked;
        let invoked = asked.trigger == Trigger::Invoked;
        let healing = asked.request.prompt.healing.len();
        let generated = answer.offered().get(healing..).unwrap_or_default();
        let defect = find_defect(generated, text);
        let gate = (!text.is_empty()).then(|| {
            let new = &answer.visible_logprobs[answer.healed..];
            let seen = |recent| asked.context.surroundings(text, new, answer.stop, recent);
            let mut record = ask_gate(self.services, seen);
            if invoked {
                record.propensity = 1.0;
            }
            let held_back = asked.draw >= f64::from(record.propensity);
            record.held_back = held_back.then(|| text.to_owned());
            record
        });
        Decision { invoked, gate, arm: asked.arm, defect }
    }
}

impl Session {
    /// Records what the engine did and makes offers of it, if the user is still there.
    pub(super) fn finish(
        &self,
        asked: PendingRequest,
        generated: Generated,
    ) -> Result<Vec<Suggestion>, SessionError> {
        let answered = ResponseBuilder::new(&self.services, &asked, &generated);
        let place = &asked.context;
        let mut state = self.state.lock();
        // An edit or a newer request has taken this one's place.
        let current = state.current.take_if(|current| Arc::ptr_eq(&current.abort, &asked.abort));
        if current.is_none() {
            return Err(SessionError::Superseded);
        }
        // Its prompt may quote what was forgotten meanwhile. The user did nothing that supersedes
        // the request, so this is not an error.
        if asked.forgets < state.forgets {
            return Ok(vec![]);
        }
        // What is on screen comes first, and is not offered twice.
        let live = state.tracker.continuation(&place.uri, place.cursor);
        let live = live.filter(|_| asked.trigger == Trigger::Invoked);
        let goes_on = live.is_some();
        let position = place.position;
        let now_ms = self.services.clock.elapsed_ms();
        let mut texts: Vec<(OfferId, String)> = live.into_iter().collect();
        let (mut events, mut offers) = (vec![], vec![]);
        for (index, answer) in generated.answers.iter().enumerate() {
            let completion = answered.completion(answer);
            if index == 0 {
                state.suppressed = answered.suppressed(answer, &completion);
            }
            let (id, text) = (completion.id.clone(), completion.shown.clone());
            let healing = completion.healing.clone();
            let is_known = texts.iter().any(|(_, known)| *known == text);
            if is_known || texts.len() > ALTERNATIVES || (index > 0 && text.is_empty()) {
                continue;
            }
            events.push(EventKind::Completion(Box::new(completion)));
            let (uri, start) = (place.uri.clone(), place.cursor);
            if !text.is_empty() {
                offers.push(Offer { id: id.clone(), uri, start, text: text.clone(), healing });
                texts.push((id, text));
            } else if !state.survival.awaits(&uri, start) {
                state.survival.not_taken(id, uri, start, "", healing, now_ms);
            }
        }
        if goes_on {
            state.tracker.complete(offers, now_ms);
        } else {
            let is_complete = asked.trigger == Trigger::Invoked;
            events.extend(state.tracker.serve(offers, is_complete, now_ms));
        }
        let tracker = &mut state.tracker;
        let suggestions =
            texts.into_iter().map(|one| suggestion(tracker, one, position, &place.around));
        let suggestions = suggestions.collect();
        self.conclude(&mut state, events, None, now_ms);
        Ok(suggestions)
    }
}

fn held_back(decision: &Decision) -> bool {
    decision.gate.as_ref().is_some_and(|gate| gate.held_back.is_some())
}

fn may_store(services: &Services, asked: &PendingRequest, generated: &Generated) -> bool {
    let (place, config) = (&asked.context, services.settings.current());
    if services.privacy.ignores(&place.path, &place.language, &config.not_stored) {
        return false;
    }
    let around = Nearby::of(&place.text, place.cursor, asked.window);
    let healing = asked.request.prompt.healing.len();
    // All that was generated counts, shown or not, because its tokens are stored.
    !generated.answers.iter().any(|answer| {
        let new = answer.text.get(healing..).unwrap_or_default();
        around.holds_secret_with(&String::from_utf8_lossy(new))
    })
}
