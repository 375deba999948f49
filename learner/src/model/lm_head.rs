//! The output layer, for those rows only that predict a target.
//!
//! The loss depends on a row through one number: the log-prob ℓ of the target token, or of a
//! set S of tokens that count as the target. Its gradient is
//! `∂ℓ/∂x = (E_p[W | S] − E_p[W]) / τ`. For a single token the first expectation is `W[token]`.
//!
//! Value and expectations are accumulated over blocks of the vocabulary with a running
//! maximum (the online softmax of FlashAttention, arXiv:2205.14135). The
//! `rows × vocabulary` logits are never in memory as a whole, and one pass over the matrix
//! gives both value and gradient.

use crate::kernels::float::Float;
use crate::kernels::int8_dot::Int8Unit;
use crate::kernels::{exponentials, matrix, values};
use crate::model::weights::VocabularyMatrix;
use candle_core::{Error, Result, Tensor};
use pulp::Arch;
use rayon::prelude::*;
use std::sync::Arc;

/// The number of vocabulary blocks that are computed at the same time. It limits the memory
/// on machines with many cores.
const BLOCKS_AT_ONCE: usize = 4;

/// The token that one row predicts.
#[derive(Debug, Clone)]
pub struct Target {
    pub token: u32,
    /// Other tokens that count as this one. Their probabilities are added.
    pub equivalents: Arc<[u32]>,
    /// The temperature of the policy's softmax.
    pub temperature: f64,
    /// The tokens that the policy could choose from, in ascending order. `None` means all.
    pub allowed: Option<Arc<[u32]>>,
}

/// The log-probs of the targets, and how they depend on the rows.
pub struct Prediction<T> {
    /// ln π(token) of each row, in nats.
    pub logprobs: Vec<T>,
    /// ∂ logprob / ∂ row, `rows × width`, if it was asked for.
    pub gradient: Option<Tensor>,
}

impl Target {
    /// The tokens of this target that are in a block of `count` rows, which begins at token
    /// `from`, as indices into the block.
    pub(super) fn ids(&self, from: usize, count: usize) -> impl Iterator<Item = usize> {
        let allowed = |id: &u32| {
            self.allowed.as_ref().is_none_or(|allowed| allowed.binary_search(id).is_ok())
        };
        let ids = [self.token].into_iter().chain(self.equivalents.iter().copied());
        ids.filter(move |id| *id == self.token || allowed(id))
            .map(move |id| (id as usize).wrapping_sub(from))
            .filter(move |id| *id < count)
    }
}

/// Σ exp(logit) and `Σ exp(logit) · W[v]` over some tokens, both divided by exp(top).
struct ExpSum<T> {
    /// The largest logit.
    top: T,
    sum: T,
    weighted: Vec<T>,
}

impl<T: Float> ExpSum<T> {
    fn add(&mut self, other: &ExpSum<T>) {
        let top = self.top.max(other.top);
        let (keep, take) = ((self.top - top).exp(), (other.top - top).exp());
        self.top = top;
        self.sum = self.sum * keep + other.sum * take;
        for (all, other) in self.weighted.iter_mut().zip(&other.weighted) {
            *all = *all * keep + *other * take;
        }
    }
}

/// The part that one vocabulary block adds to the softmax of every row.
struct BlockSoftmax<T> {
    /// The largest logit of each row; `None` if the policy could choose no token of the block.
    top: Vec<Option<T>>,
    /// Σ exp(logit − top).
    sum: Vec<T>,
    /// `Σ exp(logit − top) · W[v]`.
    weighted: Option<Vec<T>>,
    /// The target tokens that are in the block, each with its row.
    targets: Vec<(usize, ExpSum<T>)>,
}

/// The log-probs of the targets for normed rows `x` (`targets.len() × width`). `unit` is that of
/// [`Weight::forward`](crate::model::weights::Weight::forward).
pub fn predict<T: Float>(
    unit: Option<Int8Unit>,
    head: &VocabularyMatrix,
    x: &Tensor,
    targets: &[Target],
    want_gradient: bool,
) -> Result<Prediction<T>> {
    let (rows, width) = x.dims2()?;
    let mut softmax = RunningSoftmax::new(rows, width, want_gradient);
    for first in (0..head.blocks.len()).step_by(BLOCKS_AT_ONCE) {
        let last = (first + BLOCKS_AT_ONCE).min(head.blocks.len());
        let blocks: Vec<BlockSoftmax<T>> = (first..last)
            .into_par_iter()
            .with_max_len(1)
            .map(|block| block_softmax(unit, head, block, x, targets, want_gradient))
            .collect::<Result<_>>()?;
        // The order is that of the blocks, whichever was computed first.
        for block in blocks {
            softmax.add(block);
        }
    }
    softmax.finish(targets, want_gradient)
}

/// The softmax of every row over the blocks that were added. The fields are those of
/// [`BlockSoftmax`].
struct RunningSoftmax<T> {
    width: usize,
    top: Vec<Option<T>>,
    sum: Vec<T>,
    /// `rows × width`; empty without a gradient.
    weighted: Vec<T>,
    /// All tokens of each row's target together; `None` until the first one is added.
    target_sums: Vec<Option<ExpSum<T>>>,
}

impl<T: Float> RunningSoftmax<T> {
    fn new(rows: usize, width: usize, want_gradient: bool) -> RunningSoftmax<T> {
        RunningSoftmax {
            width,
            top: vec![None; rows],
            sum: vec![T::zero(); rows],
            weighted: vec![T::zero(); if want_gradient { rows * width } else { 0 }],
            target_sums: (0..rows).map(|_| None).collect(),
        }
    }

    fn add(&mut self, part: BlockSoftmax<T>) {
        let RunningSoftmax { width, top, sum, weighted, target_sums } = self;
        for row in 0..top.len() {
            let Some(part_top) = part.top[row] else { continue };
            let new_top = top[row].map_or(part_top, |top| top.max(part_top));
            let keep = top[row].map_or(T::zero(), |top| (top - new_top).exp());
            let take = (part_top - new_top).exp();
            top[row] = Some(new_top);
            sum[row] = sum[row] * keep + part.sum[row] * take;
            if let Some(part) = &part.weighted {
                let span = row * *width..(row + 1) * *width;
                for (all, part) in weighted[span.clone()].iter_mut().zip(&part[span]) {
                    *all = *all * keep + *part * take;
                }
            }
        }
        for (row, share) in part.targets {
            match &mut target_sums[row] {
                Some(all) => all.add(&share),
                none => *none = Some(share),
            }
        }
    }

    fn finish(self, targets: &[Target], want_gradient: bool) -> Result<Prediction<T>> {
        let target_sums: Vec<ExpSum<T>> = self
            .target_sums
            .into_iter()
            .map(|share| share.ok_or_else(|| Error::msg("a target is outside the vocabulary")))
            .collect::<Result<_>>()?;
        let logprobs = target_sums
            .iter()
            .zip(self.top.iter().zip(&self.sum))
            .map(|(share, (top, sum))| {
                share.top - top.unwrap_or(T::zero()) - sum.ln() + share.sum.ln()
            })
            .collect();
        if !want_gradient {
            return Ok(Prediction { logprobs, gradient: None });
        }
        let mut gradient = Vec::with_capacity(self.weighted.len());
        for (row, share) in target_sums.iter().enumerate() {
            let (ours, all) = (T::one() / share.sum, T::one() / self.sum[row]);
            let sharpness = T::from_f64(1.0 / targets[row].temperature);
            let expected = &self.weighted[row * self.width..(row + 1) * self.width];
            let each = share.weighted.iter().zip(expected);
            gradient
                .extend(each.map(|(own, expected)| (*own * ours - *expected * all) * sharpness));
        }
        let gradient = matrix(gradient, target_sums.len(), self.width)?;
        Ok(Prediction { logprobs, gradient: Some(gradient) })
    }
}

/// Computes the logits of one vocabulary block and what follows from them.
fn block_softmax<T: Float>(
    unit: Option<Int8Unit>,
    head: &VocabularyMatrix,
    block: usize,
    x: &Tensor,
    targets: &[Target],
    want_gradient: bool,
) -> Result<BlockSoftmax<T>> {
    let weight = &head.blocks[block];
    let count = weight.rows()?;
    let from = block * head.block_rows;
    let mut logits = values::<T>(&weight.forward(unit, x)?)?;
    let mut top = vec![None; targets.len()];
    let mut sum = vec![T::zero(); targets.len()];
    let mut found = Vec::new();
    for (row, (logits, target)) in logits.chunks_mut(count).zip(targets).enumerate() {
        let sharpness = T::from_f64(1.0 / target.temperature);
        for logit in logits.iter_mut() {
            *logit *= sharpness;
        }
        for id in target.ids(from, count) {
            let weighted = if want_gradient { weight.rows_of(&[id as u32])? } else { Vec::new() };
            found.push((row, ExpSum { top: logits[id], sum: T::one(), weighted }));
        }
        let exponentials = match &target.allowed {
            None => Some(Arch::new().dispatch(|| exponentials(logits, T::one()))),
            Some(allowed) => allowed_exponentials(logits, allowed, from),
        };
        if let Some((highest, total)) = exponentials {
            (top[row], sum[row]) = (Some(highest), total);
        }
    }
    let weighted = if want_gradient {
        Some(values(&weight.backward(&matrix(logits, targets.len(), count)?)?)?)
    } else {
        None
    };
    weight.release();
    Ok(BlockSoftmax { top, sum, weighted, targets: found })
}

/// Replaces the logits of a block that begins at token `from` by exp(logit − highest), and those of
/// tokens that are not `allowed` by 0. Returns the highest logit and the sum; `None` if the block
/// has no allowed token.
#[inline(always)]
fn allowed_exponentials<T: Float>(
    logits: &mut [T],
    allowed: &[u32],
    from: usize,
) -> Option<(T, T)> {
    let start = allowed.partition_point(|id| (*id as usize) < from);
    let end = allowed.partition_point(|id| (*id as usize) < from + logits.len());
    let chosen: Vec<(usize, T)> = allowed[start..end]
        .iter()
        .map(|id| (*id as usize - from, logits[*id as usize - from]))
        .collect();
    logits.fill(T::zero());
    let highest = chosen.iter().map(|(_, logit)| *logit).reduce(|a, b| a.max(b))?;
    let mut sum = T::zero();
    for (token, logit) in chosen {
        logits[token] = (logit - highest).exp();
        sum += logits[token];
    }
    Some((highest, sum))
}
