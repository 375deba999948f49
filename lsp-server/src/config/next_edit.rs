//! When next edits are offered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextEdit {
    /// Never.
    Off,
    /// When you press the key for it.
    #[default]
    Subtle,
    /// As you edit.
    On,
}

/// When the model says how likely it finds the text of a next edit, against the text that is there.
/// The gate decides by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextEditScore {
    /// Never.
    #[default]
    Off,
    /// Where the gate is unsure without it.
    Unsure,
    /// For each next edit that comes as you edit, even if the gate is off.
    Always,
}
