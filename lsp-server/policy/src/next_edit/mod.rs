//! The gate for next edits: offers one only where it is likely enough to be right, and learns from
//! each Tab and Escape at once.
//!
//! It is the same regression as the gate for completions ([`crate::regression`]), on other
//! features. It also counts for each rule how its places fared. The state is a fold over the event
//! log.

pub mod features;

use crate::regression::{self, Weights};
use features::{FEATURES, FEATURES_VERSION, Features, PRIOR, Surroundings};
use feedback::bounded_map::BoundedMap;
use feedback::event::{Event, EventKind, GateRecord, NextEditOutcome, OfferId};
use serde::{Deserialize, Serialize};

/// An edit that looks wrong is still offered this often: without that, a wrong gate would never
/// notice.
const EXPLORATION: f64 = 0.02;

/// Weight of the newest verdict in the running share of right places.
const RECENT: f64 = 0.1;

/// The running share before the first verdict.
const SHARE_AT_FIRST: f64 = 0.5;

/// Rules whose places are counted. The oldest are forgotten first.
const RULES_MAX: usize = 256;

/// The features that a person is told of.
const REASONS: usize = 2;

/// Offered edits whose outcome may still come, or change.
const OPEN_MAX: usize = 64;

type Vector = [f64; FEATURES];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditGate {
    mean: Vector,
    covariance: [Vector; FEATURES],
    recent_share: f64,
    wrong_in_a_row: u32,
    labels: u64,
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
    features: Option<Features>,
    was_right: Option<bool>,
}

impl Default for EditGate {
    fn default() -> EditGate {
        EditGate::with_prior(&PRIOR)
    }
}

impl EditGate {
    /// A gate whose weights start at these means, and are expected to move by these deviations.
    pub fn with_prior(prior: &[(f64, f64); FEATURES]) -> EditGate {
        EditGate {
            mean: prior.map(|weight| weight.0),
            covariance: regression::independent(&prior.map(|weight| weight.1)),
            recent_share: SHARE_AT_FIRST,
            wrong_in_a_row: 0,
            labels: 0,
            rules: BoundedMap::new(RULES_MAX),
            open: BoundedMap::new(OPEN_MAX),
        }
    }

    /// Judges an edit before the draw. `threshold` is the P(right) from which on it is worth
    /// showing, in (0, 1).
    pub fn judge(&self, seen: &Surroundings, threshold: f64) -> GateRecord {
        let fared = self.rules.get(&seen.rule).copied().unwrap_or_default();
        let features = features::features(seen, fared, (self.recent_share, self.wrong_in_a_row));
        self.judge_features(&features, threshold)
    }

    /// Judges an edit by its features.
    pub fn judge_features(&self, features: &Features, threshold: f64) -> GateRecord {
        let score = regression::score(&self.mean, &self.covariance, features);
        let worth_it = regression::is_above(score, threshold);
        GateRecord {
            features_version: FEATURES_VERSION,
            features: features.iter().map(|&value| value as f32).collect(),
            probability: regression::probability(score) as f32,
            propensity: (2.0 * worth_it).clamp(EXPLORATION, 1.0) as f32,
            held_back: None,
        }
    }

    /// The names of the features that speak most against an edit, by the weights of now.
    pub fn weighed_against(&self, record: &GateRecord) -> Vec<&'static str> {
        features::recorded(record).map_or_else(Vec::new, |features| {
            regression::weighed_against(&self.mean, &features, &features::NAMES, REASONS)
        })
    }

    /// Folds one event in; answers whether it concerns next edits.
    pub fn apply(&mut self, event: &Event) -> bool {
        match &event.kind {
            EventKind::NextEdit(edit) => {
                let gate = edit.gate.as_ref().filter(|_| !edit.invoked);
                let features = gate.and_then(features::recorded);
                let open = Open { rule: edit.rule, features, was_right: None };
                self.open.insert(edit.id.clone(), open);
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
        self.labels
    }

    /// The means of the weights.
    pub fn weights(&self) -> &Features {
        &self.mean
    }

    fn learn(&mut self, id: &OfferId, outcome: NextEditOutcome) {
        let (Some(open), Some(is_right)) = (self.open.get_mut(id), outcome.is_right()) else {
            return;
        };
        let before = open.was_right.replace(is_right);
        if before == Some(is_right) {
            return;
        }
        let (rule, features) = (open.rule, open.features);
        let mut fared = self.rules.get(&rule).copied().unwrap_or_default();
        match before {
            Some(true) => fared.right = fared.right.saturating_sub(1),
            Some(false) => fared.wrong = fared.wrong.saturating_sub(1),
            None => {}
        }
        let label = f64::from(u8::from(is_right));
        if is_right {
            fared.right = fared.right.saturating_add(1);
            self.wrong_in_a_row = 0;
        } else {
            fared.wrong = fared.wrong.saturating_add(1);
            self.wrong_in_a_row = self.wrong_in_a_row.saturating_add(1);
        }
        self.rules.insert(rule, fared);
        self.recent_share += RECENT * (label - self.recent_share);
        if let Some(features) = features {
            self.labels += 1;
            Weights { mean: &mut self.mean, covariance: &mut self.covariance }
                .learn(&features, label, 1.0);
        }
    }
}

#[cfg(test)]
mod tests;
