//! Rotary position embedding (RoFormer, arXiv:2104.09864).

use crate::kernels::float::Float;
use crate::kernels::{matrix, rows_per_task, values};
use candle_core::{Result, Tensor};
use pulp::Arch;
use rayon::prelude::*;

/// The two values of a head that form a pair, which is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopePairs {
    /// (j, j + half), as in transformers: llama.cpp's NEOX type.
    Halves,
    /// (2j, 2j + 1): llama.cpp's NORM type. GGUF has the rows of q and k permuted for this.
    Adjacent,
}

/// The numbers that the rotation of a model depends on, next to the position.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeFrequencies {
    pub base: f64,
    /// The factor of Position Interpolation (arXiv:2306.15595), which stretches the context to
    /// 1 / scale of its length.
    pub scale: f64,
    /// The pairs that are scaled: all of them without YaRN.
    pub yarn: Option<Yarn>,
    /// The factor of the rotated values.
    pub magnitude: f64,
    /// Divisors of the frequencies, one for each pair (`rope_freqs.weight` of Llama 3). There may
    /// be none.
    pub factors: Vec<f32>,
}

/// YaRN (arXiv:2309.00071): a pair that turns often within the context of the training keeps its
/// frequency, because it tells near positions apart; one that never turns once is scaled; those
/// between are mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Yarn {
    /// The tokens of that context.
    pub context: usize,
}

/// A pair that turns at least so often within the context keeps its frequency (β of the paper).
const KEPT_TURNS: f32 = 32.0;

/// A pair that turns at most so often is scaled (α of the paper).
const SCALED_TURNS: f32 = 1.0;

impl Yarn {
    /// Returns what YaRN multiplies the rotated values with, so that the scores of a context that
    /// is `factor` times as long are about as sharp.
    pub fn magnitude(factor: f64) -> f64 {
        if factor > 1.0 { 1.0 + 0.1 * factor.ln() } else { 1.0 }
    }

    /// Returns how much of its own frequency each pair of a head of this width keeps, from 0 to 1.
    fn kept(self, base: f64, head: usize) -> impl Iterator<Item = f64> {
        // The pair that turns so often. In 32 bits as in llama.cpp, because it is then rounded.
        let pair = |turns: f32| {
            let wavelengths = self.context as f32 / (turns * 2.0 * std::f32::consts::PI);
            head as f32 * wavelengths.ln() / (2.0 * (base as f32).ln())
        };
        let first = f64::from(pair(KEPT_TURNS).floor().max(0.0));
        let last = f64::from(pair(SCALED_TURNS).ceil().min(head as f32 - 1.0));
        (0..head / 2)
            .map(move |j| 1.0 - ((j as f64 - first) / (last - first).max(0.001)).clamp(0.0, 1.0))
    }
}

/// The rotation of the heads of a model.
#[derive(Debug, Clone)]
pub struct Rope {
    pairs: RopePairs,
    head: usize,
    /// The angle of each pair at position 1, in radians.
    frequencies: Vec<f64>,
    magnitude: f64,
}

impl Rope {
    pub fn new(pairs: RopePairs, head: usize, frequencies: &RopeFrequencies) -> Rope {
        let RopeFrequencies { base, scale, yarn, magnitude, factors } = frequencies;
        let kept: Vec<f64> = yarn.iter().flat_map(|yarn| yarn.kept(*base, head)).collect();
        let frequencies = (0..head / 2)
            .map(|j| {
                let factor = factors.get(j).map_or(1.0, |factor| f64::from(*factor));
                let kept = kept.get(j).copied().unwrap_or_default();
                let scale = scale * (1.0 - kept) + kept;
                scale * base.powf(-2.0 * j as f64 / head as f64) / factor
            })
            .collect();
        Rope { pairs, head, frequencies, magnitude: *magnitude }
    }

    /// Returns true if the two values of a pair lie half a head apart, and are no neighbours.
    pub fn has_halves(&self) -> bool {
        self.pairs == RopePairs::Halves
    }

    /// Rotates every head of every row to its position.
    pub fn rotate<T: Float>(&self, x: &Tensor, positions: &[usize]) -> Result<Tensor> {
        self.rotated::<T>(x, positions, 1.0)
    }

    /// The gradient of [`Rope::rotate`]. The transpose of a rotation is its inverse, and a
    /// magnitude stays.
    pub fn rotate_back<T: Float>(&self, dx: &Tensor, positions: &[usize]) -> Result<Tensor> {
        self.rotated::<T>(dx, positions, -1.0)
    }

    fn rotated<T: Float>(&self, x: &Tensor, positions: &[usize], sign: f64) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        let mut y = values::<T>(x)?;
        self.rotate_rows(&mut y, width, &self.angles(positions, sign));
        matrix(y, rows, width)
    }

    /// (sin, cos) of every pair at every position, times the magnitude. They are the same for all
    /// layers.
    pub fn angles<T: Float>(&self, positions: &[usize], sign: f64) -> Vec<(T, T)> {
        let mut angles = Vec::with_capacity(positions.len() * self.frequencies.len());
        for position in positions {
            angles.extend(self.frequencies.iter().map(|frequency| {
                let (sin, cos) = (*position as f64 * frequency).sin_cos();
                (T::from_f64(sin * sign * self.magnitude), T::from_f64(cos * self.magnitude))
            }));
        }
        angles
    }

    /// Rotates rows of `width` values by their angles.
    pub fn rotate_rows<T: Float>(&self, rows: &mut [T], width: usize, angles: &[(T, T)]) {
        let half = self.head / 2;
        rows.par_chunks_mut(width)
            .zip(angles.par_chunks(half))
            .with_min_len(rows_per_task(width))
            .for_each(|(row, angles)| {
                Arch::new().dispatch(|| {
                    for head in row.chunks_exact_mut(self.head) {
                        match self.pairs {
                            RopePairs::Halves => {
                                let (first, second) = head.split_at_mut(half);
                                for ((a, b), angle) in first.iter_mut().zip(second).zip(angles) {
                                    rotate_pair(a, b, *angle);
                                }
                            }
                            RopePairs::Adjacent => {
                                for ([a, b], angle) in head.as_chunks_mut().0.iter_mut().zip(angles)
                                {
                                    rotate_pair(a, b, *angle);
                                }
                            }
                        }
                    }
                });
            });
    }
}

#[inline(always)]
fn rotate_pair<T: Float>(a: &mut T, b: &mut T, (sin, cos): (T, T)) {
    (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As transformers has them for Qwen2.5-Coder: the pairs up to 23 keep their frequency, and
    /// those from 40 on are scaled.
    #[test]
    fn yarn_keeps_the_frequency_of_pairs_that_turn_often() {
        let (base, head, scale) = (1e6, 128, 0.25);
        let of = |scale, yarn| {
            let frequencies =
                RopeFrequencies { base, scale, yarn, magnitude: 1.0, factors: Vec::new() };
            Rope::new(RopePairs::Halves, head, &frequencies).frequencies
        };
        let plain = of(1.0, None);
        let yarn = of(scale, Some(Yarn { context: 32_768 }));
        let of_plain: Vec<f64> = yarn.iter().zip(&plain).map(|(yarn, own)| yarn / own).collect();
        assert!(of_plain[..=23].iter().all(|share| *share == 1.0), "{of_plain:?}");
        assert!(of_plain[24] < 1.0 && of_plain[39] > scale, "{of_plain:?}");
        assert!(of_plain[40..].iter().all(|share| *share == scale), "{of_plain:?}");
        assert!((of_plain[30] - (scale + 0.75 * 10.0 / 17.0)).abs() < 1e-12, "{}", of_plain[30]);
    }

    #[test]
    fn yarn_makes_scores_sharper_for_a_longer_context_alone() {
        assert!((Yarn::magnitude(4.0) - 1.138_629).abs() < 1e-6);
        assert_eq!((Yarn::magnitude(1.0), Yarn::magnitude(0.5)), (1.0, 1.0));
    }
}
