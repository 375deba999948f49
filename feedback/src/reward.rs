//! Outcome → reward: pure and versioned, so that another reading of the same
//! events is a replay.

use crate::event::{Broken, Outcome};
use serde::{Deserialize, Serialize};

/// What an offer must be worth for showing it to pay: the value that an
/// advantage is measured against, and the gate's threshold.
pub const VALUE: f32 = 0.25;

/// A text that nobody can want costs more than one that was not wanted.
pub const BROKEN_REWARD: f32 = -0.25;

/// Characters after which v2 pays an accept by half.
const HALF_WORTH_UTF16: f32 = 8.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RewardVersion {
    #[serde(rename = "v1")]
    V1,
    #[serde(rename = "v2")]
    V2,
}

/// The version in force: gate, trials, reports and jobs all use this one.
pub const CURRENT: RewardVersion = RewardVersion::V1;

impl RewardVersion {
    pub const ALL: [RewardVersion; 2] = [RewardVersion::V1, RewardVersion::V2];
}

/// All that a reward may depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Fate {
    pub outcome: Option<Outcome>,
    /// Length of what was offered.
    pub offer_utf16: u32,
    /// Share of it that stood at the last look, once there was one.
    pub kept: Option<f32>,
    pub broken: Option<Broken>,
}

/// Reward in [[`BROKEN_REWARD`], 1], or `None` where there is no label.
///
/// v1: accepted → the share that was kept (1 until known); partly accepted or
/// typed through → the share of the offer's characters; rejected → 0; superseded
/// or unseen → no label. A broken text that was not taken → [`BROKEN_REWARD`],
/// label or not.
///
/// v2: the same, times what it saved: `1 − 2^(−characters / 8)`.
pub fn reward(version: RewardVersion, fate: Fate) -> Option<f32> {
    let share = |utf16: u32| (utf16 as f32 / fate.offer_utf16.max(1) as f32).min(1.0);
    let taken = match fate.outcome {
        Some(Outcome::Accepted) => Some(fate.kept.unwrap_or(1.0).clamp(0.0, 1.0)),
        Some(Outcome::PartlyAccepted { utf16 } | Outcome::TypedThrough { utf16 }) => {
            Some(share(utf16))
        }
        Some(Outcome::RejectedEsc | Outcome::RejectedTimeout | Outcome::RejectedEdit) => Some(0.0),
        Some(Outcome::Superseded | Outcome::Unseen) | None => None,
    };
    if fate.broken.is_some() && taken.unwrap_or(0.0) == 0.0 {
        return Some(BROKEN_REWARD);
    }
    let worth = match version {
        RewardVersion::V1 => 1.0,
        RewardVersion::V2 => 1.0 - (-(fate.offer_utf16 as f32) / HALF_WORTH_UTF16).exp2(),
    };
    taken.map(|taken| taken * worth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(outcome: Outcome) -> Fate {
        Fate { outcome: Some(outcome), offer_utf16: 20, ..Fate::default() }
    }

    fn v1(outcome: Outcome) -> Option<f32> {
        reward(RewardVersion::V1, fate(outcome))
    }

    #[test]
    fn acceptance_is_paid_in_full_and_in_part_by_its_share() {
        assert_eq!(v1(Outcome::Accepted), Some(1.0));
        assert_eq!(v1(Outcome::PartlyAccepted { utf16: 5 }), Some(0.25));
        assert_eq!(v1(Outcome::TypedThrough { utf16: 20 }), Some(1.0));
        assert_eq!(v1(Outcome::TypedThrough { utf16: 21 }), Some(1.0));
    }

    #[test]
    fn what_was_taken_is_worth_what_was_kept_of_it() {
        let kept = |share| Fate { kept: Some(share), ..fate(Outcome::Accepted) };
        assert_eq!(reward(RewardVersion::V1, kept(0.4)), Some(0.4));
        assert_eq!(reward(RewardVersion::V1, kept(0.0)), Some(0.0), "undone at once");
        let rejected = Fate { kept: Some(1.0), ..fate(Outcome::RejectedEsc) };
        assert_eq!(reward(RewardVersion::V1, rejected), Some(0.0));
    }

    #[test]
    fn every_kind_of_reject_pays_nothing() {
        for outcome in [Outcome::RejectedEsc, Outcome::RejectedTimeout, Outcome::RejectedEdit] {
            assert_eq!(v1(outcome), Some(0.0));
        }
    }

    #[test]
    fn what_was_not_judged_is_no_label() {
        assert_eq!(v1(Outcome::Superseded), None);
        assert_eq!(v1(Outcome::Unseen), None);
        assert_eq!(reward(RewardVersion::V1, Fate::default()), None);
    }

    #[test]
    fn a_broken_text_is_punished_unless_it_was_taken_all_the_same() {
        let broken = |outcome| {
            let broken = Some(Broken::Unbalanced);
            reward(RewardVersion::V1, Fate { outcome, broken, offer_utf16: 4, kept: None })
        };
        assert_eq!(broken(None), Some(BROKEN_REWARD), "nobody had to see it");
        assert_eq!(broken(Some(Outcome::Unseen)), Some(BROKEN_REWARD));
        assert_eq!(broken(Some(Outcome::RejectedEsc)), Some(BROKEN_REWARD));
        assert_eq!(broken(Some(Outcome::Accepted)), Some(1.0));
    }

    #[test]
    fn v2_pays_a_short_accept_less_and_changes_no_reject() {
        let v2 = |outcome, offer_utf16| {
            reward(RewardVersion::V2, Fate { offer_utf16, ..fate(outcome) }).unwrap()
        };
        assert_eq!(v2(Outcome::Accepted, 8), 0.5);
        assert!(v2(Outcome::Accepted, 2) < VALUE && v2(Outcome::Accepted, 60) > 0.99);
        assert_eq!(v2(Outcome::RejectedEdit, 60), 0.0);
    }
}
