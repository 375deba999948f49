//! The engine's answer to a request: which part of it is shown, why, and what is recorded of it.

use super::{Completed, SessionError, State, Turn};
use crate::gate::ask_gate;
use crate::request::{ALTERNATIVES, PendingRequest, Trigger, suggestion};
use completion::defects::find_defect;
use completion::postprocess::is_unfinished;
use completion::shown::{AnswerText, Shown, shown};
use engine::{Answer, Generated};
use feedback::event::{
    Completion, Decision, Defect, EventKind, OfferId, Sampling, StopReason, Timing, Typed,
};
use feedback::secrets;
use offers::{HeldBackAnswer, Served, Suppressed};
use privacy::Nearby;
use services::Services;
use services::reason::Reason;
use services::settings::Current;
use settings::prose;
use std::collections::HashSet;
use std::time::Duration;

pub struct ResponseBuilder<'a> {
    services: &'a Services,
    asked: &'a PendingRequest,
    generated: &'a Generated,
    /// True if the record of these answers, prompt and all, may be stored.
    may_store: bool,
    /// True if what was computed of the prompt is kept for the learner.
    hands_over: bool,
}

impl<'a> ResponseBuilder<'a> {
    /// Searches everything that would be stored for secrets, so it is not called under a lock.
    pub fn new(
        services: &'a Services,
        asked: &'a PendingRequest,
        generated: &'a Generated,
    ) -> ResponseBuilder<'a> {
        // What is stored is decided by the settings of this moment, not by those of the request.
        let config = services.settings.current();
        let may_store = may_store(services, asked, generated, &config);
        let hands_over = may_store && config.learning.enabled;
        ResponseBuilder { services, asked, generated, may_store, hands_over }
    }

    /// The request, and what the engine made of it.
    pub fn asked(&self) -> (&'a PendingRequest, &'a Generated) {
        (self.asked, self.generated)
    }

    /// The record of one answer with the part of it that is shown, and why it is shown or not. A
    /// text that was rejected here is not shown as the user types.
    pub fn completion(
        &self,
        answer: &Answer,
        was_rejected: impl Fn(&str) -> bool,
    ) -> (Completion, Reason) {
        let ResponseBuilder { asked, generated, .. } = self;
        let (place, request) = (&asked.context, &asked.request);
        let is_automatic = asked.trigger == Trigger::Automatic;
        let healing = request.prompt.healing.clone();
        let offered = answer.offered();
        let (rule, around) = (&request.stop_rule, &place.around);
        let text = AnswerText {
            text: offered,
            healing: healing.len(),
            stop: answer.stop,
            is_prose: prose::is_prose(&place.language),
        };
        let Shown { text: shown, from: shown_from, is_mark } = shown(&text, rule, around);
        let shown = shown.as_str();
        let is_unwanted = is_automatic && !shown.is_empty() && was_rejected(shown);
        let is_short = self.is_too_short(shown);
        // An unfinished text of which nothing is whole says nothing about the model.
        let is_unfinished = is_unfinished(offered, healing.len(), answer.stop, around);
        let is_whole = !is_short && !is_unwanted;
        let shown = if is_whole { shown } else { "" };
        let may_be_defect = is_whole && !is_unfinished && !is_mark;
        let decision = self.decide(shown, answer, may_be_defect);
        let reason = if is_unwanted {
            Reason::RejectedHere
        } else if is_short {
            Reason::TooShort
        } else if shown.is_empty() || held_back(&decision) {
            self.reason(answer, &decision)
        } else {
            Reason::Shown
        };
        let ms = |time: Duration| time.as_secs_f32() * 1000.0;
        let id = self.services.recorder.next_offer_id();
        let quoted = request.prompt.context.iter().flat_map(|context| context.shown());
        let quoted = quoted.map(|excerpt| &excerpt.source.path);
        let mut context: Vec<String> = vec![];
        for source in quoted {
            if *source != place.path && !context.contains(source) {
                context.push(source.clone());
            }
        }
        let completion = Completion {
            id: if self.may_store { id } else { privacy::unstored(id) },
            path: place.path.clone(),
            context,
            // They are added when it is recorded.
            real_names: vec![],
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
            typed: Typed::default(),
            experts: answer.experts.clone(),
        };
        (completion, reason)
    }

    /// Keeps what was computed of the prompt for the learner, if the answer may be learned from.
    fn hand_over(&self, completion: &Completion) {
        if let Some(handed) = self.services.handed_prompts.as_ref().filter(|_| self.hands_over) {
            handed.keep(&self.services.engine, completion.base_prompt());
        }
    }

    /// Returns whether a text is shorter than the user's eagerness asks for.
    fn is_too_short(&self, shown: &str) -> bool {
        let asked = self.asked;
        let least = asked.settings.completion.eagerness_in(&asked.context.language).least_chars();
        let is_automatic = asked.trigger == Trigger::Automatic;
        is_automatic && !shown.is_empty() && shown.trim().chars().count() < least
    }

    /// An answer that was not worth showing, if the engine would give the same again.
    pub fn suppressed(&self, answer: &Answer, completion: &Completion) -> Option<Suppressed> {
        let (place, request) = (&self.asked.context, &self.asked.request);
        let is_line = request.stop_rule.lines() == 1;
        let is_greedy = request.sampling == Sampling::GREEDY;
        let unwanted = held_back(&completion.decision) || answer.given_up.is_some();
        let is_hidden = unwanted && completion.shown.is_empty() && place.entry.is_none();
        let (healing, adapter) = (completion.healing.len(), completion.adapter);
        let held_back = HeldBackAnswer {
            text: &answer.text,
            ends: &answer.ends,
            logprobs: &answer.visible_logprobs,
            healed: answer.healed,
            healing,
            stop: answer.stop,
        };
        (is_hidden && is_line && is_greedy)
            .then(|| Suppressed::of(held_back, adapter, &place.uri, place.cursor))
    }

    /// Returns why nothing of an answer is shown.
    fn reason(&self, answer: &Answer, decision: &Decision) -> Reason {
        let config = &self.asked.settings;
        if let Some(gate) = decision.gate.as_ref().filter(|_| held_back(decision)) {
            let weighed = self.services.recorder.gate().weighed_against(gate);
            return Reason::HeldBack {
                probability: gate.probability,
                threshold: config.gate_threshold(&self.asked.context.language) as f32,
                weighed: weighed.into_iter().map(str::to_owned).collect(),
            };
        }
        match (answer.stop, decision.defect) {
            (StopReason::LowConfidence, _) => Reason::TooUnlikely {
                min_token_probability: self.asked.request.min_token_probability,
            },
            (StopReason::HealingFailed, _) => Reason::CannotContinue,
            (StopReason::Budget, None) => Reason::TooSlow { budget_ms: config.lab.budget_ms },
            (StopReason::MaxTokens, None) => Reason::CutOff { max_tokens: config.lab.max_tokens },
            (_, Some(Defect::WhitespaceOnly)) => Reason::OnlyBlanks,
            (_, Some(_)) => Reason::RepeatsText,
            (_, None) => Reason::NothingToAdd,
        }
    }

    /// Returns whether an answer may be shown, and why.
    fn decide(&self, text: &str, answer: &Answer, may_be_defect: bool) -> Decision {
        let asked = self.asked;
        let invoked = asked.trigger == Trigger::Invoked;
        let healing = asked.request.prompt.healing.len();
        let generated = answer.offered().get(healing..).unwrap_or_default();
        let defect = find_defect(generated, text).filter(|_| may_be_defect);
        let gate = (!text.is_empty()).then(|| {
            let new = &answer.visible_logprobs[answer.healed..];
            let seen = |recent| asked.context.surroundings(text, new, answer.stop, recent);
            let mut record =
                ask_gate(self.services, &asked.settings, &asked.context.language, seen);
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

impl State {
    /// Notes what the engine did and makes offers of it, if the user is still there.
    pub(super) fn finish(
        &mut self,
        turn: &mut Turn,
        response: &ResponseBuilder,
    ) -> Result<Completed, SessionError> {
        let ResponseBuilder { asked, generated, .. } = response;
        let place = &asked.context;
        self.debounce.answered(asked.took, true);
        if !self.end_request(asked) {
            return Err(SessionError::Superseded);
        }
        // Its prompt may quote what was forgotten meanwhile. The user did nothing that supersedes
        // the request, so this is not an error.
        if asked.forgets < self.forgets {
            return Ok(Completed::nothing(Reason::Forgotten));
        }
        // What is on screen comes first, and is not offered twice.
        let live = self.offers.rest_at(&place.uri, &place.text, place.start());
        let live = live.filter(|(_, text)| {
            asked.trigger == Trigger::Invoked && text.starts_with(place.rest_of_entry())
        });
        let mut continues = live.is_some();
        let mut texts: Vec<(OfferId, String)> = live.into_iter().collect();
        let mut offers = vec![];
        let mut rejected = HashSet::new();
        let mut reason = Reason::NothingToAdd;
        for (index, answer) in generated.answers.iter().enumerate() {
            let was_rejected = |shown: &str| place.was_rejected(&self.offers, shown);
            let (mut completion, why) = response.completion(answer, was_rejected);
            let offer = place.offer(&completion);
            if was_rejected(&completion.shown) {
                rejected.insert(offer.id.clone());
            }
            if index == 0 {
                // What is computed ahead changes what the engine holds, so this comes first.
                response.hand_over(&completion);
                if offer.text.is_empty() {
                    self.follow_line(turn.services, asked, &why);
                } else {
                    self.follow_offer(turn.services, asked, &offer, &completion.decision);
                }
                self.offers.suppress(response.suppressed(answer, &completion));
                self.why_suppressed = why.clone();
                reason = why;
                // An offer that ran out of time is the beginning of what is known by now.
                if texts.iter().any(|(_, known)| is_beginning(known, &offer.text)) {
                    texts.clear();
                    continues = false;
                }
            }
            let is_known = texts.iter().any(|(_, known)| *known == offer.text);
            if is_known || texts.len() > ALTERNATIVES || (index > 0 && offer.text.is_empty()) {
                continue;
            }
            completion.typed = self.offers.take_typed(&place.uri);
            turn.events.push(EventKind::Completion(Box::new(completion)));
            if !offer.text.is_empty() {
                texts.push((offer.id.clone(), offer.text.clone()));
            } else if place.entry.is_some() {
                continue;
            }
            offers.push(offer);
        }
        // Whoever asks by hand where a text was rejected wants another one first.
        texts.sort_by_key(|(id, _)| rejected.contains(id));
        offers.sort_by_key(|offer| rejected.contains(&offer.id));
        let is_complete = asked.trigger == Trigger::Invoked;
        let served = Served { offers, continues, is_complete };
        turn.log(self.offers.serve(served, &self.documents, turn.now_ms));
        let offers = &mut self.offers;
        let suggestions = texts.into_iter().map(|one| suggestion(offers, one, place));
        let suggestions = suggestions.collect();
        Ok(Completed::of(suggestions, Reason::Shown, reason))
    }
}

/// Returns true if the whole text says more than this beginning of it.
fn is_beginning(text: &str, whole: &str) -> bool {
    whole.strip_prefix(text).is_some_and(|rest| !rest.trim().is_empty())
}

fn held_back(decision: &Decision) -> bool {
    decision.gate.as_ref().is_some_and(|gate| gate.held_back.is_some())
}

fn may_store(
    services: &Services,
    asked: &PendingRequest,
    generated: &Generated,
    config: &Current,
) -> bool {
    let place = &asked.context;
    if services.privacy.ignores(&place.path, &place.language, &config.not_stored) {
        return false;
    }
    // What a prompt quotes was searched when it was chosen. This is the last gate before the disk.
    let prompt = &asked.request.prompt;
    let mut quoted = prompt.context.iter().flat_map(|context| context.texts());
    if quoted.any(|text| secrets::holds_secret(&text)) {
        return false;
    }
    let (text, cursor) = &place.read;
    let around = Nearby::of(text, *cursor, asked.window);
    let healing = prompt.healing.len();
    // All that was generated counts, shown or not, because its tokens are stored.
    !generated.answers.iter().any(|answer| {
        let new = answer.text.get(healing..).unwrap_or_default();
        around.holds_secret_with(&String::from_utf8_lossy(new))
    })
}
