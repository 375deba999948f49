//! Rotary position embedding (RoFormer, arXiv:2104.09864).

use crate::kernels::float::Float;
use crate::kernels::{matrix, rows_per_task, values};
use candle_core::{Result, Tensor};
use pulp::Arch;
use rayon::prelude::*;

/// Which two values of a head form a pair that is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopePairs {
    /// (j, j + half), as in transformers: llama.cpp's NEOX type.
    Halves,
    /// (2j, 2j + 1): llama.cpp's NORM type. GGUF has the rows of q and k permuted for this.
    Adjacent,
}

/// What the angles of a model depend on beside the position.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeFrequencies {
    pub base: f64,
    /// The factor of linear scaling (Position Interpolation, arXiv:2306.15595), which stretches the
    /// context to 1 / scale of its length.
    pub scale: f64,
    /// Divisors of the frequencies, one for each pair (`rope_freqs.weight` of Llama 3). There may
    /// be none.
    pub factors: Vec<f32>,
}

/// The rotation of the heads of a model.
#[derive(Debug)]
pub struct Rope {
    pairs: RopePairs,
    head: usize,
    /// The angle of each pair at position 1, in radians.
    frequencies: Vec<f64>,
}

impl Rope {
    pub fn new(pairs: RopePairs, head: usize, frequencies: &RopeFrequencies) -> Rope {
        let RopeFrequencies { base, scale, factors } = frequencies;
        let frequencies = (0..head / 2)
            .map(|j| {
                let factor = factors.get(j).map_or(1.0, |factor| f64::from(*factor));
                scale * base.powf(-2.0 * j as f64 / head as f64) / factor
            })
            .collect();
        Rope { pairs, head, frequencies }
    }

    /// Rotates every head of every row to its position.
    pub fn rotate<T: Float>(&self, x: &Tensor, positions: &[usize]) -> Result<Tensor> {
        self.rotated::<T>(x, positions, 1.0)
    }

    /// The gradient of [`Rope::rotate`]. The transpose of a rotation is its inverse.
    pub fn rotate_back<T: Float>(&self, dx: &Tensor, positions: &[usize]) -> Result<Tensor> {
        self.rotated::<T>(dx, positions, -1.0)
    }

    fn rotated<T: Float>(&self, x: &Tensor, positions: &[usize], sign: f64) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        let mut y = values::<T>(x)?;
        self.rotate_rows(&mut y, width, &self.angles(positions, sign));
        matrix(y, rows, width)
    }

    /// (sin, cos) of every pair at every position. They are the same for all layers.
    pub fn angles<T: Float>(&self, positions: &[usize], sign: f64) -> Vec<(T, T)> {
        let mut angles = Vec::with_capacity(positions.len() * self.frequencies.len());
        for position in positions {
            angles.extend(self.frequencies.iter().map(|frequency| {
                let (sin, cos) = (*position as f64 * frequency).sin_cos();
                (T::from_f64(sin * sign), T::from_f64(cos))
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
