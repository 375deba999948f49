//! The features that the gate for next edits decides by. They are known before the edit is shown,
//! and of about unit size.

use super::Fared;
use feedback::event::{GateRecord, NextEditKind};

/// The version of the list. It is raised whenever a feature changes its meaning, or one is added.
pub const FEATURES_VERSION: u32 = 2;

/// The version before, which has no features of the model, and how many it has.
const WITHOUT_MODEL: (u32, usize) = (1, 13);

pub const FEATURES: usize = 15;

pub type Features = [f64; FEATURES];

pub const NAMES: [&str; FEATURES] = [
    "bias",
    "support of the rule",
    "share of the rule's places that were right",
    "rule with holes",
    "insertion within a line",
    "deletion within a line",
    "inserted lines",
    "deleted lines",
    "same file",
    "same block",
    "distance",
    "rate of recent right places",
    "wrong places in a row",
    "log-ratio of the new text to the old",
    "log-ratio is known",
];

/// Where the weights start, and how far they are expected to move. The means are assumptions: about
/// three of four next edits of the evaluation are right, more support and a shorter way speak for
/// one, and single tokens that are inserted or deleted are the riskiest kinds. The mean of the
/// log-ratio is fitted to six authors (docs/lab/next-edit.md).
pub const PRIOR: [(f64, f64); FEATURES] = [
    (0.8, 0.5),
    (0.6, 0.4),
    (1.0, 0.5),
    (-0.2, 0.4),
    (-0.3, 0.4),
    (-0.3, 0.4),
    (-0.2, 0.4),
    (-0.2, 0.4),
    (0.3, 0.4),
    (0.2, 0.4),
    (-0.4, 0.4),
    (1.0, 0.5),
    (-0.6, 0.4),
    (1.15, 0.4),
    (0.0, 0.3),
];

/// The log-ratio counts up to here in both directions, in nats: beyond it the model is sure, and a
/// rare token would weigh more than all else.
const LOG_RATIO_MAX: f32 = 6.0;

/// Wrong places in a row are counted up to here.
const WRONG_MAX: u32 = 5;

/// The distance from which on it no longer matters, in lines.
const LINES_MAX: u32 = 1_000;

/// A next edit and its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    pub rule: u64,
    pub kind: NextEditKind,
    pub support: u32,
    /// Lines from the cursor. None in another file.
    pub lines_away: Option<u32>,
    /// No line at the left margin stands between the cursor and the place.
    pub is_in_same_block: bool,
    /// ln P(new text) − ln P(old text), as the model sees the place. None if it was not asked.
    pub log_ratio: Option<f32>,
}

/// The features, given how the rule and all last edits fared.
pub fn features(seen: &Surroundings, rule: Fared, recent: (f64, u32)) -> Features {
    let flag = |is: bool| f64::from(u8::from(is));
    let is = |kind| flag(seen.kind == kind);
    let judged = f64::from(rule.right + rule.wrong);
    let share = (f64::from(rule.right) - f64::from(rule.wrong)) / (judged + 1.0);
    let away = seen.lines_away.unwrap_or(LINES_MAX).min(LINES_MAX);
    let [log_ratio, is_known] = of_log_ratio(seen.log_ratio);
    [
        1.0,
        f64::from(seen.support.max(1)).ln() - 2.0_f64.ln(),
        share,
        is(NextEditKind::RewriteWithHoles),
        is(NextEditKind::Insertion),
        is(NextEditKind::InlineDeletion),
        is(NextEditKind::InsertedLines),
        is(NextEditKind::DeletedLines),
        flag(seen.lines_away.is_some()),
        flag(seen.is_in_same_block),
        f64::from(away + 1).ln() / f64::from(LINES_MAX).ln(),
        recent.0 - 0.5,
        f64::from(recent.1.min(WRONG_MAX)) / f64::from(WRONG_MAX),
        log_ratio,
        is_known,
    ]
}

/// The features of the model: the bounded log-ratio, and whether it is known. Where it is not, they
/// are as if there were none.
pub fn of_log_ratio(log_ratio: Option<f32>) -> [f64; 2] {
    log_ratio.map_or([0.0, 0.0], |value| {
        [f64::from(value.clamp(-LOG_RATIO_MAX, LOG_RATIO_MAX) / LOG_RATIO_MAX), 1.0]
    })
}

/// The features of a record. One from before the model was asked counts as one where it was not.
pub fn recorded(gate: &GateRecord) -> Option<Features> {
    let values = &gate.features;
    match (gate.features_version, values.len()) {
        (FEATURES_VERSION, FEATURES) => Some(std::array::from_fn(|i| f64::from(values[i]))),
        WITHOUT_MODEL => {
            let values = values.iter().copied().map(f64::from).chain(of_log_ratio(None));
            values.collect::<Vec<_>>().try_into().ok()
        }
        _ => None,
    }
}
