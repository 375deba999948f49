//! The border between daemon and learner: JSON lines, one job on each line of the
//! learner's stdin, one [`LearnerLine`] on each line of its stdout.
//!
//! A job is a pure function from base, parent adapter, optimizer state, frozen batch and
//! seed to a candidate adapter, its optimizer state and a report. The same job gives the
//! same bytes.

use crate::episode::Episode;
use crate::event::{AdapterVersion, OfferId};
use crate::limits::LORA_RANK_MAX;
use crate::reward::VALUE;
use crate::schema::{self, SchemaError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Version of these lines. A learner refuses a job that has another version.
pub const JOB_FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub format: u32,
    pub id: String,
    pub base: Base,
    /// The adapter to continue from; `None` starts a fresh adapter on the base.
    pub parent: Option<Parent>,
    /// The part of the adapter that is trained.
    pub train: Train,
    /// Version number the candidate will carry if it is registered.
    pub candidate: AdapterVersion,
    /// The place where the learner writes the candidate adapter (GGUF).
    pub adapter_out: PathBuf,
    /// The place where the learner writes the optimizer state.
    pub optimizer_out: PathBuf,
    pub seed: u64,
    pub hyper: Hyper,
    pub episodes: Vec<Episode>,
    /// The memory that the learner may use. 0 means as much as there is.
    pub memory_limit_mb: u64,
}

/// The part of an adapter that a job trains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Train {
    /// Everything but what a team shares. The candidate is the whole adapter.
    #[default]
    Private,
    /// The part that a team shares, and nothing else. The parent adapter was composed with the
    /// shared part in this file (`models::team`). Instead of an adapter, `adapter_out` gets the
    /// values of the shared part after training, as little-endian 32-bit floats; `optimizer_out` is
    /// not written.
    Shared { core: PathBuf },
}

/// A line on stdin that is no job: it ends the job of this id.
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

/// Every number of PPO that can be set, with the range in which PPO can use it.
/// docs/book/src/learning.md gives the source of each.
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
    /// Adam's step size after the warm-up.
    #[schemars(range(min = 0.0))]
    pub learning_rate: f32,
    /// Optimizer steps over which the learning rate rises linearly to its value, counted
    /// over the adapter's whole life.
    pub warmup_steps: u32,
    /// The gradient is clipped to this global L2 norm.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_grad_norm: f32,
    /// Limit of the L2 norm of the adapter's change in one job, relative to the L2 norm of
    /// all its weights. A step past it is scaled back.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_update_ratio: f32,
    /// Passes over the batch.
    #[schemars(range(min = 1))]
    pub epochs: u32,
    /// Episodes per optimizer step.
    #[schemars(range(min = 1))]
    pub minibatch_episodes: usize,
    /// PPO's ratio is clipped to [1 − clip_low, 1 + clip_high]; this is the lower side.
    #[schemars(range(min = 0.0), extend("exclusiveMaximum" = 1))]
    pub clip_low: f32,
    /// The upper side of the range that PPO's ratio is clipped to.
    #[schemars(range(min = 0.0))]
    pub clip_high: f32,
    /// V: the reward at which showing an offer and showing nothing are worth the same.
    pub baseline: f32,
    /// Weight of the KL(π‖base) penalty.
    #[schemars(range(min = 0.0))]
    pub kl_coefficient: f32,
    /// Upper limit of the importance weight π_parent/π_behaviour.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_importance_weight: f32,
    /// Episodes that were served by an adapter more than this many versions older than
    /// the parent are dropped.
    pub max_staleness: u32,
    /// Training stops early when the mean KL(parent‖π) passes this, in nats per token.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub target_kl: f32,
    /// Weight of the policy's loss on judged offers. With 0 only demonstrations are
    /// learned from.
    #[schemars(range(min = 0.0))]
    pub policy_coefficient: f32,
    /// Weight of the demonstration loss: how strongly the adapter learns what the user
    /// typed instead of an offer, or where nothing was offered. 0 switches it off.
    #[schemars(range(min = 0.0))]
    pub demonstration_coefficient: f32,
}

impl Default for Hyper {
    fn default() -> Self {
        Hyper {
            lora_rank: 16,
            lora_alpha: 32.0,
            learning_rate: 1e-4,
            warmup_steps: 4,
            max_grad_norm: 1.0,
            max_update_ratio: 0.1,
            epochs: 2,
            minibatch_episodes: 8,
            clip_low: 0.2,
            clip_high: 0.28,
            baseline: VALUE,
            kl_coefficient: 0.02,
            max_importance_weight: 2.0,
            max_staleness: 4,
            target_kl: 0.1,
            policy_coefficient: 1.0,
            demonstration_coefficient: 1.0,
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
    /// The learner has started and waits for jobs.
    Ready {
        format: u32,
        version: String,
    },
    Progress(JobProgress),
    /// The job is done. The files named in it are written and synced.
    Done(Box<UpdateReport>),
    /// The job was cancelled. No file was left behind.
    Cancelled {
        job: String,
    },
    /// The job failed. No file was left behind.
    Failed {
        job: String,
        error: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobProgress {
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
    /// Computing each episode's prompt KV and reference log-probabilities.
    Prompt,
    /// PPO steps, counted in episodes.
    Train,
    /// Measuring the candidate on its own batch.
    Evaluate,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UpdateReport {
    pub job: String,
    pub candidate: AdapterVersion,
    pub adapter_sha256: String,
    pub episodes_used: usize,
    pub episodes_dropped: usize,
    /// The offers of new episodes whose prompts did not fit into memory with those of the others,
    /// but do alone. They wait for the next update.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OfferId>,
    /// Texts that the user typed instead of an offer, or where nothing was offered.
    pub demonstrations: usize,
    pub tokens_trained: usize,
    pub steps: u32,
    /// `target_kl` ended the epochs early.
    pub stopped_early: bool,
    pub mean_reward: f32,
    pub mean_advantage: f32,
    /// |learner − server| per token, in nats, for episodes that the parent itself served.
    pub mismatch: Distribution,
    /// π_new/π_behaviour per token before the first step, for the same episodes.
    pub ratio_before: Distribution,
    /// The optimizer's steps, first to last. Each number is a mean over the step's tokens.
    pub steps_log: Vec<StepLog>,
    /// Mean per-token log-probability of rewarded offers (r > V), before and after.
    pub logprob_rewarded: Option<BeforeAfter>,
    /// The same for the others (r ≤ V).
    pub logprob_unrewarded: Option<BeforeAfter>,
    /// The likelihood of the demonstrations before they were learned from.
    pub demonstrated: Option<Demonstrated>,
    /// KL(π‖base) after the update, estimated over the trained tokens: the mean of k3,
    /// weighted by π/behaviour.
    pub kl_base: f32,
    /// L2 norm of the adapter's change over the L2 norm of the adapter.
    pub update_ratio: f32,
    /// Texts whose prompt was known: the server had computed it, or in a rehearsal another learner.
    pub prompts_known: usize,
    /// The name of the GPU that computed the passes; `None` for the CPU.
    pub gpu: Option<String>,
    pub load_ms: u64,
    pub prompt_ms: u64,
    pub train_ms: u64,
    pub total_ms: u64,
    /// The parts of `prompt_ms` and `train_ms`, and what comes after them.
    #[serde(default)]
    pub phases: PhaseTimes,
    /// The largest resident memory of the learner since it started.
    pub peak_memory_mb: u64,
}

/// The time of each phase of a job, in ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhaseTimes {
    /// The keys and values of prompts that were not known.
    pub prompts: u64,
    /// The log-probs under the base and the parent.
    pub references: u64,
    /// The forward passes of all epochs, with the head.
    pub forward: u64,
    /// The backward passes of all epochs.
    pub backward: u64,
    /// The steps of the optimizer, with the limits on the gradient and on the update.
    pub optimizer: u64,
    /// The log-probs under the candidate.
    pub check: u64,
    /// Writing the candidate and the state of the optimizer.
    pub write: u64,
    /// The time for which the daemon had stopped the learner, because the engine computed. The
    /// other phases contain it too.
    pub stopped: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StepLog {
    pub loss: f32,
    pub grad_norm: f32,
    /// Share of tokens whose gradient was cut because their ratio left the clip range.
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

/// The likelihood of demonstrations that no update had learned from. Each is scored first
/// and learned from afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Demonstrated {
    pub tokens: usize,
    /// Mean log-probability of a token under the base, in nats.
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
    /// Percentiles are those of the nearest rank. Without values all fields are 0.
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
