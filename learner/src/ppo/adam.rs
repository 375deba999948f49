//! Adam (arXiv:1412.6980) with bias correction and linear warm-up, and the file of its
//! state.
//!
//! The file is little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `HONEOPT\0` |
//! | 4 | format, u32 |
//! | 4 | number of tensors, u32 |
//! | 8 | step, u64 |
//! | 32 | SHA-256 of the adapter that the state belongs to |
//! | for each tensor | length u64, first moments f32…, second moments f32… |
//! | 32 | SHA-256 of all bytes before it |
//!
//! The same state gives the same bytes.

use crate::kernels::{matrix, values, with_values};
use crate::model::lora::{Lora, LoraGradient};
use anyhow::{Context, bail};
use candle_core::Tensor;
use feedback::job::Hyper;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::path::Path;

const MAGIC: &[u8; 8] = b"HONEOPT\0";
const FORMAT: u32 = 1;
const HASH_BYTES: usize = 32;

/// Decay of the running means of the gradients and of their squares. Their memory is short, because
/// an adapter lives for a few dozen steps.
const BETA1: f32 = 0.9;
const BETA2: f32 = 0.95;

/// Keeps the root that a step divides by above 0.
const EPSILON: f32 = 1e-8;

/// The gradient of a minibatch, summed over its microbatches. It has one vector for each vector
/// that the optimizer steps: for each tensor of the adapter, in the order of [`Lora::tensors`], or
/// for each square.
pub struct GradientSum {
    vectors: Vec<Vec<f32>>,
}

impl GradientSum {
    /// No gradient yet, for vectors of these lengths.
    pub fn zero(lengths: &[usize]) -> GradientSum {
        GradientSum { vectors: lengths.iter().map(|length| vec![0.0; *length]).collect() }
    }

    /// Adds the gradient of the adapter's `pair`-th pair.
    pub fn add(&mut self, pair: usize, gradient: &LoraGradient) -> candle_core::Result<()> {
        let sums = self.vectors.iter_mut().skip(2 * pair);
        for (sum, part) in sums.zip([&gradient.a, &gradient.b]) {
            with_values(part, |part: &[f32]| {
                sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
            })?;
        }
        Ok(())
    }

    pub(super) fn vectors_mut(&mut self) -> &mut [Vec<f32>] {
        &mut self.vectors
    }

    /// The global L2 norm, summed in f64 and in a fixed order.
    pub fn norm(&self) -> f32 {
        let squares: Vec<f64> = self
            .vectors
            .par_iter()
            .map(|values| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>())
            .collect();
        squares.iter().sum::<f64>().sqrt() as f32
    }

    /// Scales the gradient down if its norm is above `max_norm`.
    pub fn clip(&mut self, max_norm: f32) {
        let norm = self.norm();
        if norm > max_norm {
            let scale = max_norm / norm;
            self.vectors.par_iter_mut().flatten().for_each(|value| *value *= scale);
        }
    }
}

/// The first and second moments of one tensor.
#[derive(Debug, Clone, PartialEq)]
struct Moments {
    first: Vec<f32>,
    second: Vec<f32>,
}

/// The state of the optimizer.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    /// The number of steps over the adapter's whole life.
    step: u64,
    moments: Vec<Moments>,
}

impl Adam {
    pub fn new(lora: &Lora) -> Adam {
        Adam::with_lengths(lora.tensors().map(Tensor::elem_count))
    }

    /// The state for vectors of these lengths.
    pub fn with_lengths(lengths: impl Iterator<Item = usize>) -> Adam {
        let zero = |length| Moments { first: vec![0.0; length], second: vec![0.0; length] };
        Adam { step: 0, moments: lengths.map(zero).collect() }
    }

    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Takes one step. Returns the learning rate of the step.
    ///
    /// m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g²,
    /// θ ← θ − η·m̂/(√v̂ + ε), with m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ).
    pub fn step(
        &mut self,
        lora: &mut Lora,
        gradient: &GradientSum,
        hyper: &Hyper,
    ) -> candle_core::Result<f32> {
        let pace = self.next_step(hyper);
        let tensors: Vec<&mut Tensor> = lora.tensors_mut().collect();
        // Replaces each tensor as soon as it is computed, so that the old ones and the new ones are
        // not in memory together.
        tensors
            .into_par_iter()
            .zip(self.moments.par_iter_mut())
            .zip(&gradient.vectors)
            .try_for_each(|((tensor, moments), gradient)| -> candle_core::Result<()> {
                let (rows, width) = tensor.dims2()?;
                let mut weights = values::<f32>(tensor)?;
                pace.advance(&mut weights, gradient, moments);
                *tensor = matrix(weights, rows, width)?;
                Ok(())
            })?;
        Ok(pace.rate)
    }

    /// The same for values that are no tensors.
    pub fn step_values(
        &mut self,
        values: &mut [Vec<f32>],
        gradient: &GradientSum,
        hyper: &Hyper,
    ) -> f32 {
        let pace = self.next_step(hyper);
        let vectors = values.iter_mut().zip(&gradient.vectors).zip(&mut self.moments);
        vectors.for_each(|((values, gradient), moments)| {
            pace.advance(values, gradient, moments);
        });
        pace.rate
    }

    fn next_step(&mut self, hyper: &Hyper) -> Pace {
        self.step += 1;
        let correction = |beta: f32| {
            let power = f64::from(beta).powf(self.step as f64);
            (1.0 / (1.0 - power)) as f32
        };
        Pace {
            rate: learning_rate(hyper, self.step),
            correct1: correction(BETA1),
            correct2: correction(BETA2),
        }
    }

    pub fn to_bytes(&self, adapter_sha256: &str) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(
            64 + self.moments.iter().map(|m| 8 + 8 * m.first.len()).sum::<usize>(),
        );
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&(self.moments.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.step.to_le_bytes());
        bytes.extend_from_slice(&hash_of_hex(adapter_sha256)?);
        for moments in &self.moments {
            bytes.extend_from_slice(&(moments.first.len() as u64).to_le_bytes());
            for value in moments.first.iter().chain(&moments.second) {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
        let hash = Sha256::digest(&bytes);
        bytes.extend_from_slice(&hash);
        Ok(bytes)
    }

    /// Reads the state for vectors of these lengths. It belongs to the adapter whose file has this
    /// SHA-256.
    pub fn read(path: &Path, lengths: &[usize], adapter_sha256: &str) -> anyhow::Result<Adam> {
        let name = || format!("optimizer state {}", path.display());
        let bytes = std::fs::read(path).with_context(|| format!("cannot read the {}", name()))?;
        Adam::from_bytes(&bytes, lengths, adapter_sha256)
            .with_context(|| format!("the {} is not usable", name()))
    }

    fn from_bytes(bytes: &[u8], lengths: &[usize], adapter_sha256: &str) -> anyhow::Result<Adam> {
        let Some((body, hash)) = bytes.split_last_chunk::<HASH_BYTES>() else {
            bail!("it is truncated")
        };
        let mut rest = body;
        if take(&mut rest, MAGIC.len())? != MAGIC {
            bail!("it is not an optimizer state");
        }
        let format = u32::from_le_bytes(fixed(&mut rest)?);
        if format != FORMAT {
            bail!("it has format {format}, this learner reads {FORMAT}");
        }
        if Sha256::digest(body).as_slice() != hash {
            bail!("its checksum does not match: it is truncated or damaged");
        }
        let count = u32::from_le_bytes(fixed(&mut rest)?) as usize;
        let step = u64::from_le_bytes(fixed(&mut rest)?);
        if fixed::<HASH_BYTES>(&mut rest)? != hash_of_hex(adapter_sha256)? {
            bail!("it belongs to another adapter");
        }
        if count != lengths.len() {
            bail!("it has {count} tensors, the adapter has {}", lengths.len());
        }
        let mut moments = Vec::with_capacity(count);
        for &expected in lengths {
            let length = u64::from_le_bytes(fixed(&mut rest)?);
            if length != expected as u64 {
                bail!("a tensor has {length} values, the adapter's has {expected}");
            }
            moments.push(Moments {
                first: floats(take(&mut rest, expected * 4)?),
                second: floats(take(&mut rest, expected * 4)?),
            });
        }
        if !rest.is_empty() {
            bail!("it is longer than it says");
        }
        Ok(Adam { step, moments })
    }
}

/// The numbers that a step has in common for all values.
struct Pace {
    rate: f32,
    /// 1/(1−β₁ᵗ) and 1/(1−β₂ᵗ).
    correct1: f32,
    correct2: f32,
}

impl Pace {
    fn advance(&self, weights: &mut [f32], gradient: &[f32], moments: &mut Moments) {
        let moments = moments.first.iter_mut().zip(moments.second.iter_mut());
        for ((weight, gradient), (first, second)) in weights.iter_mut().zip(gradient).zip(moments) {
            *first = BETA1 * *first + (1.0 - BETA1) * gradient;
            *second = BETA2 * *second + (1.0 - BETA2) * gradient * gradient;
            let direction = *first * self.correct1 / ((*second * self.correct2).sqrt() + EPSILON);
            *weight -= self.rate * direction;
        }
    }
}

/// The learning rate rises linearly over the first `warmup_steps` steps.
fn learning_rate(hyper: &Hyper, step: u64) -> f32 {
    let warmup = u64::from(hyper.warmup_steps.max(1));
    hyper.learning_rate * (step.min(warmup) as f32 / warmup as f32)
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> anyhow::Result<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(count).context("it is truncated")?;
    *rest = tail;
    Ok(head)
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> anyhow::Result<[u8; N]> {
    Ok(take(rest, N)?.try_into()?)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
}

fn hash_of_hex(hex: &str) -> anyhow::Result<[u8; HASH_BYTES]> {
    let digits: Option<Vec<u8>> =
        hex.bytes().map(|b| (b as char).to_digit(16).map(|d| d as u8)).collect();
    let digits =
        digits.filter(|d| d.len() == 2 * HASH_BYTES).context("a SHA-256 has 64 hex digits")?;
    let mut hash = [0; HASH_BYTES];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lora::LoraLayer;

    const SHA256: &str = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32";

    /// The values of A and B of [`lora`].
    const LENGTHS: [usize; 2] = [2, 1];

    /// An adapter with one pair: A is 1 × 2, B is 1 × 1.
    fn lora() -> Lora {
        let layer = LoraLayer {
            a: matrix(vec![0.5f32, -0.25], 1, 2).unwrap(),
            b: matrix(vec![2.0f32], 1, 1).unwrap(),
        };
        Lora { rank: 1, shared_rank: 0, alpha: 1.0, layers: vec![vec![layer]] }
    }

    fn gradient(a: [f32; 2], b: f32) -> GradientSum {
        GradientSum { vectors: vec![a.to_vec(), vec![b]] }
    }

    fn numbers(lora: &Lora) -> Vec<f32> {
        lora.tensors().flat_map(|tensor| values::<f32>(tensor).unwrap()).collect()
    }

    fn hyper() -> Hyper {
        Hyper { learning_rate: 0.1, warmup_steps: 2, ..Hyper::default() }
    }

    /// In step 1 the rate is 0.05, m̂ = g and v̂ = g². Each weight therefore moves by
    /// 0.05·sign g.
    ///
    /// In step 2 the rate is 0.1, and the first weight has g = −0.2 after 0.4:
    /// m = 0.9·0.04 − 0.02 = 0.016 and m̂ = 0.016/0.19;
    /// v = 0.95·0.008 + 0.05·0.04 = 0.0096 and v̂ = 0.0096/0.0975.
    #[test]
    fn two_steps_match_the_hand_computed_ones() {
        let mut lora = lora();
        let mut adam = Adam::new(&lora);
        let rate = adam.step(&mut lora, &gradient([0.4, -3.0], 1e-3), &hyper()).unwrap();
        assert_eq!(rate, 0.05);
        let after = numbers(&lora);
        let expected = [0.5 - 0.05, -0.25 + 0.05, 2.0 - 0.05];
        for (after, expected) in after.iter().zip(expected) {
            assert!((after - expected).abs() < 2e-6, "{after} but {expected}");
        }
        let rate = adam.step(&mut lora, &gradient([-0.2, 0.0], 0.0), &hyper()).unwrap();
        assert_eq!(rate, 0.1);
        let first = after[0] as f64;
        let direction = (0.016f64 / 0.19) / (0.0096f64 / 0.0975).sqrt();
        let expected = first - 0.1 * direction;
        assert!((f64::from(numbers(&lora)[0]) - expected).abs() < 1e-6);
        assert_eq!(adam.steps(), 2);
    }

    #[test]
    fn the_next_step_after_saving_and_loading_is_the_same_to_the_bit() {
        let (mut through, mut stopped) = (lora(), lora());
        let mut adam = Adam::new(&through);
        let steps =
            [gradient([0.4, -3.0], 1e-3), gradient([0.1, 0.7], -2.0), gradient([-1.0, 0.0], 0.3)];
        for gradient in &steps[..2] {
            adam.step(&mut through, gradient, &hyper()).unwrap();
        }
        stopped.replace(through.tensors().cloned().collect());
        let bytes = adam.to_bytes(SHA256).unwrap();
        let mut resumed = Adam::from_bytes(&bytes, &LENGTHS, SHA256).unwrap();
        assert_eq!(resumed, adam);
        assert_eq!(resumed.to_bytes(SHA256).unwrap(), bytes);

        adam.step(&mut through, &steps[2], &hyper()).unwrap();
        resumed.step(&mut stopped, &steps[2], &hyper()).unwrap();
        let bits = |lora: &Lora| numbers(lora).iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&stopped), bits(&through));
        assert_eq!(resumed, adam);
    }

    #[test]
    fn a_damaged_state_or_that_of_another_adapter_is_refused() {
        let bytes = Adam::new(&lora()).to_bytes(SHA256).unwrap();
        let refused = |bytes: &[u8], sha256: &str| {
            Adam::from_bytes(bytes, &LENGTHS, sha256).unwrap_err().to_string()
        };
        assert!(refused(&bytes, &"0".repeat(64)).contains("another adapter"));
        let mut newer = bytes.clone();
        newer[MAGIC.len()] += 1;
        assert!(refused(&newer, SHA256).contains("format 2, this learner reads 1"));
        for length in 0..bytes.len() {
            assert!(!refused(&bytes[..length], SHA256).is_empty());
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(!refused(&damaged, SHA256).is_empty(), "byte {at}");
        }
    }

    #[test]
    fn clipping_scales_down_to_the_limit_and_never_up() {
        let mut long = gradient([3.0, 0.0], 4.0);
        long.clip(1.0);
        assert!((long.norm() - 1.0).abs() < 1e-6);
        assert_eq!(long.vectors, [vec![3.0 * 0.2, 0.0], vec![4.0 * 0.2]]);
        let mut short = gradient([0.3, 0.0], 0.4);
        short.clip(1.0);
        assert_eq!(short.vectors, [vec![0.3, 0.0], vec![0.4]]);
    }
}
