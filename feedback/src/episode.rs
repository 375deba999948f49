//! Events folded into episodes: one completion and what became of it.

use crate::event::{Completion, Event, EventKind, Evidence, OfferId, Outcome};
use crate::reward::{RewardVersion, reward};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// Log position of the completion.
    pub seq: u64,
    pub completion: Completion,
    /// The client confirmed that it was shown.
    pub shown: bool,
    /// `None` while the offer is still open.
    pub outcome: Option<(Outcome, Evidence)>,
}

impl Episode {
    pub fn reward(&self, version: RewardVersion) -> Option<f32> {
        let (outcome, _) = self.outcome?;
        let offer_utf16 = self.completion.shown.encode_utf16().count() as u32;
        reward(version, outcome, offer_utf16)
    }

    pub fn is_silence(&self) -> bool {
        self.completion.shown.is_empty()
    }
}

/// How many offers met which fate. `total` counts offers; completions with
/// nothing to show are `silent` and in no other count.
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
    pub silent: u64,
}

impl Counts {
    fn slot(&mut self, outcome: Option<Outcome>) -> &mut u64 {
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

/// The fold itself, fed one event at a time: counts for the status, and the
/// labelled episodes no update has learned from yet.
#[derive(Debug)]
pub struct Fold {
    reward: RewardVersion,
    /// Most waiting episodes kept in memory; the oldest give way first.
    waiting_limit: usize,
    counts: Counts,
    open: HashMap<OfferId, Episode>,
    labelled: HashMap<OfferId, Episode>,
    /// Outcome of every offer seen, so that stronger evidence can still move it.
    outcomes: HashMap<OfferId, (Option<Outcome>, Option<Evidence>)>,
}

impl Fold {
    pub fn new(reward: RewardVersion, waiting_limit: usize) -> Self {
        Fold {
            reward,
            waiting_limit,
            counts: Counts::default(),
            open: HashMap::new(),
            labelled: HashMap::new(),
            outcomes: HashMap::new(),
        }
    }
}
