//! The rewards of one arm, and the mean that another arm has to reach.

use serde::{Deserialize, Serialize};

/// Standard errors by which the rate to reach lies below the incumbent's mean; this is its lower
/// quartile.
const CAUTION: f64 = 0.6745;

/// The rewards of one arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Rewards {
    pub offers: u64,
    pub sum: f64,
}

impl Rewards {
    pub fn note(&mut self, reward: f64) {
        self.offers += 1;
        self.sum += reward;
    }

    pub fn mean(&self) -> Option<f64> {
        (self.offers > 0).then(|| self.sum / self.offers as f64)
    }

    /// The mean that another arm must reach to count as not below this one, with [`CAUTION`].
    pub(super) fn low(&self) -> f64 {
        let count = self.offers.max(1) as f64;
        let mean = (self.sum + 1.0) / (count + 4.0);
        (mean - CAUTION * (mean * (1.0 - mean) / count).sqrt()).max(0.0)
    }

    /// The same mean as if it were known from at most this many offers.
    pub(super) fn at_most(self, offers: f64) -> Rewards {
        let share = (offers / self.offers.max(1) as f64).min(1.0);
        Rewards { offers: (self.offers as f64 * share) as u64, sum: self.sum * share }
    }
}
