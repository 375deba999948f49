//! Episodes → samples: what PPO trains on, and what it leaves out.
//!
//! Dropped with a count (ordinary life): no label, served too long ago, served
//! by another base model, nothing shown. An error (a broken record that a
//! correct daemon never writes): everything [`BatchError`] lists.

use crate::head::Target;
use feedback::episode::Episode;
use feedback::event::{AdapterVersion, Completion};
use feedback::job::Hyper;
use feedback::reward::RewardVersion;
use models::vocab::Vocab;
use std::collections::HashMap;
use std::sync::Arc;

/// Longest prompt, in tokens.
pub const PROMPT_TOKENS_LIMIT: usize = 4096;

/// Longest tail, in tokens: the prompt from `adapter_from` on and what was generated.
pub const TAIL_TOKENS_LIMIT: usize = 1024;

// A prompt must fit one prompt pass.
const _: () = assert!(PROMPT_TOKENS_LIMIT <= crate::prompt::GROUP_ROWS);

/// Highest recorded log-prob taken for rounding, in nats.
const LOGPROB_ROUNDING: f32 = 1e-3;

/// One episode as PPO sees it.
#[derive(Debug, Clone)]
pub struct Sample {
    pub seq: u64,
    /// `prompt[..adapter_from]`, the base's part.
    pub prompt: Vec<u32>,
    /// `prompt[adapter_from..]` and every trained token but the last: the
    /// adapter's part.
    pub tail: Vec<u32>,
    /// The trained tokens, with the softmax each was drawn from.
    pub targets: Vec<Target>,
    /// Recorded ln π_behaviour of each target, in nats.
    pub behaviour: Vec<f32>,
    pub reward: f32,
    /// reward − V.
    pub advantage: f32,
    /// Served by the very adapter this job starts from.
    pub by_parent: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    pub unlabelled: usize,
    pub stale: usize,
    /// Served by another base model.
    pub foreign: usize,
    /// Nothing was shown.
    pub empty: usize,
}

impl Dropped {
    pub fn total(&self) -> usize {
        self.unlabelled + self.stale + self.foreign + self.empty
    }
}

#[derive(Debug)]
pub struct Batch {
    /// Sorted so that episodes of one document follow each other.
    pub samples: Vec<Sample>,
    pub dropped: Dropped,
    /// The token every tail begins with, if it is the same one and a control
    /// token: where llama.cpp should switch the adapter on.
    pub invocation: Option<u32>,
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum BatchError {
    #[error(
        "no episode to learn from: of {episodes}, {} unlabelled, {} stale, {} of another base, {} empty",
        dropped.unlabelled, dropped.stale, dropped.foreign, dropped.empty
    )]
    Nothing { episodes: usize, dropped: Dropped },
    #[error("episode {seq}: {what}; drop it from the batch")]
    Broken { seq: u64, what: String },
}

/// What the batch is made against.
pub struct Context<'a> {
    pub vocab: &'a Vocab,
    pub base_sha256: &'a str,
    /// Tokens the base was trained to see.
    pub context: usize,
    /// Version of the adapter the job starts from; 0 is the base.
    pub parent: AdapterVersion,
    pub reward: RewardVersion,
    pub hyper: &'a Hyper,
}

impl Batch {
    pub fn new(episodes: &[Episode], context: &Context) -> Result<Batch, BatchError> {
        let mut order: Vec<&Episode> = episodes.iter().collect();
        order.sort_by(|a, b| (&a.completion.path, a.seq).cmp(&(&b.completion.path, b.seq)));
        let mut dropped = Dropped::default();
        let mut samples = Vec::with_capacity(order.len());
        let mut healing = Healing { vocab: context.vocab, known: HashMap::new() };
        for episode in order {
            let completion = &episode.completion;
            let Some(reward) = episode.reward(context.reward) else {
                dropped.unlabelled += 1;
                continue;
            };
            if completion.model_sha256 != context.base_sha256 {
                dropped.foreign += 1;
                continue;
            }
            // Counted both ways: after a roll-back an episode may come from a
            // version that is newer than the parent, and as far from it.
            if completion.adapter.abs_diff(context.parent) > context.hyper.max_staleness {
                dropped.stale += 1;
                continue;
            }
            if episode.is_silence() || completion.tokens.is_empty() {
                dropped.empty += 1;
                continue;
            }
            let broken = |what: String| BatchError::Broken { seq: episode.seq, what };
            check(completion, context).map_err(broken)?;
            samples.push(sample(episode, reward, context, &mut healing).map_err(broken)?);
        }
        if samples.is_empty() {
            return Err(BatchError::Nothing { episodes: episodes.len(), dropped });
        }
        let invocation = samples[0].tail[0];
        let shared = context.vocab.piece(invocation).is_empty()
            && samples.iter().all(|sample| sample.tail[0] == invocation);
        Ok(Batch { samples, dropped, invocation: shared.then_some(invocation) })
    }

    pub fn tokens(&self) -> usize {
        self.samples.iter().map(|sample| sample.targets.len()).sum()
    }

    pub fn mean_of(&self, value: impl Fn(&Sample) -> f32) -> f32 {
        self.samples.iter().map(value).sum::<f32>() / self.samples.len() as f32
    }
}

/// Everything about a record that would make its numbers meaningless.
fn check(completion: &Completion, context: &Context) -> Result<(), String> {
    let prompt = &completion.prompt;
    if prompt.len() > PROMPT_TOKENS_LIMIT {
        return Err(format!(
            "its prompt has {} tokens, the limit is {PROMPT_TOKENS_LIMIT}",
            prompt.len()
        ));
    }
    if completion.adapter_from >= prompt.len() {
        return Err(format!(
            "adapter_from is {}, but its prompt has {} tokens and the last one must be the adapter's",
            completion.adapter_from,
            prompt.len()
        ));
    }
    let tail = prompt.len() - completion.adapter_from + completion.tokens.len();
    if tail > TAIL_TOKENS_LIMIT {
        return Err(format!(
            "{tail} tokens from adapter_from on, the limit is {TAIL_TOKENS_LIMIT}"
        ));
    }
    if prompt.len() + completion.tokens.len() > context.context {
        return Err(format!("it is longer than the model's context of {} tokens", context.context));
    }
    let ids = prompt.iter().copied().chain(completion.tokens.iter().map(|token| token.id));
    if let Some(id) = ids.into_iter().find(|id| *id as usize >= context.vocab.len()) {
        return Err(format!("token {id} is out of the vocabulary of {}", context.vocab.len()));
    }
    for (index, token) in completion.tokens.iter().enumerate() {
        if !token.logprob.is_finite() || token.logprob > LOGPROB_ROUNDING {
            return Err(format!("the recorded log-prob of token {index} is {}", token.logprob));
        }
    }
    let temperature = completion.sampling.policy_temperature();
    if !temperature.is_finite() {
        return Err(format!("its temperature is {temperature}"));
    }
    Ok(())
}

fn sample(
    episode: &Episode,
    reward: f32,
    context: &Context,
    healing: &mut Healing,
) -> Result<Sample, String> {
    let completion = &episode.completion;
    let count = trained(completion, context.vocab);
    let temperature = f64::from(completion.sampling.policy_temperature());
    let mut need = completion.healing.as_bytes();
    let mut targets = Vec::with_capacity(count);
    for (index, token) in completion.tokens[..count].iter().enumerate() {
        let allowed = match need {
            [] => None,
            _ => Some(healing.allowed(need)),
        };
        if allowed.as_ref().is_some_and(|allowed| allowed.binary_search(&token.id).is_err()) {
            return Err(format!("token {index} does not reproduce the text that healing cut"));
        }
        let piece = context.vocab.piece(token.id);
        need = if need.is_empty() { need } else { &need[piece.len().min(need.len())..] };
        targets.push(Target { token: token.id, temperature, allowed });
    }
    let (prompt, ours) = completion.prompt.split_at(completion.adapter_from);
    let fed = completion.tokens[..count - 1].iter().map(|token| token.id);
    Ok(Sample {
        seq: episode.seq,
        prompt: prompt.to_vec(),
        tail: ours.iter().copied().chain(fed).collect(),
        behaviour: completion.tokens[..count].iter().map(|token| token.logprob).collect(),
        targets,
        reward,
        advantage: reward - context.hyper.baseline,
        by_parent: completion.adapter == context.parent,
    })
}

/// How many of the tokens the user's verdict is about, counted from the first:
/// those that reach into the shown text or come before it, and the policy's own
/// stop right behind it. What post-processing cut off, nobody judged.
fn trained(completion: &Completion, vocab: &Vocab) -> usize {
    let end = completion.shown_from + completion.shown.len();
    let mut at = 0;
    let mut count = 0;
    for token in &completion.tokens {
        if at >= end {
            break;
        }
        at += vocab.piece(token.id).len();
        count += 1;
    }
    let stops_here = count + 1 == completion.tokens.len() && completion.stop.is_policy_choice();
    if stops_here && at == end { count + 1 } else { count }
}

/// The token sets of healing steps; episodes of one place ask for the same ones.
struct Healing<'a> {
    vocab: &'a Vocab,
    known: HashMap<Vec<u8>, Arc<[u32]>>,
}

impl Healing<'_> {
    fn allowed(&mut self, need: &[u8]) -> Arc<[u32]> {
        if let Some(allowed) = self.known.get(need) {
            return allowed.clone();
        }
        let allowed: Arc<[u32]> =
            (0..self.vocab.len() as u32).filter(|id| self.vocab.fits(*id, need)).collect();
        self.known.insert(need.to_vec(), allowed.clone());
        allowed
    }
}
