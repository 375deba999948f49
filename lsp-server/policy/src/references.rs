//! What the user wrote where an answer was made, whoever wrote it first: the
//! texts that adapters are compared by. A fold over the log, with bounds.

use feedback::event::{Completion, Event, EventKind, OfferId, Outcome};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Answers whose place is remembered until it is known what was written there.
const OPEN: usize = 256;

/// Of the texts that were typed instead of an answer, one in this many is kept
/// from the updates that imitate them, and held against them.
const HELD_OUT_SHARE: usize = 8;

/// Latest texts of these that are kept.
const HELD_OUT: usize = 24;

/// Where a text stands: the prompt as it was served.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    pub prompt: Vec<u32>,
    pub adapter_from: usize,
    pub healing: String,
    /// What was answered, with the break or the stop that ended it.
    answered: Vec<u32>,
    /// Drawn for a trial.
    trial: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Text {
    pub id: OfferId,
    #[serde(serialize_with = "write_place", deserialize_with = "read_place")]
    pub place: Arc<Place>,
    pub tokens: Vec<u32>,
    /// The trial its answer was drawn for.
    pub trial: Option<u64>,
}

fn write_place<S: Serializer>(place: &Arc<Place>, to: S) -> Result<S::Ok, S::Error> {
    place.as_ref().serialize(to)
}

fn read_place<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Place>, D::Error> {
    Place::deserialize(from).map(Arc::new)
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Texts {
    places: HashMap<OfferId, Place>,
    order: VecDeque<OfferId>,
    /// How many were typed instead of an answer.
    typed: usize,
    held_out: VecDeque<Text>,
}

impl Texts {
    /// An event, and the text that it makes known.
    pub fn apply(&mut self, event: &Event, model_sha256: &str) -> Option<Text> {
        match &event.kind {
            EventKind::Completion(completion) if completion.model_sha256 == model_sha256 => {
                self.open(completion);
                None
            }
            EventKind::Outcome { id, outcome: Outcome::Accepted, .. } => {
                let place = self.places.remove(id)?;
                let answered = place.answered.clone();
                Some(text(id, place, answered))
            }
            EventKind::TypedInstead { id, tokens } => {
                let place = self.places.remove(id)?;
                let text = text(id, place, tokens.clone());
                self.typed += 1;
                if self.typed.is_multiple_of(HELD_OUT_SHARE) {
                    if self.held_out.len() == HELD_OUT {
                        self.held_out.pop_front();
                    }
                    self.held_out.push_back(text.clone());
                }
                Some(text)
            }
            _ => None,
        }
    }

    fn open(&mut self, completion: &Completion) {
        let place = Place {
            prompt: completion.prompt.clone(),
            adapter_from: completion.adapter_from,
            healing: completion.healing.clone(),
            answered: completion.tokens.iter().map(|token| token.id).collect(),
            trial: completion.decision.arm.map(|arm| arm.trial),
        };
        if self.order.len() == OPEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.places.remove(&oldest);
        }
        self.order.push_back(completion.id.clone());
        self.places.insert(completion.id.clone(), place);
    }

    /// Whether updates must not imitate what was typed instead of this answer.
    pub fn is_held_out(&self, id: &OfferId) -> bool {
        self.held_out.iter().any(|text| text.id == *id)
    }

    /// The latest texts that no update has imitated.
    pub fn held_out(&self) -> Vec<Text> {
        self.held_out.iter().cloned().collect()
    }
}

fn text(id: &OfferId, place: Place, tokens: Vec<u32>) -> Text {
    Text { id: id.clone(), trial: place.trial, place: Arc::new(place), tokens }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::event::{Decision, Evidence, Sampling, StopReason, TokenRecord};

    fn completion(id: &str) -> EventKind {
        EventKind::Completion(Box::new(Completion {
            id: id.into(),
            path: String::new(),
            context: vec![],
            language: String::new(),
            model_sha256: "base".into(),
            adapter: 0,
            sampling: Sampling::GREEDY,
            prompt: vec![1, 2],
            adapter_from: 1,
            healing: " x".into(),
            tokens: vec![3, 4, 0].into_iter().map(|id| TokenRecord { id, logprob: 0.0 }).collect(),
            stop: StopReason::StopToken,
            shown: "y".into(),
            shown_from: 2,
            timing: Default::default(),
            decision: Decision::default(),
        }))
    }

    fn apply(texts: &mut Texts, kind: EventKind) -> Option<Vec<u32>> {
        texts.apply(&Event { seq: 0, at_ms: 0, kind }, "base").map(|text| text.tokens)
    }

    #[test]
    fn what_was_taken_and_what_was_typed_instead_are_texts() {
        let mut texts = Texts::default();
        apply(&mut texts, completion("a"));
        apply(&mut texts, completion("b"));
        let (outcome, evidence) = (Outcome::Accepted, Evidence::Command);
        let accepted = EventKind::Outcome { id: "a".into(), outcome, evidence };
        assert_eq!(apply(&mut texts, accepted.clone()), Some(vec![3, 4, 0]));
        assert_eq!(apply(&mut texts, accepted), None, "once");
        assert!(texts.held_out().is_empty(), "updates learn from these");
        let typed = EventKind::TypedInstead { id: "b".into(), tokens: vec![7] };
        assert_eq!(apply(&mut texts, typed), Some(vec![7]));
    }

    #[test]
    fn one_text_in_eight_is_kept_from_updates() {
        let mut texts = Texts::default();
        for i in 0..40 {
            let id = i.to_string();
            apply(&mut texts, completion(&id));
            apply(&mut texts, EventKind::TypedInstead { id, tokens: vec![7] });
        }
        let held = (0..40).filter(|i| texts.is_held_out(&i.to_string())).count();
        assert_eq!((held, texts.held_out().len()), (5, 5));
    }

    #[test]
    fn memory_is_bounded() {
        let mut texts = Texts::default();
        for i in 0..3 * OPEN.max(HELD_OUT * HELD_OUT_SHARE) {
            apply(&mut texts, completion(&i.to_string()));
            let id = i.to_string();
            if i % 2 == 0 {
                apply(&mut texts, EventKind::TypedInstead { id, tokens: vec![7] });
            }
        }
        assert!(texts.places.len() <= OPEN && texts.order.len() <= OPEN);
        assert_eq!(texts.held_out().len(), HELD_OUT);
    }
}
