//! Where the gate starts on its first day: what offers in rehearsals of other
//! people's projects taught it, with room to change its mind; or a rehearsal of
//! the user's own, which `hone rehearse --keep` leaves beside the adapters.

use super::features::FEATURES;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    pub mean: [f64; FEATURES],
    pub deviation: [f64; FEATURES],
}

/// Mean and deviation of each weight, as `hone lab gate --fit HOME…` printed them
/// for rehearsals of fd, httpx, got and fzf (169 verdicts; docs/lab/gate-and-trial.md). That was
/// by features version 1, where a line's end was less likely by what the tokenizer
/// merges with it.
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
    (-0.04, 0.36), // rate of recent takes
    (0.00, 0.33),  // rejects in a row
    (0.14, 0.34),  // rejects on this line
    (0.00, 0.36),  // prose or data
];

pub fn shipped() -> Prior {
    Prior { mean: SHIPPED.map(|weight| weight.0), deviation: SHIPPED.map(|weight| weight.1) }
}

/// What a fit starts from: the text's own odds, doubled, and little else.
pub fn assumed() -> Prior {
    let mut mean = [0.0; FEATURES];
    mean[1] = 2.0;
    Prior { mean, deviation: [0.3; FEATURES] }
}
