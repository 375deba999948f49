//! Critic-free, decoupled PPO on the tokens that the user judged.
//!
//! Read [`loss`] and then this file, from top to bottom. The page on learning in the
//! documentation gives the source of each detail and the test that checks it.
//!
//! An episode is one completion. Its tokens are the actions, its return is the reward r of
//! the whole completion, and its advantage is A = r − V with a constant V. Next to the
//! policy π, which is trained, there are three fixed policies:
//!
//! - The *behaviour* drew the tokens. Its log-probs are recorded with them.
//! - The *parent* is the adapter that the job starts from. Its log-probs are computed here.
//!   The ratio is clipped around the parent, which is the proximal policy of
//!   arXiv:2110.00641. If the engine rounds differently, or an older version has served,
//!   that changes an importance weight and not the trust region.
//! - The *base* is the model without an adapter. The KL penalty pulls towards it.
//!
//! Next to the judged tokens there may be demonstrations: what the user typed instead of a
//! rejected offer, or where nothing was offered. The demonstration loss raises their
//! log-prob, and that of accepted text: maximum likelihood, in which each token weighs the same.

pub mod adam;
pub mod batch;
pub mod loss;
mod microbatch;
pub mod square;
pub mod trained_part;
mod update_limit;

use crate::machine::threads::Threads;
use crate::model::lora::Lora;
use crate::model::prompt_pass::PromptKv;
use crate::model::{TailBatch, Transformer};
use crate::ppo::adam::{Adam, GradientSum};
use crate::ppo::batch::{Batch, Sample};
use crate::ppo::loss::{TokenLogprobs, clamp_log_ratio};
use crate::ppo::microbatch::{
    LossWeights, Microbatch, microbatches, samples_by_episode, scored_together,
};
use crate::ppo::trained_part::TrainedPart;
use crate::ppo::update_limit::UpdateLimit;
use feedback::job::{BeforeAfter, Demonstrated, Distribution, Hyper, Phase, StepLog};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use std::time::{Duration, Instant};

/// Makes the random order of the minibatches independent of the random initial weights.
const ORDER_STREAM: u64 = 0x5bd1_e995_9d1b_54a5;

/// The result of an update, and what the report says about it.
pub struct UpdateResult {
    pub lora: Lora,
    pub part: TrainedPart,
    pub optimizer: Adam,
    pub steps: Vec<StepLog>,
    pub stopped_early: bool,
    pub mismatch: Distribution,
    pub ratio_before: Distribution,
    pub rewarded: Option<BeforeAfter>,
    pub unrewarded: Option<BeforeAfter>,
    pub demonstrated: Option<Demonstrated>,
    pub kl_base: f32,
    pub update_ratio: f32,
    /// The time when the reference log-probs were computed and the first step began.
    pub trained_from: Instant,
    pub times: UpdateTimes,
}

/// The time that each phase of an update took.
#[derive(Debug, Clone, Copy, Default)]
pub struct UpdateTimes {
    /// The log-probs under the base and the parent.
    pub references: Duration,
    pub forward: Duration,
    pub backward: Duration,
    pub optimizer: Duration,
    /// The log-probs under the candidate.
    pub check: Duration,
}

/// The start of an update.
pub struct UpdateStart {
    pub lora: Lora,
    pub optimizer: Adam,
    pub part: TrainedPart,
    /// The adapter is new and changes nothing yet. The parent is then the base.
    pub fresh: bool,
    pub seed: u64,
}

/// The inputs that every part of an update reads and no part changes.
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
    fn logprobs(&self, lora: Option<&Lora>, tails: &TailBatch) -> candle_core::Result<Vec<f32>> {
        self.threads.run(|| self.model.logprobs(lora, tails, self.kv))
    }
}

/// Called after every pass over some samples with the phase, the samples that are done and their
/// total number. An error ends the update.
type UpdateProgress<'a> = dyn FnMut(Phase, usize, usize) -> anyhow::Result<()> + 'a;

/// Trains the adapter on a batch.
///
/// # Errors
/// A log-prob, the loss, a gradient or a weight is not finite, or `progress` returned an
/// error.
pub fn update(
    inputs: &UpdateInputs,
    start: UpdateStart,
    progress: &mut UpdateProgress,
) -> anyhow::Result<UpdateResult> {
    let UpdateStart { lora, optimizer, part, fresh, seed } = start;
    let parent = lora.clone();
    let mut random = StdRng::seed_from_u64(seed ^ ORDER_STREAM);

    // 1. Minibatches.
    let mut minibatches = draw_minibatches(inputs, lora.first_layer(), &mut random);

    // 2. The log-probs of the sampled tokens under the parent and the base.
    let known_parent = (!fresh).then_some(&parent);
    let started = Instant::now();
    score_references(inputs, known_parent, &mut minibatches, progress)?;
    let (mismatch, ratio_before) = compare_with_server(&minibatches, inputs.samples());
    let demonstrated = mean_demonstrated(minibatches.iter().flatten(), inputs.samples());
    let trained_from = Instant::now();
    let times = UpdateTimes { references: trained_from - started, ..UpdateTimes::default() };

    // 3. Epochs over the minibatches, one optimizer step each.
    let limit = UpdateLimit::new(&parent, &part, inputs.hyper.max_update_ratio)?;
    // From here on the limit alone knows the parent's values.
    drop(parent);
    let mut trainee = Trainee { inputs, lora, optimizer, part, limit, steps: Vec::new(), times };
    let stopped_early = trainee.run_epochs(&mut minibatches, &mut random, progress)?;

    // 4. The candidate on its own batch.
    let started = Instant::now();
    let evaluation = evaluate(inputs, &trainee.lora, &minibatches, progress)?;
    trainee.times.check = started.elapsed();
    let update_ratio = trainee.limit.ratio(&trainee.lora, &trainee.part)?;
    if !evaluation.kl_base.is_finite() || !update_ratio.is_finite() {
        anyhow::bail!("the candidate holds numbers that are not finite; nothing was written");
    }
    Ok(UpdateResult {
        lora: trainee.lora,
        part: trainee.part,
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
        times: trainee.times,
    })
}

/// Draws which episodes share a minibatch. Epochs change only the order of the minibatches. A
/// demonstration shares a minibatch with the offer that it replaced.
fn draw_minibatches(
    inputs: &UpdateInputs,
    first_adapted: usize,
    random: &mut StdRng,
) -> Vec<Vec<Microbatch>> {
    let samples = inputs.samples();
    let mut episodes = samples_by_episode(samples);
    episodes.shuffle(random);
    episodes
        .chunks(inputs.hyper.minibatch_episodes)
        .map(|episodes| microbatches(&episodes.concat(), samples, inputs.kv, first_adapted))
        .collect()
}

/// Computes the log-probs of the sampled tokens under the base and the parent. `parent` is
/// `None` for a fresh adapter, whose parent is the base.
///
/// On a CPU no row of a pass depends on the others, so that the first step finds the same log-probs
/// in its microbatches, and its ratio is 1 and not 1 ± ε.
fn score_references(
    inputs: &UpdateInputs,
    parent: Option<&Lora>,
    minibatches: &mut [Vec<Microbatch>],
    progress: &mut UpdateProgress,
) -> anyhow::Result<()> {
    let total = inputs.samples().len();
    let mut done = 0;
    let mut all: Vec<&mut Microbatch> = minibatches.iter_mut().flatten().collect();
    for run in scored_together(&all.iter().map(|micro| micro.tails.rows()).collect::<Vec<_>>()) {
        let micros = &mut all[run];
        let parts: Vec<_> = micros.iter().map(|micro| (&micro.tails, micro.tails.len())).collect();
        let tails = TailBatch::joined(&parts)?;
        let base = inputs.logprobs(None, &tails)?;
        let parent = match parent {
            Some(parent) => inputs.logprobs(Some(parent), &tails)?,
            None => base.clone(),
        };
        if !base.iter().chain(&parent).all(|logprob| logprob.is_finite()) {
            anyhow::bail!("the base or the parent adapter gives log-probs that are not finite");
        }
        let (mut first, mut target) = (0, 0);
        for micro in micros {
            let own = target..target + micro.tokens.len();
            micro.base = base[own.clone()].to_vec();
            micro.parent = parent[own.clone()].to_vec();
            micro.tails.take_below(&tails, first)?;
            (first, target) = (first + micro.tails.rows(), own.end);
        }
        done += tails.len();
        progress(Phase::Prompt, total + done, 2 * total)?;
    }
    Ok(())
}

/// Compares the parent's log-probs, as the learner computes them, with those that the server
/// has recorded: |ln parent − ln behaviour| and parent/behaviour, for each token that the
/// parent itself has served.
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

/// The adapter that is trained, its optimizer, and the steps so far.
struct Trainee<'a> {
    inputs: &'a UpdateInputs<'a>,
    lora: Lora,
    optimizer: Adam,
    part: TrainedPart,
    limit: UpdateLimit,
    steps: Vec<StepLog>,
    times: UpdateTimes,
}

impl Trainee<'_> {
    /// Takes one step for each minibatch of each epoch. Returns true if it stopped early
    /// because the policy was too far from the parent.
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
                // π is too far from the parent already, so this step is not taken.
                if log.kl_parent > hyper.target_kl {
                    return Ok(true);
                }
                self.step(gradient, log)?;
            }
        }
        Ok(false)
    }

    /// The gradient of the loss of a minibatch. The loss is a mean over its tokens, however
    /// it is cut into microbatches. `done` is called with the samples of each microbatch.
    fn gradient(
        &mut self,
        minibatch: &[Microbatch],
        done: &mut dyn FnMut(usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<(GradientSum, StepLog)> {
        let UpdateInputs { model, kv, hyper, threads, .. } = self.inputs;
        let samples = self.inputs.samples();
        let all = |count: fn(&Microbatch, &[Sample]) -> usize| {
            let all: usize = minibatch.iter().map(|micro| count(micro, samples)).sum();
            all.max(1) as f64
        };
        let weights = LossWeights {
            judged: 1.0 / all(Microbatch::offered),
            trained: 1.0 / all(Microbatch::judged),
            demonstrated: f64::from(hyper.demonstration_coefficient)
                / all(Microbatch::demonstrated),
        };
        let (trained, lora) = (&self.part, &self.lora);
        let mut gradient = GradientSum::zero(&trained.lengths(lora));
        let mut log = StepLog::default();
        for micro in minibatch {
            let started = Instant::now();
            let pass = threads.run(|| model.forward(lora, &micro.tails, kv))?;
            self.times.forward += started.elapsed();
            let d_loss = micro.d_loss(&pass.logprobs, samples, &weights, hyper, &mut log);
            let started = Instant::now();
            threads.run(|| {
                pass.backward_into(&d_loss, &mut |pair, part| {
                    trained.add(&mut gradient, pair, &part, lora)
                })
            })?;
            self.times.backward += started.elapsed();
            done(micro.tails.len())?;
        }
        Ok((gradient, log))
    }

    /// Takes one optimizer step. `log` has the loss that the gradient belongs to.
    fn step(&mut self, mut gradient: GradientSum, mut log: StepLog) -> anyhow::Result<()> {
        let started = Instant::now();
        let UpdateInputs { hyper, threads, .. } = self.inputs;
        self.part.restrict(&mut gradient, &self.lora)?;
        log.grad_norm = gradient.norm();
        if !log.loss.is_finite() || !log.grad_norm.is_finite() {
            anyhow::bail!(
                "step {} has a loss or a gradient that is not finite; nothing was written",
                self.steps.len() + 1
            );
        }
        gradient.clip(hyper.max_grad_norm);
        let Trainee { part, optimizer, lora, .. } = self;
        log.learning_rate = threads.run(|| part.step(optimizer, lora, &gradient, hyper))?;
        // What is learned for a team is limited by its norm, where it is sent.
        if !matches!(self.part, TrainedPart::Shared(_)) {
            self.limit.apply(&mut self.lora, &mut self.part)?;
        }
        self.steps.push(log);
        self.times.optimizer += started.elapsed();
        Ok(())
    }
}

/// The judged tokens under the candidate.
#[derive(Default)]
struct Evaluation {
    rewarded: LogprobMeans,
    unrewarded: LogprobMeans,
    kl_base: f32,
}

/// Computes the log-probs of the judged tokens under the candidate.
fn evaluate(
    inputs: &UpdateInputs,
    candidate: &Lora,
    minibatches: &[Vec<Microbatch>],
    progress: &mut UpdateProgress,
) -> anyhow::Result<Evaluation> {
    let samples = inputs.samples();
    let mut evaluation = Evaluation::default();
    let (mut kl_base, mut tokens, mut done) = (0.0, 0usize, 0);
    let judged: Vec<(&Microbatch, usize)> = minibatches
        .iter()
        .flatten()
        .map(|micro| (micro, micro.judged_tails(samples)))
        .filter(|(_, tails)| *tails > 0)
        .collect();
    let total = judged.iter().map(|(_, tails)| tails).sum();
    let rows: Vec<usize> = judged.iter().map(|(micro, _)| micro.tails.rows()).collect();
    for run in scored_together(&rows) {
        let micros = &judged[run];
        let parts: Vec<_> = micros.iter().map(|(micro, tails)| (&micro.tails, *tails)).collect();
        let tails = TailBatch::joined(&parts)?;
        let mut after = inputs.logprobs(Some(candidate), &tails)?.into_iter();
        for (micro, _) in micros {
            for (index, after) in (0..micro.judged(samples)).zip(after.by_ref()) {
                let Some((token, verdict)) = micro.token(index, after, samples) else { continue };
                let Evaluation { rewarded, unrewarded, .. } = &mut evaluation;
                let means = if verdict.advantage > 0.0 { rewarded } else { unrewarded };
                means.add(micro.parent[index], after);
                kl_base += token.kl_base(inputs.hyper);
                tokens += 1;
            }
        }
        done += tails.len();
        progress(Phase::Evaluate, done, total)?;
    }
    evaluation.kl_base = (kl_base / tokens.max(1) as f64) as f32;
    Ok(evaluation)
}

/// The mean log-prob of the demonstrations under the parent and the base.
fn mean_demonstrated<'a>(
    minibatches: impl Iterator<Item = &'a Microbatch>,
    samples: &[Sample],
) -> Option<Demonstrated> {
    let (mut base, mut parent, mut tokens) = (0.0, 0.0, 0);
    for micro in minibatches {
        for (index, (sample, _)) in micro.tokens.iter().enumerate() {
            let sample = &samples[*sample];
            if sample.verdict.is_none() {
                base += f64::from(micro.base[index]);
                parent += f64::from(micro.parent[index]);
                tokens += 1;
            }
        }
    }
    let mean = |sum: f64| (sum / tokens as f64) as f32;
    (tokens > 0).then(|| Demonstrated { tokens, base: mean(base), parent: mean(parent) })
}

/// The mean log-prob of some tokens before and after the update.
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
