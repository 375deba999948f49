//! The border between daemon and learner: JSON lines, one job per line on the
//! learner's stdin, [`LearnerLine`]s on its stdout.
//!
//! A job is a pure function: (base, parent adapter, optimizer state, frozen
//! batch, seed) → (candidate adapter, optimizer state, report). The same job
//! gives the same bytes.

use crate::episode::{Episode, REPLAY_LIMIT, WAITING_LIMIT};
use crate::event::AdapterVersion;
use crate::reward::{RewardVersion, VALUE};
use crate::schema::{self, SchemaError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Version of these lines. A learner refuses a job with another one.
pub const JOB_FORMAT: u32 = 3;

/// Labelled episodes in a batch, at most: no more of them ever wait.
pub const BATCH_EPISODES_MAX: usize = WAITING_LIMIT;

/// Episodes in a job, at most: a full batch and all that can be learned from again.
pub const EPISODES_MAX: usize = BATCH_EPISODES_MAX + REPLAY_LIMIT;

/// LoRA rank, at most: beyond it an adapter is larger than it is useful.
pub const LORA_RANK_MAX: usize = 256;

/// Memory limit that can be set for the learner, at most, in MiB: more than any machine has,
/// and few enough to be counted in bytes.
pub const MEMORY_LIMIT_MB_MAX: u64 = 1 << 30;

const _: () = assert!(MEMORY_LIMIT_MB_MAX < u64::MAX >> 20);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub format: u32,
    pub id: String,
    pub base: Base,
    /// `None`: start a fresh adapter on the base.
    pub parent: Option<Parent>,
    /// Version number the candidate will carry if it is registered.
    pub candidate: AdapterVersion,
    /// Where the learner writes the candidate adapter (GGUF).
    pub adapter_out: PathBuf,
    /// Where the learner writes the optimizer state.
    pub optimizer_out: PathBuf,
    pub seed: u64,
    pub reward: RewardVersion,
    pub hyper: Hyper,
    pub episodes: Vec<Episode>,
    /// Episodes an earlier update has learned from, to be learned from again.
    pub replay: Vec<Episode>,
    /// The learner may hold this much memory; 0: as much as there is.
    pub memory_limit_mb: u64,
}

/// A line that is no job: the job of this id is not wanted any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    pub cancel: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Base {
    pub path: PathBuf,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parent {
    pub version: AdapterVersion,
    pub path: PathBuf,
    pub sha256: String,
    pub optimizer: Option<PathBuf>,
}

/// Every number PPO depends on, with the range in which PPO can use it. docs/learning.md
/// gives each one's source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hyper {
    /// LoRA rank r of an adapter that starts from the base; one that is learned on from
    /// keeps its own. All seven linear maps of every layer are adapted.
    #[schemars(range(min = 1, max = LORA_RANK_MAX), extend("x-new-adapter" = true))]
    pub lora_rank: usize,
    /// LoRA alpha, likewise; the update is scaled by alpha / rank.
    #[schemars(extend("exclusiveMinimum" = 0, "x-new-adapter" = true))]
    pub lora_alpha: f32,
    /// Adam's step size, once warmed up.
    #[schemars(range(min = 0.0))]
    pub learning_rate: f32,
    /// Optimizer steps over which the learning rate rises linearly to its value,
    /// counted over the adapter's whole life.
    pub warmup_steps: u32,
    /// Decay of Adam's mean of the gradients.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1))]
    pub adam_beta1: f32,
    /// Decay of Adam's mean of their squares.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1))]
    pub adam_beta2: f32,
    /// What Adam adds to the root it divides by.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub adam_epsilon: f32,
    /// Share of a weight that a step takes off, times the learning rate.
    #[schemars(range(min = 0.0))]
    pub weight_decay: f32,
    /// Global L2 norm the gradient is clipped to.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_grad_norm: f32,
    /// L2 norm of the adapter's change in one job, relative to the L2 norm of
    /// all its weights; a step past it is scaled back.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_update_ratio: f32,
    /// Passes over the batch.
    #[schemars(range(min = 1))]
    pub epochs: u32,
    /// Episodes per optimizer step.
    #[schemars(range(min = 1))]
    pub minibatch_episodes: usize,
    /// Ratio is clipped to [1 − clip_low, 1 + clip_high].
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1))]
    pub clip_low: f32,
    /// The upper side of that range.
    #[schemars(range(min = 0.0))]
    pub clip_high: f32,
    /// V: the reward at which showing and silence are worth the same.
    pub baseline: f32,
    /// What a reward is compared with.
    pub advantage: Advantage,
    /// Weight of the KL(π‖base) penalty.
    #[schemars(range(min = 0.0))]
    pub kl_coefficient: f32,
    /// Cap on the importance weight π_parent/π_behaviour.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_importance_weight: f32,
    /// Episodes served by an adapter more than this many versions older than
    /// the parent are dropped.
    pub max_staleness: u32,
    /// An epoch stops early when the mean KL(parent‖π) passes this, in nats per token.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub target_kl: f32,
    /// Weight of the policy's loss on judged offers; 0: imitate alone.
    #[schemars(range(min = 0.0))]
    pub policy_coefficient: f32,
    /// Weight of imitating what the user typed instead of an offer, or where
    /// nothing was offered; 0: not at all.
    #[schemars(range(min = 0.0))]
    pub demonstration_coefficient: f32,
    /// Texts are imitated by this power of their probability as whole lines: 0 all
    /// alike; 1 those that are likeliest to be offered and right, which raises the
    /// expected number of right lines.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub demonstration_exponent: f32,
}

/// What a reward is compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Advantage {
    /// r − V: one sample a prompt, as life gives them.
    #[default]
    Baseline,
    /// (r − mean) / (standard deviation) over the samples of one prompt (GRPO,
    /// arXiv:2402.03300), where a simulated developer judges as many as it likes.
    Group,
}

impl Default for Hyper {
    fn default() -> Self {
        Hyper {
            lora_rank: 16,
            lora_alpha: 32.0,
            learning_rate: 1e-4,
            warmup_steps: 4,
            adam_beta1: 0.9,
            adam_beta2: 0.95,
            adam_epsilon: 1e-8,
            weight_decay: 0.0,
            max_grad_norm: 1.0,
            max_update_ratio: 0.1,
            epochs: 2,
            minibatch_episodes: 8,
            clip_low: 0.2,
            clip_high: 0.28,
            baseline: VALUE,
            advantage: Advantage::Baseline,
            kl_coefficient: 0.02,
            max_importance_weight: 2.0,
            max_staleness: 4,
            target_kl: 0.1,
            policy_coefficient: 1.0,
            demonstration_coefficient: 1.0,
            demonstration_exponent: 0.0,
        }
    }
}

impl Hyper {
    /// Both the settings and the learner check this, so that what can be set can be learned
    /// with.
    ///
    /// # Errors
    /// Names the first value that PPO cannot use, and what it may be.
    pub fn check(&self) -> Result<(), SchemaError> {
        schema::check(self)
    }
}

/// One line of the learner's stdout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum LearnerLine {
    /// Started and waiting for jobs.
    Ready {
        format: u32,
        version: String,
    },
    Progress(Progress),
    /// The job is done; the files named in it are written and synced.
    Done(Box<Report>),
    /// The job was given up as asked; no file was left behind.
    Cancelled {
        job: String,
    },
    /// The job failed; no file was left behind.
    Failed {
        job: String,
        error: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub job: String,
    pub phase: Phase,
    pub done: usize,
    pub total: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Reading the base model.
    Load,
    /// Computing each episode's prompt KV and reference log-probs.
    Prompt,
    /// PPO steps, counted in episodes.
    Train,
    /// Measuring the candidate on its own batch.
    Evaluate,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub job: String,
    pub candidate: AdapterVersion,
    pub adapter_sha256: String,
    pub episodes_used: usize,
    pub episodes_dropped: usize,
    /// Of those learned from: taken from earlier updates.
    #[serde(default)]
    pub episodes_replayed: usize,
    /// What the user typed instead, learned from beside the offers.
    #[serde(default)]
    pub demonstrations: usize,
    pub tokens_trained: usize,
    pub steps: u32,
    /// True when `target_kl` ended the epochs early.
    pub stopped_early: bool,
    pub mean_reward: f32,
    pub mean_advantage: f32,
    /// |learner − server| per token for episodes the parent itself served, in nats.
    pub mismatch: Distribution,
    /// π_new/π_behaviour per token before the first step, same episodes.
    pub ratio_before: Distribution,
    /// Largest learning signal first to last: mean over tokens of each optimizer step.
    pub steps_log: Vec<StepLog>,
    /// Mean per-token log-prob of rewarded offers (r > V), before and after.
    pub logprob_rewarded: Option<BeforeAfter>,
    /// The same for the others (r ≤ V).
    pub logprob_unrewarded: Option<BeforeAfter>,
    /// What was typed instead, before it was learned from.
    #[serde(default)]
    pub demonstrated: Option<Demonstrated>,
    /// KL(π‖base) after, estimated over the trained tokens: the mean of k3, weighted
    /// by π/behaviour.
    pub kl_base: f32,
    /// L2 norm of the adapter's change over the L2 norm of the adapter.
    pub update_ratio: f32,
    pub load_ms: u64,
    pub prompt_ms: u64,
    pub train_ms: u64,
    pub total_ms: u64,
    pub peak_memory_mb: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StepLog {
    pub loss: f32,
    pub grad_norm: f32,
    /// Share of tokens whose ratio was outside the clip range with a gradient cut.
    pub clip_fraction: f32,
    pub kl_parent: f32,
    pub kl_base: f32,
    pub learning_rate: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BeforeAfter {
    pub before: f32,
    pub after: f32,
}

/// How well demonstrations were expected that no update had learned from: each
/// is scored first and learned from afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Demonstrated {
    pub tokens: usize,
    /// Mean log-prob of a token under the base, in nats.
    pub base: f32,
    /// The same under the parent.
    pub parent: f32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    pub count: usize,
    pub mean: f32,
    pub p50: f32,
    pub p95: f32,
    pub max: f32,
}

impl Distribution {
    /// Nearest-rank percentiles; all zero for no values.
    pub fn of(mut values: Vec<f32>) -> Distribution {
        if values.is_empty() {
            return Distribution::default();
        }
        values.sort_by(f32::total_cmp);
        let rank = |q: f32| values[((values.len() - 1) as f32 * q).round() as usize];
        Distribution {
            count: values.len(),
            mean: values.iter().sum::<f32>() / values.len() as f32,
            p50: rank(0.5),
            p95: rank(0.95),
            max: rank(1.0),
        }
    }
}
