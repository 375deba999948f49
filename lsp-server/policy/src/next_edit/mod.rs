//! The gate for next edits: offers one only where it is likely enough to be right, and learns from
//! each Tab and Escape at once.
//!
//! It is the same regression as the gate for completions ([`crate::regression`]), on other
//! features. It also counts for each rule how its places fared. The edits of a model have weights,
//! features and counts of their own, so that they do not spoil those of the rules, nor the reverse.
//! The state is a fold over the event log.

pub mod features;
mod judge;
pub mod model;
pub mod surroundings;

use features::{FEATURES, FEATURES_VERSION};
use feedback::bounded_map::BoundedMap;
use feedback::event::{Event, EventKind, GateRecord, NextEditKind, NextEditOutcome, OfferId};
use judge::Judge;
use serde::{Deserialize, Serialize};
use surroundings::Surroundings;

/// Rules whose places are counted. The oldest are forgotten first.
const RULES_MAX: usize = 256;

/// Offered edits whose outcome may still come, or change.
const OPEN_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditGate {
    of_rules: Judge<FEATURES>,
    of_model: Judge<{ model::FEATURES }>,
    rules: BoundedMap<u64, Fared>,
    open: BoundedMap<OfferId, Open>,
}

/// How the places of a rule fared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fared {
    pub right: u32,
    pub wrong: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Open {
    rule: u64,
    kind: NextEditKind,
    /// None if the user asked for the edit, so that the gate did not decide.
    gate: Option<GateRecord>,
    was_right: Option<bool>,
}

impl Default for EditGate {
    fn default() -> EditGate {
        EditGate {
            of_rules: Judge::with_prior(&features::PRIOR),
            of_model: Judge::with_prior(&model::PRIOR),
            rules: BoundedMap::new(RULES_MAX),
            open: BoundedMap::new(OPEN_MAX),
        }
    }
}

impl EditGate {
    /// Judges an edit before the draw. `threshold` is the P(right) from which on it is worth
    /// showing, in (0, 1).
    pub fn judge(&self, seen: &Surroundings, threshold: f64) -> GateRecord {
        if let Some(by_model) = &seen.by_model {
            let features = model::features(seen, by_model, self.of_model.recent());
            return self.of_model.judge(&features, model::FEATURES_VERSION, threshold);
        }
        let fared = self.rules.get(&seen.rule).copied().unwrap_or_default();
        let features = features::features(seen, fared, self.of_rules.recent());
        self.of_rules.judge(&features, FEATURES_VERSION, threshold)
    }

    /// The names of the features that speak most against an edit, by the weights of now.
    pub fn weighed_against(&self, kind: NextEditKind, record: &GateRecord) -> Vec<&'static str> {
        let names = if kind == NextEditKind::Model {
            let features = model::recorded(record);
            features.map(|features| self.of_model.weighed_against(&features, &model::NAMES))
        } else {
            let features = features::recorded(record);
            features.map(|features| self.of_rules.weighed_against(&features, &features::NAMES))
        };
        names.unwrap_or_default()
    }

    /// Folds one event in. Returns whether it concerns next edits.
    pub fn apply(&mut self, event: &Event) -> bool {
        match &event.kind {
            EventKind::NextEdit(edit) => {
                let gate = edit.gate.clone().filter(|_| !edit.invoked);
                // A model's edit that was judged by other features says nothing about today's gate.
                let is_known = |gate: &GateRecord| {
                    edit.kind != NextEditKind::Model || model::recorded(gate).is_some()
                };
                if gate.as_ref().is_none_or(is_known) {
                    let open = Open { rule: edit.rule, kind: edit.kind, gate, was_right: None };
                    self.open.insert(edit.id.clone(), open);
                }
                true
            }
            EventKind::NextEditOutcome { id, outcome, .. } => {
                self.learn(id, *outcome);
                true
            }
            _ => false,
        }
    }

    /// The number of verdicts that were learned from.
    pub fn labels(&self) -> u64 {
        self.of_rules.labels() + self.of_model.labels()
    }

    fn learn(&mut self, id: &OfferId, outcome: NextEditOutcome) {
        let (Some(open), Some(is_right)) = (self.open.get_mut(id), outcome.is_right()) else {
            return;
        };
        let before = open.was_right.replace(is_right);
        if before == Some(is_right) {
            return;
        }
        let (rule, gate) = (open.rule, open.gate.as_ref());
        if open.kind == NextEditKind::Model {
            return self.of_model.learn(gate.and_then(model::recorded), is_right);
        }
        self.of_rules.learn(gate.and_then(features::recorded), is_right);
        let mut fared = self.rules.get(&rule).copied().unwrap_or_default();
        match before {
            Some(true) => fared.right = fared.right.saturating_sub(1),
            Some(false) => fared.wrong = fared.wrong.saturating_sub(1),
            None => {}
        }
        let count = if is_right { &mut fared.right } else { &mut fared.wrong };
        *count = count.saturating_add(1);
        self.rules.insert(rule, fared);
    }
}

#[cfg(test)]
mod tests;
