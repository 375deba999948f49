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
