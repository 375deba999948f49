//! References: the text that the user has in the end where an answer was made, either accepted or
//! typed instead. Adapters are compared by them. They are a bounded fold over the log.

use feedback::event::{Completion, Event, EventKind, OfferId, Outcome};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Answers that wait for their reference.
const OPEN: usize = 256;

/// One in this many of the texts that were typed instead of an answer is held out: updates do not
/// learn it, and adapters are tested on it.
const HELD_OUT_SHARE: usize = 8;

/// Held-out references that are kept: the latest ones.
const HELD_OUT: usize = 24;

/// The prompt of an answer as it was served.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct ServedPrompt {
    pub prompt: Vec<u32>,
    pub adapter_from: usize,
    pub healing: String,
    /// The tokens of the answer, with the break or the stop that ended it.
    answered: Vec<u32>,
    /// The trial that the answer was drawn for.
    trial: Option<u64>,
}

/// A text that the user has in the end, with the prompt of its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    pub id: OfferId,
    #[serde(serialize_with = "write_served", deserialize_with = "read_served")]
    pub served: Arc<ServedPrompt>,
    pub tokens: Vec<u32>,
    /// The trial that the answer was drawn for.
    pub trial: Option<u64>,
}

fn write_served<S: Serializer>(served: &Arc<ServedPrompt>, to: S) -> Result<S::Ok, S::Error> {
    served.as_ref().serialize(to)
}

fn read_served<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<ServedPrompt>, D::Error> {
    ServedPrompt::deserialize(from).map(Arc::new)
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct References {
    open: HashMap<OfferId, ServedPrompt>,
    order: VecDeque<OfferId>,
    /// The number of texts that were typed instead of an answer.
    typed: usize,
    held_out: VecDeque<Reference>,
}

impl References {
    /// Applies an event. Returns the reference that it makes known.
    pub fn apply(&mut self, event: &Event, model_sha256: &str) -> Option<Reference> {
        match &event.kind {
            EventKind::Completion(completion) if completion.model_sha256 == model_sha256 => {
                self.open(completion);
                None
            }
            EventKind::Outcome { id, outcome: Outcome::Accepted, .. } => {
                let served = self.open.remove(id)?;
                let answered = served.answered.clone();
                // A text that was offered before the model had read the prompt has no tokens.
                (!answered.is_empty()).then(|| reference(id, served, answered))
            }
            EventKind::Replacement { id, tokens } => {
                let served = self.open.remove(id)?;
                let reference = reference(id, served, tokens.clone());
                self.typed += 1;
                if self.typed.is_multiple_of(HELD_OUT_SHARE) {
                    if self.held_out.len() == HELD_OUT {
                        self.held_out.pop_front();
                    }
                    self.held_out.push_back(reference.clone());
                }
                Some(reference)
            }
            _ => None,
        }
    }

    fn open(&mut self, completion: &Completion) {
        let served = ServedPrompt {
            prompt: completion.prompt.clone(),
            adapter_from: completion.adapter_from,
            healing: completion.healing.clone(),
            answered: completion.tokens.iter().map(|token| token.id).collect(),
            trial: completion.decision.arm.map(|arm| arm.trial),
        };
        if self.order.len() == OPEN
            && let Some(oldest) = self.order.pop_front()
        {
            self.open.remove(&oldest);
        }
        self.order.push_back(completion.id.clone());
        self.open.insert(completion.id.clone(), served);
    }

    /// Returns whether updates must not learn what was typed instead of this answer.
    pub fn is_held_out(&self, id: &OfferId) -> bool {
        self.held_out.iter().any(|reference| reference.id == *id)
    }

    /// The latest references that no update has learned.
    pub fn held_out(&self) -> Vec<Reference> {
        self.held_out.iter().cloned().collect()
    }
}

fn reference(id: &OfferId, served: ServedPrompt, tokens: Vec<u32>) -> Reference {
    Reference { id: id.clone(), trial: served.trial, served: Arc::new(served), tokens }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::event::{Decision, Evidence, Sampling, StopReason, TokenRecord, Typed};

    fn completion(id: &str) -> EventKind {
        EventKind::Completion(Box::new(Completion {
            id: id.into(),
            path: String::new(),
            context: vec![],
            real_names: vec![],
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
            typed: Typed::default(),
            experts: None,
        }))
    }

    fn apply(references: &mut References, kind: EventKind) -> Option<Vec<u32>> {
        references
            .apply(&Event { seq: 0, at_ms: 0, kind }, "base")
            .map(|reference| reference.tokens)
    }

    #[test]
    fn accepted_answers_and_texts_typed_instead_are_references() {
        let mut references = References::default();
        apply(&mut references, completion("a"));
        apply(&mut references, completion("b"));
        let (outcome, evidence) = (Outcome::Accepted, Evidence::Command);
        let accepted = EventKind::Outcome { id: "a".into(), outcome, evidence };
        assert_eq!(apply(&mut references, accepted.clone()), Some(vec![3, 4, 0]));
        assert_eq!(apply(&mut references, accepted), None, "once");
        assert!(references.held_out().is_empty(), "updates learn from these");
        let typed = EventKind::Replacement { id: "b".into(), tokens: vec![7] };
        assert_eq!(apply(&mut references, typed), Some(vec![7]));
    }

    #[test]
    fn one_typed_reference_in_eight_is_held_out() {
        let mut references = References::default();
        for i in 0..40 {
            let id = i.to_string();
            apply(&mut references, completion(&id));
            apply(&mut references, EventKind::Replacement { id, tokens: vec![7] });
        }
        let held = (0..40).filter(|i| references.is_held_out(&i.to_string())).count();
        assert_eq!((held, references.held_out().len()), (5, 5));
    }

    #[test]
    fn the_references_are_bounded() {
        let mut references = References::default();
        for i in 0..3 * OPEN.max(HELD_OUT * HELD_OUT_SHARE) {
            apply(&mut references, completion(&i.to_string()));
            let id = i.to_string();
            if i % 2 == 0 {
                apply(&mut references, EventKind::Replacement { id, tokens: vec![7] });
            }
        }
        assert!(references.open.len() <= OPEN && references.order.len() <= OPEN);
        assert_eq!(references.held_out().len(), HELD_OUT);
    }
}
