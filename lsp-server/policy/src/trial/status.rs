//! What `hone status` says about a running trial.

use super::{Arms, Rewards};
use serde::{Deserialize, Serialize};

/// What `hone status` says about a running trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialStatus {
    pub arms: Arms,
    pub candidate: Rewards,
    pub incumbent: Rewards,
    /// References that both arms were compared on.
    pub references: u64,
    /// References that only the candidate gives, and that only the incumbent gives. An accepted
    /// text is the answering arm's own, and the candidate answers more often.
    pub gained: u64,
    pub lost: u64,
    /// The share of references gained less the share lost, as if both arms had answered equally
    /// often.
    pub reference_gain: f64,
    /// The e-value for the candidate; it promotes at [`super::PROMOTING_VERDICTS`].
    pub evidence_better: f64,
    /// The e-value against the candidate; it drops at [`super::DROPPING`].
    pub evidence_worse: f64,
    /// The e-value against the known rate; it drops at [`super::DROPPING_BELOW`].
    pub evidence_below: f64,
    /// The e-value of the references; it promotes at [`super::PROMOTING_REFERENCES`].
    pub evidence_references: f64,
    pub longest: u64,
}

impl TrialStatus {
    /// The result of the references in words for the user.
    pub fn references_line(&self) -> String {
        let TrialStatus { references, gained, lost, .. } = self;
        format!(
            "of {references} texts that you wrote, it gives {gained} that the other misses, and \
             misses {lost} that the other gives"
        )
    }
}
