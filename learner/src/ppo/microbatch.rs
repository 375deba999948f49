//! Microbatches: the parts of a minibatch that go through the model together.

use crate::limits::{MICROBATCH_ROWS_MAX, SCORED_ROWS_MAX};
use crate::model::prompt_pass::PromptKv;
use crate::model::{Tail, TailBatch};
use crate::ppo::batch::{Sample, Verdict};
use crate::ppo::loss::TokenLogprobs;
use feedback::job::{Hyper, StepLog};
use std::ops::Range;

/// Tails that go through the model together, and the log-probs of their tokens.
pub(super) struct Microbatch {
    pub(super) tails: TailBatch,
    /// For each target, the index of its sample, and its own index in the sample.
    pub(super) tokens: Vec<(usize, usize)>,
    /// ln π of each target under the parent, once it is computed.
    pub(super) parent: Vec<f32>,
    /// The same under the base.
    pub(super) base: Vec<f32>,
}

impl Microbatch {
    /// The log-probs of a target and the verdict on it; `None` for a demonstration.
    pub(super) fn token<'a>(
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

    /// The number of targets with a verdict.
    pub(super) fn judged(&self, samples: &[Sample]) -> usize {
        self.tokens.iter().filter(|(sample, _)| samples[*sample].verdict.is_some()).count()
    }

    /// The number of tails with a verdict. They come before the others.
    pub(super) fn judged_tails(&self, samples: &[Sample]) -> usize {
        let first = self.tokens.iter().filter(|(_, token)| *token == 0);
        first.filter(|(sample, _)| samples[*sample].verdict.is_some()).count()
    }

    /// The number of targets in the demonstration loss.
    pub(super) fn demonstrated(&self, samples: &[Sample]) -> usize {
        self.tokens.iter().filter(|(sample, _)| samples[*sample].in_demonstration_loss).count()
    }

    /// The number of tokens that its verdicts are about, with those that are left out.
    pub(super) fn offered(&self, samples: &[Sample]) -> usize {
        let first = self.tokens.iter().filter(|(_, token)| *token == 0);
        first.filter_map(|(sample, _)| samples[*sample].verdict.as_ref()).map(|v| v.offered).sum()
    }

    /// ∂loss/∂ ln π of every target, whose ln π is in `logprobs`. Adds the loss to `log`.
    pub(super) fn d_loss(
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
            if samples[self.tokens[index].0].in_demonstration_loss {
                let weight = weights.demonstrated;
                // −ln π, not clipped.
                log.loss -= (f64::from(*policy) * weight) as f32;
                d_policy -= weight;
            }
            if let Some((token, _)) = self.token(index, *policy, samples) {
                let (loss, share) = (token.loss(hyper), weights.judged);
                log.loss += (loss.loss * share) as f32;
                log.clip_fraction += if loss.clipped { weights.trained as f32 } else { 0.0 };
                log.kl_parent += (loss.kl_parent * weights.trained) as f32;
                log.kl_base += (loss.kl_base * weights.trained) as f32;
                d_policy += loss.d_policy * share;
            }
            d_loss.push(d_policy as f32);
        }
        d_loss
    }
}

/// The weight of a token in the loss of its minibatch.
pub(super) struct LossWeights {
    /// The weight of each judged token in the loss, which is a mean over all that was offered.
    pub(super) judged: f64,
    /// The weight of each judged token in a mean over those that are trained.
    pub(super) trained: f64,
    /// The weight of each token in the demonstration loss.
    pub(super) demonstrated: f64,
}

/// The indices of the samples, grouped by episode: a demonstration stays with the offer
/// that it replaced.
pub(super) fn samples_by_episode(samples: &[Sample]) -> Vec<Vec<usize>> {
    let mut episodes: Vec<Vec<usize>> = Vec::new();
    for index in 0..samples.len() {
        match episodes.last_mut() {
            Some(last) if samples[last[0]].seq == samples[index].seq => last.push(index),
            _ => episodes.push(vec![index]),
        }
    }
    episodes
}

/// Cuts a minibatch into pieces of at most [`MICROBATCH_ROWS_MAX`] rows. Judged samples come before
/// demonstrations, because only the judged ones are evaluated at the end.
fn cut_into_microbatches(episodes: &[usize], samples: &[Sample]) -> Vec<Vec<usize>> {
    let (mut all, demonstrations): (Vec<usize>, Vec<usize>) =
        episodes.iter().partition(|index| samples[**index].verdict.is_some());
    all.extend(demonstrations);
    let rows = all.iter().map(|index| samples[*index].tail.len());
    cut_by_rows(rows, MICROBATCH_ROWS_MAX).into_iter().map(|piece| all[piece].to_vec()).collect()
}

/// Cuts microbatches with these numbers of rows into runs whose log-probs are computed together.
pub(super) fn scored_together(rows: &[usize]) -> Vec<Range<usize>> {
    cut_by_rows(rows.iter().copied(), SCORED_ROWS_MAX)
}

/// Cuts things that have these numbers of rows into runs of at most `most` rows. What has more is a
/// run of its own.
fn cut_by_rows(rows: impl Iterator<Item = usize>, most: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut sum = 0;
    for (index, own) in rows.enumerate() {
        match runs.last_mut() {
            Some(run) if sum + own <= most => run.end += 1,
            _ => {
                runs.push(index..index + 1);
                sum = 0;
            }
        }
        sum += own;
    }
    runs
}

/// The microbatches of a minibatch, whose samples have these indices. The adapter changes no layer
/// before `first_adapted`.
pub(super) fn microbatches(
    episodes: &[usize],
    samples: &[Sample],
    kv: &PromptKv,
    first_adapted: usize,
) -> Vec<Microbatch> {
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
                    experts: sample.experts.clone(),
                }
            })
            .collect();
        let tokens = piece
            .iter()
            .flat_map(|episode| (0..samples[*episode].targets.len()).map(|token| (*episode, token)))
            .collect();
        let tails = TailBatch::new(&tails).adapted_from(first_adapted);
        Microbatch { tails, tokens, parent: Vec::new(), base: Vec::new() }
    };
    cut_into_microbatches(episodes, samples).into_iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microbatches_keep_every_episode_and_the_row_limit() {
        let sample = |rows: usize| Sample {
            seq: 0,
            prompt: vec![],
            tail: vec![0; rows],
            targets: vec![],
            experts: vec![],
            verdict: None,
            in_demonstration_loss: true,
        };
        let (few, many) = (MICROBATCH_ROWS_MAX, SCORED_ROWS_MAX);
        let samples: Vec<Sample> = [few - 14, 14, 1, 3 * few, few / 2, few / 2].map(sample).into();
        assert_eq!(
            cut_into_microbatches(&[0, 1, 2, 3, 4, 5], &samples),
            [vec![0, 1], vec![2], vec![3], vec![4, 5]]
        );
        let rows = [few, 1, many - few - 1, 1, many + 1, 1];
        assert_eq!(scored_together(&rows), [0..3, 3..4, 4..5, 5..6]);
    }
}
