//! The features that the gate for next edits decides by, if a rule found the edit. They are known
//! before it is shown, and of about unit size.

use super::Fared;
use super::model::ByModel;
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
    /// What is known of it if a model wrote it. The gate then decides by other features.
    pub by_model: Option<ByModel>,
}

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

/// How far away a place is: about 0 at the cursor, and 1 in another file.
pub(super) fn distance(lines_away: Option<u32>) -> f64 {
    let away = lines_away.unwrap_or(LINES_MAX).min(LINES_MAX);
    f64::from(away + 1).ln() / f64::from(LINES_MAX).ln()
}

/// How the last edits fared: their running share of right ones, and the wrong ones in a row.
pub(super) fn recently((share, wrong): (f64, u32)) -> [f64; 2] {
    [share - 0.5, f64::from(wrong.min(WRONG_MAX)) / f64::from(WRONG_MAX)]
}

/// Returns the features of a record, if they mean today what they meant when it was made.
pub fn recorded(gate: &GateRecord) -> Option<Features> {
    gate.features_of(FEATURES_VERSION)
}
