//! What the engine said to what was asked: which part of it is shown, on what
//! grounds, and what is recorded of it.

use crate::privacy::{self, Nearby};
use crate::services::Services;
use crate::session::request::{Asked, Trigger};
use crate::session::suppressed::Unshown;
use completion::defects::find_defect;
use completion::postprocess::shown_lines;
use engine::{Answer, Generated};
use feedback::event::{Completion, Decision, GateRecord, Sampling, Timing};
use policy::gate::Recent;
use policy::gate::features::{Surroundings, features};
use std::time::Duration;

pub struct Answered<'a> {
    services: &'a Services,
    asked: &'a Asked,
    generated: &'a Generated,
    /// Whether the record of these answers, prompt and all, may be stored.
    may_store: bool,
}

impl<'a> Answered<'a> {
    /// Searches all that would be stored for secrets: not under a lock.
    pub fn new(services: &'a Services, asked: &'a Asked, generated: &'a Generated) -> Answered<'a> {
        let may_store = may_store(services, asked, generated);
        Answered { services, asked, generated, may_store }
    }

    /// The record of one answer, and which part of it may be shown.
    pub fn completion(&self, answer: &Answer) -> Completion {
        let Answered { asked, generated, .. } = self;
        let (place, request) = (&asked.place, &asked.request);
        let healing = request.prompt.healing.clone();
        let offered = answer.offered();
        let length = shown_lines(offered, healing.len(), &request.stop_rule, &place.around);
        let shown_from = healing.len().min(offered.len());
        let shown = String::from_utf8_lossy(&offered[shown_from..shown_from + length]);
        let decision = self.decide(&shown, answer);
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
            shown: if held_back(&decision) { String::new() } else { shown.into_owned() },
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

    /// What is known of an answer that was not worth showing, if it would be the same
    /// again.
    pub fn unshown(&self, answer: &Answer, completion: &Completion) -> Option<Unshown> {
        let (place, request) = (&self.asked.place, &self.asked.request);
        let is_line = request.stop_rule.lines() == 1;
        let is_greedy = request.sampling == Sampling::GREEDY;
        let unwanted = held_back(&completion.decision) || answer.given_up.is_some();
        let healing = completion.healing.len();
        (unwanted && is_line && is_greedy)
            .then(|| Unshown::of(answer, healing, completion.adapter, &place.uri, place.cursor))
    }

    /// Whether an answer may be shown, and on what grounds.
    fn decide(&self, text: &str, answer: &Answer) -> Decision {
        let asked = self.asked;
        let by_hand = asked.trigger == Trigger::Invoked;
        let healing = asked.request.prompt.healing.len();
        let generated = answer.offered().get(healing..).unwrap_or_default();
        let defect = find_defect(generated, text);
        let gate = (!text.is_empty()).then(|| {
            let new = &answer.visible_logprobs[answer.healed..];
            let seen = |recent| asked.place.surroundings(text, new, answer.stop, recent);
            let mut record = ask_gate(self.services, seen);
            if by_hand {
                record.propensity = 1.0;
            }
            let held_back = asked.draw >= f64::from(record.propensity);
            record.held_back = held_back.then(|| text.to_owned());
            record
        });
        Decision { invoked: by_hand, gate, arm: asked.arm, defect }
    }
}

fn held_back(decision: &Decision) -> bool {
    decision.gate.as_ref().is_some_and(|gate| gate.held_back.is_some())
}

/// What the gate says of an offer among these surroundings.
pub fn ask_gate<'a>(
    services: &Services,
    seen: impl FnOnce(Recent) -> Surroundings<'a>,
) -> GateRecord {
    let (config, gate) = (services.settings.current(), services.recorder.gate());
    let mut record = gate.judge(&features(&seen(gate.recent())), config.gate.threshold);
    if !config.gate.enabled {
        record.propensity = 1.0;
    }
    record
}

fn may_store(services: &Services, asked: &Asked, generated: &Generated) -> bool {
    let (place, config) = (&asked.place, services.settings.current());
    if services.privacy.ignores(&place.path, &place.language, &config.not_stored) {
        return false;
    }
    let around = Nearby::of(&place.text, place.cursor, asked.window);
    let healing = asked.request.prompt.healing.len();
    // All that was generated, shown or not: its tokens are stored.
    !generated.answers.iter().any(|answer| {
        let new = answer.text.get(healing..).unwrap_or_default();
        around.holds_secret_with(&String::from_utf8_lossy(new))
    })
}
