//! The prior: the weights the gate starts with on its first day. They were learned from offers in
//! rehearsals of other people's projects, with room to change. A rehearsal of the user's own
//! projects can replace them: `hone rehearse --adopt` leaves its prior beside the adapters.

use super::features::FEATURES;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    pub mean: [f64; FEATURES],
    pub deviation: [f64; FEATURES],
}

/// Mean and deviation of each weight, as `hone lab gate --fit HOME…` printed them for rehearsals of
/// fd, httpx, got and fzf (169 verdicts; docs/lab/gate-and-trial.md). They were fitted with version
/// 1 of the features, in which the end of a line counted only its own token and not the tokens that
/// merge the line break.
const SHIPPED: [(f64, f64); FEATURES] = [
    (-0.08, 0.34), // bias
    (1.68, 0.31),  // log-odds of the whole text
    (-0.01, 0.35), // mean log-prob of a token
    (0.01, 0.36),  // lowest log-prob of a token
    (0.13, 0.35),  // log-prob of the first token
    (-0.10, 0.30), // length
    (-0.05, 0.34), // the model chose to stop
    (-0.16, 0.32), // line is blank before the cursor
    (-0.08, 0.34), // line is empty after the cursor
    (0.00, 0.36),  // behind a word
    (0.07, 0.33),  // behind a dot or colons
    (-0.05, 0.34), // behind an opening bracket or a comma
    (-0.02, 0.36), // behind an equals sign
    (-0.05, 0.36), // closing marks alone
    (0.03, 0.32),  // starts with a word
    (0.00, 0.36),  // pause before the request
    (-0.04, 0.36), // rate of recent accepts
    (0.00, 0.33),  // rejects in a row
    (0.14, 0.34),  // rejects on this line
    (0.00, 0.36),  // prose or data
];

pub fn shipped() -> Prior {
    Prior { mean: SHIPPED.map(|weight| weight.0), deviation: SHIPPED.map(|weight| weight.1) }
}

/// The prior that a fit starts from: the log-odds of the text, doubled, and little else.
pub fn assumed() -> Prior {
    let mut mean = [0.0; FEATURES];
    mean[1] = 2.0;
    Prior { mean, deviation: [0.3; FEATURES] }
}
