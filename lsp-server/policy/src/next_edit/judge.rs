//! Weights that judge an edit by its features, and how the edits fared that they judged.

use crate::regression::{self, Weights};
use feedback::event::GateRecord;
use serde::{Deserialize, Serialize};

/// An edit that looks wrong is still offered this often: without that, a wrong gate would never
/// notice.
const EXPLORATION: f64 = 0.02;

/// Weight of the newest verdict in the running share of right places.
const RECENT: f64 = 0.1;

/// The running share before the first verdict.
const SHARE_AT_FIRST: f64 = 0.5;

/// The features that a person is told of.
const REASONS: usize = 2;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound(
    serialize = "[f64; N]: Serialize, [[f64; N]; N]: Serialize",
    deserialize = "[f64; N]: Deserialize<'de>, [[f64; N]; N]: Deserialize<'de>"
))]
pub struct Judge<const N: usize> {
    mean: [f64; N],
    covariance: [[f64; N]; N],
    recent_share: f64,
    wrong_in_a_row: u32,
    labels: u64,
}

impl<const N: usize> Judge<N> {
    /// Weights that start at these means, and are expected to move by these deviations.
    pub fn with_prior(prior: &[(f64, f64); N]) -> Judge<N> {
        Judge {
            mean: prior.map(|weight| weight.0),
            covariance: regression::independent(&prior.map(|weight| weight.1)),
            recent_share: SHARE_AT_FIRST,
            wrong_in_a_row: 0,
            labels: 0,
        }
    }

    /// The running share of right edits, and the wrong ones since the last right one.
    pub fn recent(&self) -> (f64, u32) {
        (self.recent_share, self.wrong_in_a_row)
    }

    /// Judges an edit by its features, of this version of their list.
    pub fn judge(&self, features: &[f64; N], version: u32, threshold: f64) -> GateRecord {
        let score = regression::score(&self.mean, &self.covariance, features);
        let worth_it = regression::is_above(score, threshold);
        GateRecord {
            features_version: version,
            features: features.iter().map(|&value| value as f32).collect(),
            probability: regression::probability(score) as f32,
            propensity: (2.0 * worth_it).clamp(EXPLORATION, 1.0) as f32,
            held_back: None,
        }
    }

    /// The names of the features that speak most against an edit.
    pub fn weighed_against(
        &self,
        features: &[f64; N],
        names: &[&'static str; N],
    ) -> Vec<&'static str> {
        regression::weighed_against(&self.mean, features, names, REASONS)
    }

    /// Counts a verdict, and learns from it if the features of the edit are known.
    pub fn learn(&mut self, features: Option<[f64; N]>, is_right: bool) {
        let label = f64::from(u8::from(is_right));
        self.wrong_in_a_row = if is_right { 0 } else { self.wrong_in_a_row.saturating_add(1) };
        self.recent_share += RECENT * (label - self.recent_share);
        if let Some(features) = features {
            self.labels += 1;
            Weights { mean: &mut self.mean, covariance: &mut self.covariance }
                .learn(&features, label, 1.0);
        }
    }

    /// The number of verdicts that were learned from.
    pub fn labels(&self) -> u64 {
        self.labels
    }
}
