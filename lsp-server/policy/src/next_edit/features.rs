//! The features that the gate for next edits decides by, if a rule found the edit. They are known
//! before it is shown, and of about unit size.

use super::Fared;
use super::surroundings::{Surroundings, distance, recently};
use feedback::event::{GateRecord, NextEditKind};

/// The version of the list. It is raised whenever a feature changes its meaning, or one is added.
pub const FEATURES_VERSION: u32 = 1;

pub const FEATURES: usize = 13;

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
];

/// Where the weights start, and how far they are expected to move. The means are assumptions: about
/// three of four next edits of the evaluation are right, more support and a shorter way speak for
/// one, and single tokens that are inserted or deleted are the riskiest kinds.
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
];

/// The features, given how the rule and all last edits fared.
pub fn features(seen: &Surroundings, rule: Fared, recent: (f64, u32)) -> Features {
    let flag = |is: bool| f64::from(u8::from(is));
    let is = |kind| flag(seen.kind == kind);
    let judged = f64::from(rule.right + rule.wrong);
    let share = (f64::from(rule.right) - f64::from(rule.wrong)) / (judged + 1.0);
    let [recent_share, wrong_in_a_row] = recently(recent);
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
        distance(seen.lines_away),
        recent_share,
        wrong_in_a_row,
    ]
}

/// Returns the features of a record, if they mean today what they meant when it was made.
pub fn recorded(gate: &GateRecord) -> Option<Features> {
    gate.features_of(FEATURES_VERSION)
}
