//! The output layer, for the rows that predict a generated token only.
//!
//! The loss sees a row through one number, the log-prob ℓ of the token that was
//! sampled: ∂ℓ/∂x = (W[token] − E_p[W]) / τ. Both ℓ and the expectation are
//! accumulated over blocks of the vocabulary with a running maximum (the online
//! softmax of FlashAttention, arXiv:2205.14135), so the `rows × vocabulary`
//! logits never exist, and one pass over the matrix serves value and gradient.

use crate::kernels::{matrix, values};
use crate::real::Real;
use crate::weights::Vocabulary;
use candle_core::{Result, Tensor};
use rayon::prelude::*;
use std::sync::Arc;

/// Vocabulary blocks worked on at once: bounds memory on machines with many cores.
const BLOCKS_AT_ONCE: usize = 4;

/// What one row predicts.
#[derive(Debug, Clone)]
pub struct Target {
    pub token: u32,
    /// Temperature of the policy's softmax.
    pub temperature: f64,
    /// The tokens the policy could choose from, ascending; `None` is all of them.
    pub allowed: Option<Arc<[u32]>>,
}

pub struct Prediction<T> {
    /// ln π(token) of each row, in nats.
    pub logprobs: Vec<T>,
    /// ∂ logprob / ∂ row, `rows × width`; only if asked for.
    pub gradient: Option<Tensor>,
}

/// One block's share of a row's softmax.
struct Partial<T> {
    /// Largest logit of the block per row; `None` where the policy allowed none of it.
    top: Vec<Option<T>>,
    /// Σ exp(logit − top).
    sum: Vec<T>,
    /// Σ exp(logit − top) · W[v].
    weighted: Option<Vec<T>>,
    /// Logits, and matrix rows, of the targets that lie in the block: (row, logit, W[token]).
    targets: Vec<(usize, T, Vec<T>)>,
}

/// Log-probs of the targets for normed rows `x` (`targets.len() × width`).
pub fn predict<T: Real>(
    head: &Vocabulary,
    x: &Tensor,
    targets: &[Target],
    want_gradient: bool,
) -> Result<Prediction<T>> {
    let (rows, width) = x.dims2()?;
    let mut top: Vec<Option<T>> = vec![None; rows];
    let mut sum = vec![T::zero(); rows];
    let mut weighted = vec![T::zero(); if want_gradient { rows * width } else { 0 }];
    let mut logits = vec![T::zero(); rows];
    let mut token_rows = vec![T::zero(); weighted.len()];

    for first in (0..head.blocks.len()).step_by(BLOCKS_AT_ONCE) {
        let last = (first + BLOCKS_AT_ONCE).min(head.blocks.len());
        let partials: Vec<Partial<T>> = (first..last)
            .into_par_iter()
            .with_max_len(1)
            .map(|block| partial(head, block, x, targets, want_gradient))
            .collect::<Result<_>>()?;
        // In the blocks' order, whichever was computed first.
        for part in partials {
            for row in 0..rows {
                let Some(part_top) = part.top[row] else { continue };
                let new_top = top[row].map_or(part_top, |top| top.max(part_top));
                let keep = top[row].map_or(T::zero(), |top| (top - new_top).exp());
                let take = (part_top - new_top).exp();
                top[row] = Some(new_top);
                sum[row] = sum[row] * keep + part.sum[row] * take;
                if let Some(part) = &part.weighted {
                    let span = row * width..(row + 1) * width;
                    for (all, part) in weighted[span.clone()].iter_mut().zip(&part[span]) {
                        *all = *all * keep + *part * take;
                    }
                }
            }
            for (row, logit, token_row) in part.targets {
                logits[row] = logit;
                if want_gradient {
                    token_rows[row * width..(row + 1) * width].copy_from_slice(&token_row);
                }
            }
        }
    }

    let logprobs =
        (0..rows).map(|row| logits[row] - top[row].unwrap_or(T::zero()) - sum[row].ln()).collect();
    let gradient = if want_gradient {
        for row in 0..rows {
            let inverse = T::one() / sum[row];
            let sharpness = T::from_f64(1.0 / targets[row].temperature);
            let span = row * width..(row + 1) * width;
            for (token, expected) in token_rows[span.clone()].iter_mut().zip(&weighted[span]) {
                *token = (*token - *expected * inverse) * sharpness;
            }
        }
        Some(matrix(token_rows, rows, width)?)
    } else {
        None
    };
    Ok(Prediction { logprobs, gradient })
}

fn partial<T: Real>(
    head: &Vocabulary,
    block: usize,
    x: &Tensor,
    targets: &[Target],
    want_gradient: bool,
) -> Result<Partial<T>> {
    let weight = &head.blocks[block];
    let count = weight.rows()?;
    let from = block * head.block_rows;
    let mut odds = values::<T>(&weight.forward(x)?)?;
    let mut top = vec![None; targets.len()];
    let mut sum = vec![T::zero(); targets.len()];
    let mut found = Vec::new();
    for (row, (odds, target)) in odds.chunks_mut(count).zip(targets).enumerate() {
        let sharpness = T::from_f64(1.0 / target.temperature);
        for logit in odds.iter_mut() {
            *logit *= sharpness;
        }
        let token = (target.token as usize).wrapping_sub(from);
        if token < count {
            let token_row =
                if want_gradient { weight.rows_of(&[token as u32])? } else { Vec::new() };
            found.push((row, odds[token], token_row));
        }
        match &target.allowed {
            None => {
                let mut highest = odds[0];
                for logit in odds.iter() {
                    highest = highest.max(*logit);
                }
                for logit in odds.iter_mut() {
                    *logit = (*logit - highest).exp();
                }
                top[row] = Some(highest);
                for share in odds.iter() {
                    sum[row] += *share;
                }
            }
            Some(allowed) => {
                let start = allowed.partition_point(|id| (*id as usize) < from);
                let end = allowed.partition_point(|id| (*id as usize) < from + count);
                let allowed: Vec<(usize, T)> = allowed[start..end]
                    .iter()
                    .map(|id| (*id as usize - from, odds[*id as usize - from]))
                    .collect();
                odds.fill(T::zero());
                let Some(highest) = allowed.iter().map(|(_, logit)| *logit).reduce(|a, b| a.max(b))
                else {
                    continue;
                };
                top[row] = Some(highest);
                for (token, logit) in allowed {
                    odds[token] = (logit - highest).exp();
                    sum[row] += odds[token];
                }
            }
        }
    }
    let weighted = if want_gradient {
        Some(values(&weight.backward(&matrix(odds, targets.len(), count)?)?)?)
    } else {
        None
    };
    Ok(Partial { top, sum, weighted, targets: found })
}
