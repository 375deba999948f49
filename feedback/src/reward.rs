//! Outcome → reward: pure and versioned, so that another reading of the same
//! events is a replay.

use crate::event::Outcome;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RewardVersion {
    #[serde(rename = "v1")]
    V1,
}

/// Reward in [0, 1], or `None` where the outcome is no label.
///
/// v1: accepted → 1; partly accepted or typed through → the share of the
/// offer's characters; rejected → 0; superseded or unseen → no label.
pub fn reward(version: RewardVersion, outcome: Outcome, offer_utf16: u32) -> Option<f32> {
    let RewardVersion::V1 = version;
    let share = |utf16: u32| (utf16 as f32 / offer_utf16.max(1) as f32).min(1.0);
    match outcome {
        Outcome::Accepted => Some(1.0),
        Outcome::PartlyAccepted { utf16 } | Outcome::TypedThrough { utf16 } => Some(share(utf16)),
        Outcome::RejectedEsc | Outcome::RejectedTimeout | Outcome::RejectedEdit => Some(0.0),
        Outcome::Superseded | Outcome::Unseen => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v1(outcome: Outcome) -> Option<f32> {
        reward(RewardVersion::V1, outcome, 20)
    }

    #[test]
    fn acceptance_is_paid_in_full_and_in_part_by_its_share() {
        assert_eq!(v1(Outcome::Accepted), Some(1.0));
        assert_eq!(v1(Outcome::PartlyAccepted { utf16: 5 }), Some(0.25));
        assert_eq!(v1(Outcome::TypedThrough { utf16: 20 }), Some(1.0));
        assert_eq!(v1(Outcome::TypedThrough { utf16: 21 }), Some(1.0));
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
    }
}
