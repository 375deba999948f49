//! What the gate is told of a next edit, and what the features of rules and of the model share.

use feedback::event::NextEditKind;

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

/// What is known of an edit that a model wrote.
#[derive(Debug, Clone, Copy)]
pub struct ByModel {
    /// The mean and the least log-prob of the tokens that write it, in nats, if they are known.
    pub logprobs: Option<(f32, f32)>,
    /// The lines that it changes.
    pub lines: u32,
    /// The share of the changed words that the latest changes have too. None if no word changes.
    pub known_words: Option<f32>,
    /// The model was asked at the cursor, not at another place.
    pub is_at_cursor: bool,
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
