//! Events folded into episodes: one completion and what became of it.

mod fold;
mod labelled;
#[cfg(test)]
mod tests;

pub use fold::{Batch, Fold};

use crate::event::{AdapterVersion, ArmRecord, Completion, Evidence, GateRecord, Outcome};
use crate::reward::{RewardInputs, reward};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// Log position of the completion.
    pub seq: u64,
    pub completion: Completion,
    /// The client confirmed that it was shown.
    pub shown: bool,
    /// `None` while the offer is still open.
    pub outcome: Option<(Outcome, Evidence)>,
    /// The user typed on so soon that the outcome says little.
    pub hurried: bool,
    /// The tokens of what the user typed in its place, if that is known: those of the
    /// healed text and of what was typed.
    pub replacement: Option<Vec<u32>>,
    /// The share of an accepted text that still stood at the last look.
    pub kept: Option<f32>,
}

impl Episode {
    fn of(seq: u64, completion: &Completion) -> Episode {
        Episode {
            seq,
            completion: completion.clone(),
            shown: false,
            outcome: None,
            hurried: false,
            replacement: None,
            kept: None,
        }
    }

    pub fn reward(&self) -> Option<f32> {
        let offer_utf16 = self.completion.shown.encode_utf16().count() as u32;
        reward(self.reward_inputs(offer_utf16))
    }

    fn reward_inputs(&self, offer_utf16: u32) -> RewardInputs {
        RewardInputs {
            outcome: self.outcome.map(|(outcome, _)| outcome),
            offer_utf16,
            kept: self.kept,
            defect: self.completion.decision.defect,
            hurried: self.hurried,
        }
    }

    /// The engine answered, and the user was offered nothing.
    pub fn is_no_offer(&self) -> bool {
        self.completion.shown.is_empty()
    }

    /// Nothing was offered, and it is known what the user typed there.
    fn is_demonstration(&self) -> bool {
        self.is_no_offer() && self.replacement.is_some()
    }

    /// Returns true if there is a reward. Neither its amount nor the length of the text
    /// matters.
    fn is_labelled(&self) -> bool {
        reward(self.reward_inputs(1)).is_some()
    }
}

/// A verdict on an offer: what the gate and a trial learn from.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    pub at_ms: u64,
    pub adapter: AdapterVersion,
    /// The user invoked the completion.
    pub invoked: bool,
    pub gate: Option<GateRecord>,
    pub arm: Option<ArmRecord>,
    /// The user accepted the whole text at once.
    pub accepted: bool,
    pub reward: f32,
    /// The weight of the label, in (0, 1]: 1 for one that was given after a look.
    pub weight: f32,
    /// The reward of the earlier label, if stronger evidence replaced one.
    pub before: Option<f32>,
    pub offer_utf16: u32,
}

/// The number of offers with each outcome. `total` counts offers; a completion that offered
/// nothing counts in `no_offer` and nowhere else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub total: u64,
    pub accepted: u64,
    pub partly_accepted: u64,
    pub typed_through: u64,
    pub rejected_esc: u64,
    pub rejected_timeout: u64,
    pub rejected_edit: u64,
    pub superseded: u64,
    pub unseen: u64,
    pub unlabelled: u64,
    pub no_offer: u64,
}

impl Counts {
    /// The count that an offer with this outcome is in.
    fn of_outcome(&mut self, outcome: Option<Outcome>) -> &mut u64 {
        match outcome {
            None => &mut self.unlabelled,
            Some(Outcome::Accepted) => &mut self.accepted,
            Some(Outcome::PartlyAccepted { .. }) => &mut self.partly_accepted,
            Some(Outcome::TypedThrough { .. }) => &mut self.typed_through,
            Some(Outcome::RejectedEsc) => &mut self.rejected_esc,
            Some(Outcome::RejectedTimeout) => &mut self.rejected_timeout,
            Some(Outcome::RejectedEdit) => &mut self.rejected_edit,
            Some(Outcome::Superseded) => &mut self.superseded,
            Some(Outcome::Unseen) => &mut self.unseen,
        }
    }
}
