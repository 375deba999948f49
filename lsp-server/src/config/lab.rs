//! The table `[lab]`: settings that only experiments change.

use completion::prompt::Window;
use feedback::job::Hyper;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The table's name.
pub const LAB: &str = "lab";

/// What only experiments change. Nobody needs to set any of it to use Hone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LabConfig {
    /// The temperature of sampling; 0 decodes greedily.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f32,
    /// Characters before the cursor that the model sees.
    #[schemars(range(max = 100_000))]
    pub prefix_chars: usize,
    /// Characters after the cursor that the model sees.
    #[schemars(range(max = 100_000))]
    pub suffix_chars: usize,
    /// The longest prompt in tokens. What does not fit is left out, the farthest from the cursor
    /// first.
    #[schemars(range(min = 256, max = 4_096))]
    pub prompt_tokens: usize,
    /// P(accepted) from which on the gate shows an offer, in place of the one that
    /// `completion.eagerness` stands for. 0 leaves it to that.
    #[schemars(range(min = 0.0, max = 0.99))]
    pub gate_threshold: f64,
    /// The hyperparameters of an update.
    pub ppo: Hyper,
}

impl Default for LabConfig {
    fn default() -> Self {
        LabConfig {
            temperature: 0.0,
            prefix_chars: 1_500,
            suffix_chars: 500,
            prompt_tokens: 1_536,
            gate_threshold: 0.0,
            ppo: Hyper::default(),
        }
    }
}

impl LabConfig {
    /// How much of a document a prompt holds.
    pub fn window(&self) -> Window {
        Window { prefix_chars: self.prefix_chars, suffix_chars: self.suffix_chars }
    }
}
