//! The table `[lab]`: settings that only experiments change.

use completion::limits::TOKENS_MAX;
use completion::prompt::Window;
use feedback::job::Hyper;
use feedback::limits::WAITING_EPISODES_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The table's name.
pub const LAB: &str = "lab";

/// The most lines that can be asked for. Nobody reads a longer offer before accepting it.
const MAX_LINES: usize = 50;

/// The largest norm of a contribution, as installed. Adam changes each of the 43,008 numbers of the
/// default model by hardly more than its learning rate of 1e-4 in a step, so that the four steps on
/// 16 labels give 0.083 at most. What more labels give beyond 0.1 is scaled down. A much larger
/// limit would let one member outweigh all others.
const TEAM_NORM_MAX: f64 = 0.1;

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
    /// P(accepted) from which on the gate shows an offer, instead of the one that
    /// `completion.eagerness` stands for. 0 leaves it to that.
    #[schemars(range(min = 0.0, max = 0.99))]
    pub gate_threshold: f64,
    /// Whether a completion waits for a rest in your typing, at most 0.3 s, if your typing
    /// so far says that your next key would come before it.
    pub adaptive_debounce: bool,
    /// The most tokens that a line of a completion may have. All of its lines have at most
    /// 128.
    #[schemars(range(min = 1, max = TOKENS_MAX))]
    pub max_tokens: usize,
    /// The most lines that a completion of several lines may have. One that has more ends behind
    /// a whole statement, and not on the header of a block.
    #[schemars(range(min = 1, max = MAX_LINES))]
    pub max_lines: usize,
    /// The most milliseconds that a completion may take.
    #[schemars(range(min = 1))]
    pub budget_ms: u64,
    /// A line is not offered as you type if the geometric mean of its tokens' probabilities is
    /// less than this. Two certain tokens count along. Decoding ends as soon as that is known.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_token_probability: f32,
    /// Whether an update must prove itself against what served before it. Until then it
    /// answers a part of the requests. If this is off, an update serves as soon as it has passed
    /// the holdout check.
    pub trial: bool,
    /// The number of labelled episodes that starts an update.
    #[schemars(range(min = 1, max = WAITING_EPISODES_MAX))]
    pub batch_episodes: usize,
    /// The daemon ends this many seconds after its last editor.
    #[schemars(range(min = 1))]
    pub idle_exit_s: u64,
    /// The largest L2 norm of a contribution to a team. A larger one is scaled down to it.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0))]
    pub team_max_norm: f64,
    /// The δ for which the ε of contributions to a team is computed.
    #[schemars(range(max = 0.1), extend("exclusiveMinimum" = 0))]
    pub team_delta: f64,
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
            adaptive_debounce: true,
            max_tokens: 32,
            max_lines: 8,
            budget_ms: 10_000,
            min_token_probability: 0.55,
            trial: true,
            batch_episodes: 16,
            idle_exit_s: 600,
            team_max_norm: TEAM_NORM_MAX,
            team_delta: 1e-5,
            ppo: Hyper::default(),
        }
    }
}

impl LabConfig {
    /// Returns how much of a document a prompt holds.
    pub fn window(&self) -> Window {
        Window { prefix_chars: self.prefix_chars, suffix_chars: self.suffix_chars }
    }
}
