//! The part of `hone status --json` that a rehearsal reads.

use crate::run::ledger::LabelCounts;
use serde::{Deserialize, Serialize};

/// Unknown fields are ignored. A missing field is an error, because these fields are part of the
/// contract of `hone status --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DaemonStatus {
    pub version: String,
    pub model: ServedModel,
    pub adapter: ServedAdapter,
    pub episodes: LabelCounts,
    /// Offers about which nothing may be stored, because they were made near a secret or in an
    /// ignored file.
    pub withheld: u64,
    pub learner: LearnerStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServedModel {
    pub name: Option<String>,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServedAdapter {
    /// 0 (or null) is the base model.
    pub active: Option<u64>,
    pub swaps: u64,
    pub last_swap_ms: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnerStatus {
    pub state: LearnerState,
    pub updates: u64,
    pub last_update_ms: Option<f64>,
    pub last_error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnerState {
    Idle,
    /// A job is about to start.
    Waiting,
    Training,
    /// A job failed, and the next one waits for a while.
    Backoff,
    Paused,
    Off,
}

impl DaemonStatus {
    pub fn version_served(&self) -> u64 {
        self.adapter.active.unwrap_or(0)
    }

    /// Whether an update is under way. As long as it is, the adapter that serves the next request
    /// depends on timing.
    pub fn is_learning(&self) -> bool {
        matches!(self.learner.state, LearnerState::Waiting | LearnerState::Training)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_fields_of_the_contract_are_read_and_others_are_ignored() {
        let mut value = json!({
            "version": "0.1.0",
            "daemon": {"pid": 1, "uptime_s": 2, "sessions": 1},
            "model": {"name": null, "arch": "qwen2", "path": "m.gguf", "sha256": "aa",
                      "backend": "cpu"},
            "adapter": {"active": 2, "parent": 1, "updated_at": null, "swaps": 2,
                        "last_swap_ms": 3.5},
            "episodes": {"total": 5, "accepted": 1, "partly_accepted": 0, "typed_through": 1,
                         "rejected_esc": 1, "rejected_timeout": 1, "rejected_edit": 1,
                         "superseded": 0, "unseen": 0, "unlabelled": 0, "no_offer": 3},
            "withheld": 0,
            "learner": {"state": "training", "updates": 2, "last_update_ms": 900,
                        "last_error": null},
        });
        let status: DaemonStatus = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(status.version_served(), 2);
        assert_eq!(status.episodes.rejected_edit, 1);
        assert!(status.is_learning());

        value["episodes"].as_object_mut().unwrap().remove("unseen");
        let error = serde_json::from_value::<DaemonStatus>(value).unwrap_err();
        assert!(error.to_string().contains("unseen"), "{error}");
    }
}
