//! The arms of a trial, and how one is drawn for a request.

use feedback::event::{AdapterVersion, ArmRecord};
use serde::{Deserialize, Serialize};

/// Share of the requests that the base answers if it is neither candidate nor incumbent.
const BASE_SHARE: f64 = 0.1;

/// Share of the other requests that the candidate answers. The user gets what was learned at once,
/// and the rest serves the comparison.
pub(super) const CANDIDATE_SHARE: f64 = 0.8;

/// The lowest share of the requests that the incumbent answers.
pub(super) const SHARE_MIN: f64 = (1.0 - BASE_SHARE) * (1.0 - CANDIDATE_SHARE);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arms {
    pub candidate: AdapterVersion,
    pub incumbent: AdapterVersion,
    /// The log position at which the trial begins. It is also its name.
    pub since: u64,
}

impl Arms {
    /// The shares of the requests that candidate and incumbent answer. The base answers the rest.
    pub(super) fn shares(&self) -> (f64, f64) {
        let base = if self.incumbent == 0 { 0.0 } else { BASE_SHARE };
        let candidate = (1.0 - base) * CANDIDATE_SHARE;
        (candidate, 1.0 - base - candidate)
    }

    /// Draws the arm that answers. `draw` is uniform in [0, 1).
    pub fn draw(&self, draw: f64) -> (AdapterVersion, ArmRecord) {
        let (candidate, incumbent) = self.shares();
        let (version, propensity) = match draw {
            draw if draw < candidate => (self.candidate, candidate),
            draw if draw < candidate + incumbent => (self.incumbent, incumbent),
            _ => (0, 1.0 - candidate - incumbent),
        };
        (version, ArmRecord { trial: self.since, propensity: propensity as f32 })
    }
}
