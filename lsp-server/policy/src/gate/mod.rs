//! The gate: shows an offer only where it is likely enough to be accepted, and learns from every
//! verdict at once.
//!
//! It is a Bayesian logistic regression of P(accepted) on [`features`], updated online
//! ([`crate::regression`]; as in Chapelle and Li, *An Empirical Evaluation of Thompson Sampling*,
//! NeurIPS 2011). An offer is worth showing if P(accepted) lies above a threshold, which
//! the user's eagerness sets. If the posterior
//! says that this is at least as likely as not, the offer is shown; below that it is shown twice as
//! often as the posterior says. So the uncertainty of the weights explores, and the probability is
//! recorded next to every decision.
//!
//! The state is a fold over the event log. It starts with the shipped prior, and it forgets the
//! events that are deleted from the log.

pub mod features;
pub mod prior;

use crate::regression::{self, Weights};
use features::{FEATURES, FEATURES_VERSION, Features, recorded};
use feedback::episode::Label;
use feedback::event::GateRecord;
use feedback::reward::VALUE;
use serde::{Deserialize, Serialize};

/// An offer that looks worthless is still shown this often: without that, a wrong gate would never
/// notice.
pub const EXPLORATION: f64 = 0.02;

/// The number of features that explain why an offer was held back.
const REASONS: usize = 2;

/// Weight of the newest verdict in the running acceptance rate.
const RECENT: f64 = 0.1;

type Vector = [f64; FEATURES];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    mean: Vector,
    covariance: [Vector; FEATURES],
    recent: Recent,
    labels: u64,
    calibration: Calibration,
}

/// How the last offers fared. Verdicts on other versions of the features count too.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recent {
    /// The running acceptance rate, in [0, 1].
    pub rate: f64,
    /// Rejects since the last accept.
    pub rejects: u32,
}

/// Predictions compared with verdicts. Each prediction is made before the gate learns from the
/// verdict.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Bins by predicted probability, in tenths.
    pub bins: [Bin; 10],
    /// The sum of squared errors.
    pub squared_error: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    pub labels: u64,
    pub predicted: f64,
    pub accepted: f64,
}

/// What the user sees of the gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateStatus {
    pub labels: u64,
    pub weights: Vec<Weight>,
    pub calibration: Calibration,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    pub feature: String,
    pub mean: f64,
    pub deviation: f64,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::with_prior(&prior::shipped())
    }
}

impl Gate {
    pub fn with_prior(prior: &prior::Prior) -> Gate {
        Gate {
            mean: prior.mean,
            covariance: regression::independent(&prior.deviation),
            recent: Recent { rate: f64::from(VALUE), rejects: 0 },
            labels: 0,
            calibration: Calibration::default(),
        }
    }

    pub fn recent(&self) -> Recent {
        self.recent
    }

    /// P(accepted), moderated by the uncertainty of the weights.
    fn probability(&self, features: &Features) -> f64 {
        regression::probability(self.score(features))
    }

    /// The mean and variance of the score.
    fn score(&self, features: &Features) -> (f64, f64) {
        regression::score(&self.mean, &self.covariance, features)
    }

    /// Judges an offer before the draw. `threshold` is the P(accepted) from which on it is worth
    /// showing, in (0, 1).
    pub fn judge(&self, features: &Features, threshold: f64) -> GateRecord {
        let worth_it = regression::is_above(self.score(features), threshold);
        GateRecord {
            features_version: FEATURES_VERSION,
            features: features.iter().map(|&value| value as f32).collect(),
            probability: self.probability(features) as f32,
            propensity: (2.0 * worth_it).clamp(EXPLORATION, 1.0) as f32,
            held_back: None,
        }
    }

    /// The names of the features that speak most against an offer, by the weights of now.
    pub fn weighed_against(&self, record: &GateRecord) -> Vec<&'static str> {
        let Some(features) = recorded(record) else { return vec![] };
        regression::weighed_against(&self.mean, &features, &features::NAMES, REASONS)
    }

    /// Learns from a verdict on an offer that was shown as the user typed.
    pub fn learn(&mut self, label: &Label) {
        if label.invoked {
            return;
        }
        // What is known of a hurried reject is its weight; it is a reject all the same.
        let is_hurried = label.weight < 1.0;
        let accepted = if is_hurried { 0.0 } else { f64::from(label.reward.clamp(0.0, 1.0)) };
        // Stronger evidence replaces weaker evidence only where they differ. It then counts in
        // addition to the weaker one, which is rare.
        if label.before == Some(label.reward) {
            return;
        }
        if label.before.is_none() {
            self.recent.rate += RECENT * (accepted - self.recent.rate);
            self.recent.rejects = if accepted > 0.0 { 0 } else { self.recent.rejects + 1 };
        }
        if let Some(features) = label.gate.as_ref().and_then(recorded) {
            self.update(&features, accepted, f64::from(label.weight));
        }
    }

    /// Judges an offer again whose features are recorded, as before its verdict.
    pub fn judge_again(&self, label: &Label, threshold: f64) -> Option<GateRecord> {
        let gate = label.gate.as_ref().filter(|_| !label.invoked && label.before.is_none())?;
        recorded(gate).map(|features| self.judge(&features, threshold))
    }

    fn update(&mut self, features: &Features, accepted: f64, weight: f64) {
        self.calibration.note(self.probability(features), accepted);
        self.labels += 1;
        Weights { mean: &mut self.mean, covariance: &mut self.covariance }
            .learn(features, accepted, weight);
    }

    pub fn status(&self) -> GateStatus {
        let weights = (0..FEATURES).map(|i| Weight {
            feature: features::NAMES[i].into(),
            mean: self.mean[i],
            deviation: self.covariance[i][i].sqrt(),
        });
        GateStatus {
            labels: self.labels,
            weights: weights.collect(),
            calibration: self.calibration.clone(),
        }
    }
}

impl Calibration {
    fn note(&mut self, predicted: f64, accepted: f64) {
        let bin = ((predicted * 10.0) as usize).min(9);
        self.bins[bin].labels += 1;
        self.bins[bin].predicted += predicted;
        self.bins[bin].accepted += accepted;
        self.squared_error += (predicted - accepted).powi(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regression::logistic;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// A verdict on an offer with these features.
    fn label(features: Features, reward: f32) -> Label {
        Label {
            at_ms: 0,
            adapter: 0,
            invoked: false,
            gate: Some(GateRecord {
                features_version: FEATURES_VERSION,
                features: features.iter().map(|&value| value as f32).collect(),
                probability: 0.5,
                propensity: 1.0,
                held_back: None,
            }),
            arm: None,
            accepted: reward == 1.0,
            reward,
            weight: 1.0,
            before: None,
            offer_utf16: 10,
        }
    }

    fn flat() -> Gate {
        Gate::with_prior(&prior::Prior { mean: [0.0; FEATURES], deviation: [1.0; FEATURES] })
    }

    fn of(first: f64) -> Features {
        let mut features = [0.0; FEATURES];
        (features[0], features[1]) = (1.0, first);
        features
    }

    /// With P(accepted) = logistic(−1 + 2x), the gate finds these weights, and its probabilities
    /// are calibrated.
    #[test]
    fn the_gate_learns_what_is_accepted_and_is_calibrated() {
        let mut rng = StdRng::seed_from_u64(3);
        let mut gate = flat();
        for _ in 0..4_000 {
            let x = rng.random_range(-2.0..2.0);
            let accepted = rng.random::<f64>() < logistic(-1.0 + 2.0 * x);
            gate.learn(&label(of(x), f32::from(accepted)));
        }
        assert!((gate.mean[0] + 1.0).abs() < 0.15, "{}", gate.mean[0]);
        assert!((gate.mean[1] - 2.0).abs() < 0.25, "{}", gate.mean[1]);
        for bin in gate.calibration.bins.iter().filter(|bin| bin.labels > 100) {
            let error = (bin.predicted - bin.accepted) / bin.labels as f64;
            assert!(error.abs() < 0.08, "{bin:?}");
        }
        assert!(gate.judge(&of(1.5), 0.25).propensity > 0.99);
        assert_eq!(gate.judge(&of(-1.5), 0.25).propensity, EXPLORATION as f32);
    }

    #[test]
    fn uncertain_offers_are_shown_more_often() {
        let mut gate = flat();
        let first = gate.judge(&of(1.0), 0.25).propensity;
        assert_eq!(first, 1.0, "as likely as not");
        for _ in 0..20 {
            gate.learn(&label(of(1.0), 0.0));
        }
        let (after, other) =
            (gate.judge(&of(1.0), 0.25).propensity, gate.judge(&of(-1.0), 0.25).propensity);
        assert!(after < 0.1 && other > after, "{after} {other}");
    }

    #[test]
    fn invoked_offers_and_other_features_are_not_learned_from() {
        let mut gate = flat();
        let invoked = Label { invoked: true, ..label(of(1.0), 1.0) };
        gate.learn(&invoked);
        let mut older = label(of(1.0), 1.0);
        older.gate.as_mut().unwrap().features_version = FEATURES_VERSION + 1;
        gate.learn(&older);
        assert_eq!(gate.labels, 0);
        assert_eq!(gate.recent().rejects, 0);
    }

    #[test]
    fn a_hurried_reject_moves_the_gate_less() {
        let judged = |weight: f32| {
            let mut gate = flat();
            gate.learn(&Label { weight, ..label(of(1.0), 0.0) });
            assert_eq!(gate.recent().rejects, 1);
            gate.judge(&of(1.0), 0.25).probability
        };
        let moved = |weight| flat().judge(&of(1.0), 0.25).probability - judged(weight);
        assert!(moved(0.14) > 0.0 && moved(0.14) < 0.3 * moved(1.0));
    }

    #[test]
    fn a_hundred_thousand_labels_keep_the_gate_finite() {
        let mut rng = StdRng::seed_from_u64(5);
        let mut gate = Gate::default();
        for _ in 0..100_000 {
            let features = std::array::from_fn(|_| rng.random_range(-3.0..3.0));
            gate.learn(&label(features, f32::from(rng.random::<bool>())));
        }
        let record = gate.judge(&of(1.0), 0.25);
        assert!(record.probability.is_finite() && record.propensity.is_finite());
        assert!((0..FEATURES).all(|i| gate.covariance[i][i] > 0.0));
    }
}
