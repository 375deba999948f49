//! The features that the gate decides by where a model wrote the edit. They are known before it is
//! shown, and of about unit size.

use super::surroundings::{ByModel, Surroundings, distance, recently};
use feedback::event::GateRecord;

/// The version of the list. Records of version 1 have the features of rules.
pub const FEATURES_VERSION: u32 = 2;

pub const FEATURES: usize = 9;

pub type Features = [f64; FEATURES];

pub const NAMES: [&str; FEATURES] = [
    "bias",
    "mean log-prob of the changed tokens",
    "least log-prob of a changed token",
    "number of changed lines",
    "share of changed words that the latest changes have",
    "place that is not the cursor's",
    "distance",
    "rate of recent right edits of the model",
    "wrong edits of the model in a row",
];

/// Where the weights start, and how far they are expected to move. All of it is assumed, and
/// nothing was measured. A first edit is right with about 0.6, so that it is shown. Half a nat of
/// the mean log-prob is worth about one logit, known words speak for an edit, and many lines
/// against it. The deviations are wide, so that a few verdicts move the weights.
pub const PRIOR: [(f64, f64); FEATURES] = [
    (0.25, 0.5),
    (2.0, 1.0),
    (0.5, 0.5),
    (-0.4, 0.4),
    (1.0, 0.7),
    (-0.3, 0.4),
    (-0.3, 0.4),
    (1.0, 0.5),
    (-0.5, 0.4),
];

/// Log-probs in nats that speak neither for an edit nor against it: their mean, and the least one.
const MEAN_NEUTRAL: f32 = -0.5;
const LEAST_NEUTRAL: f32 = -1.5;

/// Lower log-probs count as these.
const MEAN_MIN: f32 = -3.0;
const LEAST_MIN: f32 = -5.0;

/// The share of known words that speaks neither for an edit nor against it.
const KNOWN_NEUTRAL: f32 = 0.5;

/// The features, given how the last edits of the model fared.
pub fn features(seen: &Surroundings, by_model: &ByModel, recent: (f64, u32)) -> Features {
    let (mean, least) = by_model.logprobs.unwrap_or((MEAN_NEUTRAL, LEAST_NEUTRAL));
    let known = by_model.known_words.unwrap_or(KNOWN_NEUTRAL);
    let [share, wrong_in_a_row] = recently(recent);
    [
        1.0,
        f64::from(mean.max(MEAN_MIN) - MEAN_NEUTRAL),
        f64::from((least.max(LEAST_MIN) - LEAST_NEUTRAL) / -LEAST_MIN),
        f64::from(by_model.lines.max(1)).ln(),
        f64::from(known - KNOWN_NEUTRAL),
        f64::from(u8::from(!by_model.is_at_cursor)),
        distance(seen.lines_away),
        share,
        wrong_in_a_row,
    ]
}

/// Returns the features of a record, if they mean today what they meant when it was made.
pub fn recorded(gate: &GateRecord) -> Option<Features> {
    gate.features_of(FEATURES_VERSION)
}
