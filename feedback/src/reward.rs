//! Rewards: what an outcome is worth. The reward is a pure function, and the log holds what
//! happened, so another reward can be compared on the same events.

use crate::event::{Defect, Outcome};

/// The reward at which showing an offer and showing nothing are worth the same. An
/// advantage is measured against it, and it is the gate's threshold.
pub const VALUE: f32 = 0.25;

/// The reward of a text that no user can want. It is below 0, the reward of a text that
/// one user did not want.
pub const DEFECT_REWARD: f32 = -0.25;

const _: () = assert!(DEFECT_REWARD < 0.0 && 0.0 < VALUE && VALUE < 1.0);

/// Everything that a reward depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RewardInputs {
    pub outcome: Option<Outcome>,
    /// Length of the offered text.
    pub offer_utf16: u32,
    /// The share of an accepted text that still stood at the last look. `None` before
    /// the first look.
    pub kept: Option<f32>,
    pub defect: Option<Defect>,
    /// The user typed on before most people have read an offer: see [`is_hurried`].
    pub hurried: bool,
}

/// A user who types on within this time has hardly judged the offer.
const HURRIED_MS: u64 = 700;

/// The weight of a hurried reject, where one after a look has 1. Of 66 offers that people decided
/// within [`HURRIED_MS`] they accepted 12 %, of the others 37 %. So they had judged about a third
/// of them (12 / 37), and of 100 hurried rejects about 23 were judgements (docs/lab/people.md).
pub const HURRIED_WEIGHT: f32 = 0.23;

/// Returns true if an outcome came too fast to be much of a judgement.
pub fn is_hurried(outcome: Outcome, after_ms: u64) -> bool {
    outcome == Outcome::RejectedEdit && after_ms < HURRIED_MS
}

/// Returns the reward, in [[`DEFECT_REWARD`], 1], or `None` if the inputs are no label.
///
/// An accepted text earns the share of it that was kept, or 1 until that is known. A text that was
/// partly accepted or typed through earns that share of its characters. A rejected text earns 0,
/// and after a hurried reject nearly [`VALUE`], because little is known of it. A superseded or
/// unseen text is no label. A text with a defect that earns nothing by these rules earns
/// [`DEFECT_REWARD`], also if it is no label.
pub fn reward(inputs: RewardInputs) -> Option<f32> {
    let share = |utf16: u32| (utf16 as f32 / inputs.offer_utf16.max(1) as f32).min(1.0);
    let accepted = match inputs.outcome {
        Some(Outcome::Accepted) => Some(inputs.kept.unwrap_or(1.0).clamp(0.0, 1.0)),
        Some(Outcome::PartlyAccepted { utf16 } | Outcome::TypedThrough { utf16 }) => {
            Some(share(utf16))
        }
        Some(Outcome::RejectedEdit) if inputs.hurried => Some(VALUE * (1.0 - HURRIED_WEIGHT)),
        Some(Outcome::RejectedEsc | Outcome::RejectedTimeout | Outcome::RejectedEdit) => Some(0.0),
        Some(Outcome::Superseded | Outcome::Unseen) | None => None,
    };
    let is_rejected = accepted.unwrap_or(0.0) == 0.0 || inputs.hurried;
    if inputs.defect.is_some() && is_rejected {
        return Some(DEFECT_REWARD);
    }
    accepted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(outcome: Outcome) -> RewardInputs {
        RewardInputs { outcome: Some(outcome), offer_utf16: 20, ..RewardInputs::default() }
    }

    fn of(outcome: Outcome) -> Option<f32> {
        reward(inputs(outcome))
    }

    #[test]
    fn acceptance_is_paid_in_full_and_in_part_by_its_share() {
        assert_eq!(of(Outcome::Accepted), Some(1.0));
        assert_eq!(of(Outcome::PartlyAccepted { utf16: 5 }), Some(0.25));
        assert_eq!(of(Outcome::TypedThrough { utf16: 20 }), Some(1.0));
        assert_eq!(of(Outcome::TypedThrough { utf16: 21 }), Some(1.0));
    }

    #[test]
    fn an_accepted_text_is_worth_the_share_that_was_kept() {
        let kept = |share| RewardInputs { kept: Some(share), ..inputs(Outcome::Accepted) };
        assert_eq!(reward(kept(0.4)), Some(0.4));
        assert_eq!(reward(kept(0.0)), Some(0.0), "undone at once");
        let rejected = RewardInputs { kept: Some(1.0), ..inputs(Outcome::RejectedEsc) };
        assert_eq!(reward(rejected), Some(0.0));
    }

    #[test]
    fn every_kind_of_reject_pays_nothing() {
        for outcome in [Outcome::RejectedEsc, Outcome::RejectedTimeout, Outcome::RejectedEdit] {
            assert_eq!(of(outcome), Some(0.0));
        }
    }

    #[test]
    fn a_hurried_reject_says_little() {
        let hurried = RewardInputs { hurried: true, ..inputs(Outcome::RejectedEdit) };
        let advantage = reward(hurried).unwrap() - VALUE;
        let after_a_look = of(Outcome::RejectedEdit).unwrap() - VALUE;
        assert!((advantage / after_a_look - HURRIED_WEIGHT).abs() < 1e-6);
        let defective = RewardInputs { defect: Some(Defect::Unbalanced), ..hurried };
        assert_eq!(reward(defective), Some(DEFECT_REWARD));
        assert!(is_hurried(Outcome::RejectedEdit, HURRIED_MS - 1));
        assert!(!is_hurried(Outcome::RejectedEdit, HURRIED_MS));
        assert!(!is_hurried(Outcome::RejectedEsc, 0), "Esc is a judgement");
        assert!(!is_hurried(Outcome::Accepted, 0));
    }

    #[test]
    fn an_offer_without_a_verdict_is_no_label() {
        assert_eq!(of(Outcome::Superseded), None);
        assert_eq!(of(Outcome::Unseen), None);
        assert_eq!(reward(RewardInputs::default()), None);
    }

    #[test]
    fn a_text_with_a_defect_is_punished_unless_it_was_accepted_all_the_same() {
        let defective = |outcome| {
            let defect = Some(Defect::Unbalanced);
            reward(RewardInputs { outcome, defect, offer_utf16: 4, ..RewardInputs::default() })
        };
        assert_eq!(defective(None), Some(DEFECT_REWARD), "no user has to see it");
        assert_eq!(defective(Some(Outcome::Unseen)), Some(DEFECT_REWARD));
        assert_eq!(defective(Some(Outcome::RejectedEsc)), Some(DEFECT_REWARD));
        assert_eq!(defective(Some(Outcome::Accepted)), Some(1.0));
    }
}
