//! The learner's current state. Only the supervisor writes it, through a `watch` channel.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnerState {
    /// It has nothing to do, or too few labels yet.
    #[default]
    Idle,
    /// Enough labels wait for it to start.
    Waiting,
    Training,
    /// It waits after a failure.
    Backoff,
    /// It is paused: `learning.enabled = false`, or `hone pause`.
    Off,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LearnerStatus {
    pub state: LearnerState,
    /// What the running job does at the moment, in a few words.
    pub progress: Option<String>,
    /// Why labels wait although there are enough.
    pub held_back: Option<String>,
    /// Why the last update failed. An update that succeeds clears it.
    pub failure: Option<String>,
}
