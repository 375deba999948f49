//! Critic-free, decoupled PPO on the tokens the user judged. Read it top to
//! bottom; docs/learning.md gives each step's source and the test that pins it.
//!
//! An episode is one completion: its tokens are the actions, its return is the
//! reward r of the whole, its advantage is A = r − V with a constant V. Three
//! frozen policies surround the trained π:
//!
//! - *behaviour*: what served the tokens, as recorded with them;
//! - *parent*: the adapter this job starts from, recomputed here. It is the
//!   proximal policy the ratio is clipped around (arXiv:2110.00641), so that an
//!   engine that rounds differently, or an older version that served, costs a
//!   weight and not the trust region;
//! - *base*: the model without an adapter, the anchor of the KL penalty.
//!
//! Beside the judged tokens there may be demonstrations: what the user typed
//! instead of a rejected offer, or where nothing was offered. Their log-prob is
//! raised, and so is that of what was taken, each as [`demonstration`] weighs it.

pub mod adamw;
pub mod batch;
pub mod demonstration;

use crate::limits::{LOG_RATIO_NATS_MAX, MICROBATCH_ROWS_MAX};
use crate::machine::threads::Threads;
use crate::model::lora::Lora;
use crate::model::prompt_pass::PromptKv;
use crate::model::{Tail, TailBatch, Transformer};
use crate::ppo::adamw::{AdamW, GradientSum};
use crate::ppo::batch::{Batch, Sample, Verdict};
use crate::ppo::demonstration::DemonstratedText;
use feedback::job::{BeforeAfter, Demonstrated, Distribution, Hyper, Phase, StepLog};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;
use std::time::Instant;

/// Separates the stream of minibatch orders from that of the initial weights.
const ORDER_STREAM: u64 = 0x5bd1_e995_9d1b_54a5;

/// ln π of one sampled token under each policy, and its advantage.
#[derive(Debug, Clone, Copy)]
pub struct TokenLogprobs {
    pub policy: f64,
    pub parent: f64,
    pub behaviour: f64,
    pub base: f64,
    pub advantage: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenLoss {
    pub loss: f64,
    /// ∂loss/∂ ln π.
    pub d_policy: f64,
    /// The clip cut the policy gradient.
    pub clipped: bool,
    /// k3 estimate of KL(parent‖π) from a token of the parent.
    pub kl_parent: f64,
    /// k3 estimate of KL(π‖base).
    pub kl_base: f64,
}

impl TokenLogprobs {
    /// −α·w · min(ρA, clip(ρ, 1 − clip_low, 1 + clip_high)·A) + β·k3, where
    /// ρ = π/parent and w = min(parent/behaviour, cap).
    pub fn loss(&self, hyper: &Hyper) -> TokenLoss {
        let log_ratio = clamp_log_ratio(self.policy - self.parent);
        let ratio = log_ratio.exp();
        let weight = clamp_log_ratio(self.parent - self.behaviour)
            .exp()
            .min(f64::from(hyper.max_importance_weight));
        let low = 1.0 - f64::from(hyper.clip_low);
        let high = 1.0 + f64::from(hyper.clip_high);
        let unclipped = ratio * self.advantage;
        let surrogate = unclipped.min(ratio.clamp(low, high) * self.advantage);
        // The minimum takes the clipped branch, which is constant in π.
        let clipped = surrogate < unclipped;
        let moves = !clipped && log_ratio.abs() < LOG_RATIO_NATS_MAX;
        let d_surrogate = if moves { unclipped } else { 0.0 };

        // k3 = e^d − 1 − d with d = ln base − ln π (Schulman, "Approximating KL
        // divergence", 2020): never negative, and unbiased for tokens of π.
        let distance = clamp_log_ratio(self.base - self.policy);
        let kl_base = distance.exp() - 1.0 - distance;
        let d_kl = if distance.abs() < LOG_RATIO_NATS_MAX { 1.0 - distance.exp() } else { 0.0 };

        let alpha = f64::from(hyper.policy_coefficient);
        let beta = f64::from(hyper.kl_coefficient);
        TokenLoss {
            loss: -alpha * weight * surrogate + beta * kl_base,
            d_policy: -alpha * weight * d_surrogate + beta * d_kl,
            clipped,
            kl_parent: ratio - 1.0 - log_ratio,
            kl_base,
        }
    }

    /// What this token adds to an estimate of KL(π‖base): k3, weighted by
    /// π/behaviour, for the behaviour drew it. Without the weight a token that was
    /// rejected, and made unlikely, counts e^d: few of them look like a policy that
    /// has lost its mind.
    pub fn kl_base(&self, hyper: &Hyper) -> f64 {
        let weight = clamp_log_ratio(self.policy - self.behaviour)
            .exp()
            .min(f64::from(hyper.max_importance_weight));
        let distance = clamp_log_ratio(self.base - self.policy);
        weight * (distance.exp() - 1.0 - distance)
    }
}

fn clamp_log_ratio(log_ratio: f64) -> f64 {
    log_ratio.clamp(-LOG_RATIO_NATS_MAX, LOG_RATIO_NATS_MAX)
}

/// What an update did.
pub struct UpdateResult {
    pub lora: Lora,
    pub optimizer: AdamW,
    pub steps: Vec<StepLog>,
    pub stopped_early: bool,
    pub mismatch: Distribution,
    pub ratio_before: Distribution,
    pub rewarded: Option<BeforeAfter>,
    pub unrewarded: Option<BeforeAfter>,
    pub demonstrated: Option<Demonstrated>,
    pub kl_base: f32,
    pub update_ratio: f32,
    /// When the references were known and the first step began.
    pub trained_from: Instant,
}

/// Where an update starts.
pub struct UpdateStart {
    pub lora: Lora,
    pub optimizer: AdamW,
    /// The adapter is new and changes nothing yet: the parent is the base.
    pub fresh: bool,
    pub seed: u64,
}

/// Tails that go through the model together, and what is known of their tokens.
struct Microbatch {
    tails: TailBatch,
    /// Index of each target's sample, and of the token in it.
    tokens: Vec<(usize, usize)>,
    parent: Vec<f32>,
    base: Vec<f32>,
}

impl Microbatch {
    /// The token and the verdict on it; `None` for one of a demonstration.
    fn token<'a>(
        &self,
        index: usize,
        policy: f32,
        samples: &'a [Sample],
    ) -> Option<(TokenLogprobs, &'a Verdict)> {
        let (sample, token) = self.tokens[index];
        let verdict = samples[sample].verdict.as_ref()?;
        let token = TokenLogprobs {
            policy: f64::from(policy),
            parent: f64::from(self.parent[index]),
            behaviour: f64::from(verdict.behaviour[token]),
            base: f64::from(self.base[index]),
            advantage: if verdict.credited[token] { f64::from(verdict.advantage) } else { 0.0 },
        };
        Some((token, verdict))
    }

    fn judged(&self, samples: &[Sample]) -> usize {
        self.tokens.iter().filter(|(sample, _)| samples[*sample].verdict.is_some()).count()
    }

    /// ∂loss/∂ ln π of every token, whose ln π is in `logprobs`; the loss is added to `log`.
    fn d_loss(
        &self,
        logprobs: &[f32],
        samples: &[Sample],
        weights: &LossWeights,
        hyper: &Hyper,
        log: &mut StepLog,
    ) -> Vec<f32> {
        let mut d_loss = Vec::with_capacity(logprobs.len());
        for (index, policy) in logprobs.iter().enumerate() {
            let mut d_policy = 0.0;
            if let Some(weight) = weights.demonstrated.get(&self.tokens[index].0) {
                // −ln π, not clipped.
                log.loss -= (f64::from(*policy) * weight) as f32;
                d_policy -= weight;
            }
            if let Some((token, _)) = self.token(index, *policy, samples) {
                let (loss, share) = (token.loss(hyper), weights.judged);
                log.loss += (loss.loss * share) as f32;
                log.clip_fraction += if loss.clipped { share as f32 } else { 0.0 };
                log.kl_parent += (loss.kl_parent * share) as f32;
                log.kl_base += (loss.kl_base * share) as f32;
                d_policy += loss.d_policy * share;
            }
            d_loss.push(d_policy as f32);
        }
        d_loss
    }
}

/// What every part of an update reads and none changes.
pub struct UpdateInputs<'a> {
    pub model: &'a Transformer<f32>,
    pub batch: &'a Batch,
    pub kv: &'a PromptKv,
    pub hyper: &'a Hyper,
    pub threads: &'a Threads,
}

impl<'a> UpdateInputs<'a> {
    fn samples(&self) -> &'a [Sample] {
        &self.batch.samples
    }

    /// ln π of the sampled tokens under the base, or under base and adapter.
    fn logprobs(&self, lora: Option<&Lora>, micro: &Microbatch) -> candle_core::Result<Vec<f32>> {
        self.threads.run(|| self.model.logprobs(lora, &micro.tails, self.kv))
    }
}

/// Is told after every microbatch how far the update is, and may end it with an error.
type UpdateProgress<'a> = dyn FnMut(Phase, usize, usize) -> anyhow::Result<()> + 'a;

/// Runs the epochs.
///
/// # Errors
/// The loss, a gradient or a log-prob is not finite, or `progress` returned an error.
pub fn update(
    inputs: &UpdateInputs,
    start: UpdateStart,
    progress: &mut UpdateProgress,
) -> anyhow::Result<UpdateResult> {
    let UpdateStart { lora, optimizer, fresh, seed } = start;
    let parent = lora.clone();
    let mut random = StdRng::seed_from_u64(seed ^ ORDER_STREAM);

    // 1. Minibatches.
    let mut minibatches = draw_minibatches(inputs, &mut random);

    // 2. The log-probs of the sampled tokens under the parent and the base.
    let known_parent = (!fresh).then_some(&parent);
    score_references(inputs, known_parent, &mut minibatches, progress)?;
    let (mismatch, ratio_before) = compare_with_server(&minibatches, inputs.samples());
    let demonstrated = mean_demonstrated(minibatches.iter().flatten(), inputs.samples());
    let trained_from = Instant::now();

    // 3. Epochs over the minibatches, one optimizer step each.
    let limit = UpdateLimit::new(&parent, inputs.hyper.max_update_ratio)?;
    let mut trainee = Trainee { inputs, lora, optimizer, limit, steps: Vec::new() };
    let stopped_early = trainee.run_epochs(&mut minibatches, &mut random, progress)?;

    // 4. The candidate on its own batch.
    let evaluation = evaluate(inputs, &trainee.lora, &minibatches, progress)?;
    let update_ratio = trainee.limit.ratio(&trainee.lora)?;
    if !evaluation.kl_base.is_finite() || !update_ratio.is_finite() {
        anyhow::bail!("the candidate holds numbers that are not finite; nothing was written");
    }
    Ok(UpdateResult {
        lora: trainee.lora,
        optimizer: trainee.optimizer,
        steps: trainee.steps,
        stopped_early,
        mismatch,
        ratio_before,
        rewarded: evaluation.rewarded.finish(),
        unrewarded: evaluation.unrewarded.finish(),
        demonstrated,
        kl_base: evaluation.kl_base,
        update_ratio,
        trained_from,
    })
}

/// Which episodes share a minibatch is drawn once; only the order of the minibatches
/// changes between epochs. The parent's log-probs are then computed by the very products
/// that the first step repeats: its ratio is 1, not 1 ± ε. A demonstration shares a
/// minibatch with the offer it replaced.
fn draw_minibatches(inputs: &UpdateInputs, random: &mut StdRng) -> Vec<Vec<Microbatch>> {
    let samples = inputs.samples();
    let mut episodes = samples_by_episode(samples);
    episodes.shuffle(random);
    episodes
        .chunks(inputs.hyper.minibatch_episodes)
        .map(|episodes| microbatches(&episodes.concat(), samples, inputs.kv))
        .collect()
}

/// Notes what the base and the parent say of the sampled tokens. Without a `parent`
/// the adapter is fresh, and the parent is the base.
fn score_references(
    inputs: &UpdateInputs,
    parent: Option<&Lora>,
    minibatches: &mut [Vec<Microbatch>],
    progress: &mut UpdateProgress,
) -> anyhow::Result<()> {
    let total = inputs.samples().len();
    let mut done = 0;
    for micro in minibatches.iter_mut().flatten() {
        micro.base = inputs.logprobs(None, micro)?;
        micro.parent = match parent {
            Some(parent) => inputs.logprobs(Some(parent), micro)?,
            None => micro.base.clone(),
        };
        if !micro.base.iter().chain(&micro.parent).all(|logprob| logprob.is_finite()) {
            anyhow::bail!("the base or the parent adapter gives log-probs that are not finite");
        }
        done += micro.tails.len();
        progress(Phase::Prompt, total + done, 2 * total)?;
    }
    Ok(())
}

/// How far the parent's log-probs, as the learner computes them, are from those that the
/// server recorded: |ln parent − ln behaviour| and parent/behaviour of each token that
/// the parent itself served.
fn compare_with_server(
    minibatches: &[Vec<Microbatch>],
    samples: &[Sample],
) -> (Distribution, Distribution) {
    let by_parent: Vec<TokenLogprobs> = minibatches
        .iter()
        .flatten()
        .flat_map(|micro| {
            (0..micro.tokens.len()).filter_map(|index| {
                let (token, verdict) = micro.token(index, micro.parent[index], samples)?;
                verdict.by_parent.then_some(token)
            })
        })
        .collect();
    let measured = |measure: fn(&TokenLogprobs) -> f64| {
        Distribution::of(by_parent.iter().map(|token| measure(token) as f32).collect())
    };
    (
        measured(|token| (token.parent - token.behaviour).abs()),
        measured(|token| clamp_log_ratio(token.parent - token.behaviour).exp()),
    )
}

/// The adapter that an update trains, and what takes its steps.
struct Trainee<'a> {
    inputs: &'a UpdateInputs<'a>,
    lora: Lora,
    optimizer: AdamW,
    limit: UpdateLimit,
    steps: Vec<StepLog>,
}

/// What a token weighs in the loss of its minibatch.
struct LossWeights {
    /// Each judged token.
    judged: f64,
    /// Each token of a sample that the demonstration loss raises, by sample.
    demonstrated: BTreeMap<usize, f64>,
}

impl Trainee<'_> {
    /// True if the policy went too far from the parent before the epochs were over.
    fn run_epochs(
        &mut self,
        minibatches: &mut [Vec<Microbatch>],
        random: &mut StdRng,
        progress: &mut UpdateProgress,
    ) -> anyhow::Result<bool> {
        let hyper = self.inputs.hyper;
        let total = self.inputs.samples().len() * hyper.epochs as usize;
        let mut done = 0;
        for _ in 0..hyper.epochs {
            minibatches.shuffle(random);
            for minibatch in minibatches.iter() {
                let (gradient, log) = self.gradient(minibatch, &mut |samples| {
                    done += samples;
                    progress(Phase::Train, done, total)
                })?;
                // The step is not taken: π is already this far from the parent.
                if log.kl_parent > hyper.target_kl {
                    return Ok(true);
                }
                self.step(gradient, log)?;
            }
        }
        Ok(false)
    }

    /// The gradient of a minibatch's loss, however the minibatch is cut into
    /// microbatches. `done` is told how many samples each of them had.
    fn gradient(
        &self,
        minibatch: &[Microbatch],
        done: &mut dyn FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<(GradientSum, StepLog)> {
        let UpdateInputs { model, kv, hyper, threads, .. } = self.inputs;
        let samples = self.inputs.samples();
        let judged: usize = minibatch.iter().map(|micro| micro.judged(samples)).sum();
        let weights = LossWeights {
            judged: 1.0 / judged.max(1) as f64,
            demonstrated: demonstration::token_weights(
                &demonstrated_texts(minibatch, samples),
                hyper,
            ),
        };
        let mut gradient = GradientSum::like(&self.lora)?;
        let mut log = StepLog::default();
        for micro in minibatch {
            let pass = threads.run(|| model.forward(&self.lora, &micro.tails, kv))?;
            let d_loss = micro.d_loss(&pass.logprobs, samples, &weights, hyper, &mut log);
            threads.run(|| gradient.add(&pass.backward(&d_loss)?))?;
            done(micro.tails.len())?;
        }
        Ok((gradient, log))
    }

    /// One optimizer step along a gradient whose loss is in `log`.
    fn step(&mut self, mut gradient: GradientSum, mut log: StepLog) -> anyhow::Result<()> {
        let UpdateInputs { hyper, threads, .. } = self.inputs;
        log.grad_norm = gradient.norm();
        if !log.loss.is_finite() || !log.grad_norm.is_finite() {
            anyhow::bail!(
                "step {} has a loss or a gradient that is not finite; nothing was written",
                self.steps.len() + 1
            );
        }
        gradient.clip(hyper.max_grad_norm);
        log.learning_rate =
            threads.run(|| self.optimizer.step(&mut self.lora, &gradient, hyper))?;
        self.limit.apply(&mut self.lora)?;
        self.steps.push(log);
        Ok(())
    }
}

/// What the candidate says of the judged tokens.
#[derive(Default)]
struct Evaluation {
    rewarded: LogprobMeans,
    unrewarded: LogprobMeans,
    kl_base: f32,
}

fn evaluate(
    inputs: &UpdateInputs,
    candidate: &Lora,
    minibatches: &[Vec<Microbatch>],
    progress: &mut UpdateProgress,
) -> anyhow::Result<Evaluation> {
    let samples = inputs.samples();
    let mut evaluation = Evaluation::default();
    let (mut kl_base, mut tokens, mut done) = (0.0, 0usize, 0);
    for micro in minibatches.iter().flatten() {
        done += micro.tails.len();
        if micro.judged(samples) == 0 {
            continue;
        }
        let after = inputs.logprobs(Some(candidate), micro)?;
        for (index, after) in after.iter().enumerate() {
            let Some((token, verdict)) = micro.token(index, *after, samples) else { continue };
            let Evaluation { rewarded, unrewarded, .. } = &mut evaluation;
            let means = if verdict.advantage > 0.0 { rewarded } else { unrewarded };
            means.add(micro.parent[index], *after);
            kl_base += token.kl_base(inputs.hyper);
            tokens += 1;
        }
        progress(Phase::Evaluate, done, samples.len())?;
    }
    evaluation.kl_base = (kl_base / tokens.max(1) as f64) as f32;
    Ok(evaluation)
}

/// The texts of a minibatch that are to be imitated, by sample.
fn demonstrated_texts(
    minibatch: &[Microbatch],
    samples: &[Sample],
) -> BTreeMap<usize, DemonstratedText> {
    let mut texts: BTreeMap<usize, DemonstratedText> = BTreeMap::new();
    for micro in minibatch {
        for (&(sample, _), &parent) in micro.tokens.iter().zip(&micro.parent) {
            if samples[sample].in_demonstration_loss {
                let text = texts.entry(sample).or_default();
                text.logprob += f64::from(parent);
                text.tokens += 1;
            }
        }
    }
    texts
}

/// Indices of samples, those of one episode together: a demonstration goes with
/// the offer it replaced.
fn samples_by_episode(samples: &[Sample]) -> Vec<Vec<usize>> {
    let mut episodes: Vec<Vec<usize>> = Vec::new();
    for index in 0..samples.len() {
        match episodes.last_mut() {
            Some(last) if samples[last[0]].seq == samples[index].seq => last.push(index),
            _ => episodes.push(vec![index]),
        }
    }
    episodes
}

/// What parent and base say of the demonstrations that neither has seen.
fn mean_demonstrated<'a>(
    minibatches: impl Iterator<Item = &'a Microbatch>,
    samples: &[Sample],
) -> Option<Demonstrated> {
    let (mut base, mut parent, mut tokens) = (0.0, 0.0, 0);
    for micro in minibatches {
        for (index, (sample, _)) in micro.tokens.iter().enumerate() {
            let sample = &samples[*sample];
            if sample.verdict.is_none() && !sample.replayed {
                base += f64::from(micro.base[index]);
                parent += f64::from(micro.parent[index]);
                tokens += 1;
            }
        }
    }
    let mean = |sum: f64| (sum / tokens as f64) as f32;
    (tokens > 0).then(|| Demonstrated { tokens, base: mean(base), parent: mean(parent) })
}

/// Cuts a minibatch into pieces of at most [`MICROBATCH_ROWS_MAX`] rows. Judged samples and
/// demonstrations keep apart: nobody asks what the candidate says of the latter.
fn cut_into_microbatches(episodes: &[usize], samples: &[Sample]) -> Vec<Vec<usize>> {
    let (judged, demonstrations): (Vec<usize>, Vec<usize>) =
        episodes.iter().partition(|index| samples[**index].verdict.is_some());
    let mut pieces = cut_by_rows(&judged, samples);
    pieces.extend(cut_by_rows(&demonstrations, samples));
    pieces
}

fn cut_by_rows(episodes: &[usize], samples: &[Sample]) -> Vec<Vec<usize>> {
    let mut pieces: Vec<Vec<usize>> = Vec::new();
    let mut rows = 0;
    for episode in episodes {
        let own = samples[*episode].tail.len();
        match pieces.last_mut() {
            Some(piece) if rows + own <= MICROBATCH_ROWS_MAX => piece.push(*episode),
            _ => {
                pieces.push(vec![*episode]);
                rows = 0;
            }
        }
        rows += own;
    }
    pieces
}

fn microbatches(episodes: &[usize], samples: &[Sample], kv: &PromptKv) -> Vec<Microbatch> {
    let piece = |piece: Vec<usize>| {
        let tails: Vec<Tail> = piece
            .iter()
            .map(|episode| {
                let sample = &samples[*episode];
                Tail {
                    place: kv.place(*episode),
                    past: sample.prompt.len(),
                    tokens: sample.tail.clone(),
                    targets: sample.targets.clone(),
                }
            })
            .collect();
        let tokens = piece
            .iter()
            .flat_map(|episode| (0..samples[*episode].targets.len()).map(|token| (*episode, token)))
            .collect();
        Microbatch { tails: TailBatch::new(&tails), tokens, parent: Vec::new(), base: Vec::new() }
    };
    cut_into_microbatches(episodes, samples).into_iter().map(piece).collect()
}

/// Keeps ‖θ − θ_parent‖ within a share of ‖θ_parent‖ over the whole job.
struct UpdateLimit {
    parent: Vec<Vec<f32>>,
    norm: f64,
    max_ratio: f64,
}

impl UpdateLimit {
    fn new(parent: &Lora, max_ratio: f32) -> candle_core::Result<UpdateLimit> {
        let parent: Vec<Vec<f32>> =
            parent.tensors().map(crate::kernels::values).collect::<candle_core::Result<_>>()?;
        let squares = |values: &Vec<f32>| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
        let norm = parent.iter().map(squares).sum::<f64>().sqrt();
        Ok(UpdateLimit { parent, norm, max_ratio: f64::from(max_ratio) })
    }

    /// ‖θ − θ_parent‖ / ‖θ_parent‖.
    fn ratio(&self, lora: &Lora) -> candle_core::Result<f32> {
        let mut squares = 0.0;
        for (tensor, parent) in lora.tensors().zip(&self.parent) {
            squares += crate::kernels::with_values(tensor, |values: &[f32]| {
                let moved = |(new, old): (&f32, &f32)| (f64::from(*new) - f64::from(*old)).powi(2);
                values.iter().zip(parent).map(moved).sum::<f64>()
            })?;
        }
        Ok((squares.sqrt() / self.norm.max(f64::MIN_POSITIVE)) as f32)
    }

    /// Scales the change back to the limit where a step went past it.
    fn apply(&self, lora: &mut Lora) -> candle_core::Result<()> {
        let ratio = f64::from(self.ratio(lora)?);
        if ratio <= self.max_ratio {
            return Ok(());
        }
        let keep = (self.max_ratio / ratio) as f32;
        let mut scaled = Vec::with_capacity(self.parent.len());
        for (tensor, parent) in lora.tensors().zip(&self.parent) {
            let (rows, width) = tensor.dims2()?;
            let mut values = crate::kernels::values::<f32>(tensor)?;
            for (value, parent) in values.iter_mut().zip(parent) {
                *value = parent + (*value - parent) * keep;
            }
            scaled.push(crate::kernels::matrix(values, rows, width)?);
        }
        lora.replace(scaled);
        Ok(())
    }
}

#[derive(Default)]
struct LogprobMeans {
    before: f64,
    after: f64,
    count: usize,
}

impl LogprobMeans {
    fn add(&mut self, before: f32, after: f32) {
        self.before += f64::from(before);
        self.after += f64::from(after);
        self.count += 1;
    }

    fn finish(self) -> Option<BeforeAfter> {
        let mean = |sum: f64| (sum / self.count as f64) as f32;
        (self.count > 0).then(|| BeforeAfter { before: mean(self.before), after: mean(self.after) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token whose ratio to the parent is `ratio`, served by the parent.
    fn token(ratio: f64, advantage: f64) -> TokenLogprobs {
        let parent = -1.5;
        let policy = parent + ratio.ln();
        TokenLogprobs { policy, parent, behaviour: parent, base: policy, advantage }
    }

    fn without_kl() -> Hyper {
        Hyper { kl_coefficient: 0.0, ..Hyper::default() }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    /// −∂/∂ln π of min(ρA, clip(ρ)A) is −ρA inside, and 0 where the minimum takes
    /// the clipped branch: ρ too high for A > 0, too low for A < 0.
    #[test]
    fn the_policy_gradient_is_cut_only_where_it_would_move_further_away() {
        let cases = [
            (1.0, 0.75, -0.75, false),
            (1.0, -0.25, 0.25, false),
            (1.27, 0.75, -1.27 * 0.75, false),
            (1.29, 0.75, 0.0, true),
            (1.29, -0.25, 1.29 * 0.25, false),
            (0.79, 0.75, -0.79 * 0.75, false),
            (0.79, -0.25, 0.0, true),
            (0.81, -0.25, 0.81 * 0.25, false),
        ];
        for (ratio, advantage, gradient, clipped) in cases {
            let loss = token(ratio, advantage).loss(&without_kl());
            assert!(close(loss.d_policy, gradient), "ρ {ratio}, A {advantage}: {loss:?}");
            assert_eq!(loss.clipped, clipped, "ρ {ratio}, A {advantage}");
        }
    }

    #[test]
    fn the_clipped_loss_stays_at_the_edge_of_the_trust_region() {
        // The hyper-parameters are f32: 1.28 and 0.8 to seven digits.
        assert!((token(2.0, 0.5).loss(&without_kl()).loss + 1.28 * 0.5).abs() < 1e-7);
        assert!((token(0.5, -0.5).loss(&without_kl()).loss - 0.8 * 0.5).abs() < 1e-7);
    }

    #[test]
    fn the_gradient_of_the_whole_loss_matches_central_differences() {
        const STEP: f64 = 1e-6;
        let hyper = Hyper { kl_coefficient: 0.3, ..Hyper::default() };
        for ratio in [0.5, 0.79, 0.9, 1.1, 1.29, 2.0] {
            for advantage in [0.75, -0.25] {
                for base in [-3.0, -1.4, -0.2] {
                    for behaviour in [-4.0, -1.6, -0.4] {
                        let at = TokenLogprobs { base, behaviour, ..token(ratio, advantage) };
                        let moved = |step: f64| {
                            TokenLogprobs { policy: at.policy + step, ..at }.loss(&hyper).loss
                        };
                        let numeric = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                        let analytic = at.loss(&hyper).d_policy;
                        assert!((numeric - analytic).abs() < 1e-7, "{at:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_importance_weight_corrects_the_behaviour_up_to_its_cap() {
        let hyper = without_kl();
        let gradient =
            |behaviour: f64| TokenLogprobs { behaviour, ..token(1.0, 0.5) }.loss(&hyper).d_policy;
        assert!(close(gradient(-1.5 - 1.5f64.ln()), -0.5 * 1.5), "parent 1.5 times likelier");
        assert!(close(gradient(-1.5 + 4f64.ln()), -0.5 / 4.0), "a quarter as likely");
        assert!(close(gradient(-9.0), -0.5 * 2.0), "capped");
    }

    #[test]
    fn the_kl_penalty_pulls_towards_the_base_from_either_side() {
        let hyper = Hyper { kl_coefficient: 1.0, ..Hyper::default() };
        let pull = |base: f64| TokenLogprobs { base, ..token(1.0, 0.0) }.loss(&hyper);
        assert_eq!(pull(-1.5).kl_base, 0.0);
        assert_eq!(pull(-1.5).d_policy, 0.0);
        assert!(pull(-1.0).d_policy < 0.0, "the base likes it more: raise it");
        assert!(pull(-2.0).d_policy > 0.0, "the base likes it less: lower it");
        assert!(pull(-1.0).kl_base > 0.0 && pull(-2.0).kl_base > 0.0);
    }

    /// Two tokens, base and behaviour (1/2, 1/2), policy (p, 1 − p): the expectation
    /// over what the behaviour draws is KL(π‖base).
    #[test]
    fn the_reported_kl_is_that_of_the_policy_however_far_it_went() {
        for p in [0.5, 0.9, 0.999, 1e-4] {
            let term = |policy: f64| {
                let half = 0.5f64.ln();
                let token = TokenLogprobs {
                    policy,
                    parent: half,
                    behaviour: half,
                    base: half,
                    advantage: 0.0,
                };
                token.kl_base(&Hyper::default())
            };
            let estimate = 0.5 * (term(f64::ln(p)) + term((1.0 - p).ln()));
            let exact = p * (2.0 * p).ln() + (1.0 - p) * (2.0 * (1.0 - p)).ln();
            assert!(close(estimate, exact), "{estimate} {exact}");
        }
    }

    #[test]
    fn no_distance_overflows() {
        for policy in [-1e4, -300.0, 0.0] {
            let far = TokenLogprobs {
                policy,
                parent: -150.0,
                behaviour: -1e4,
                base: -150.0,
                advantage: 0.75,
            };
            let loss = far.loss(&Hyper::default());
            assert!(loss.loss.is_finite() && loss.d_policy.is_finite(), "{loss:?}");
            assert!(loss.kl_parent.is_finite() && loss.kl_base.is_finite(), "{loss:?}");
        }
    }

    #[test]
    fn microbatches_keep_every_episode_and_the_row_limit() {
        let sample = |rows: usize| Sample {
            seq: 0,
            prompt: vec![],
            tail: vec![0; rows],
            targets: vec![],
            verdict: None,
            in_demonstration_loss: true,
            replayed: false,
        };
        let samples: Vec<Sample> = [100, 28, 1, 500, 60, 60].map(sample).into();
        assert_eq!(
            cut_into_microbatches(&[0, 1, 2, 3, 4, 5], &samples),
            [vec![0, 1], vec![2], vec![3], vec![4, 5]]
        );
    }
}
