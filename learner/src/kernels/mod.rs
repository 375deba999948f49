//! The row-wise functions of the transformer and their derivatives, on tensors of candle. The
//! submodules have the matrix products.
//!
//! Every tensor is two-dimensional, contiguous and on the CPU, and has one row for each token.
//! Results do not depend on the number of threads, because rows are independent and no sum
//! crosses them.

pub mod float;
pub mod int8_dot;
pub mod int8_matmul;
pub mod int8_round;
pub mod matmul;
pub mod quant_blocks;
pub mod tile;

use crate::kernels::float::Float;
use candle_core::{Device, Result, Storage, Tensor, bail};
use pulp::Arch;
use rayon::prelude::*;

/// A parallel task handles at least this many values. A smaller task costs more than it
/// saves.
const VALUES_PER_TASK: usize = 8192;

/// The number of accumulators of a sum. Several of them let it vectorise, because the
/// compiler must not change the order of floating-point additions.
const LANES: usize = 16;

/// Calls `f` with the values of a contiguous CPU tensor.
pub fn with_values<T: Float, R>(tensor: &Tensor, f: impl FnOnce(&[T]) -> R) -> Result<R> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(cpu) = &*storage else { bail!("a tensor of the learner left the CPU") };
    let Some((start, end)) = layout.contiguous_offsets() else {
        bail!("a strided tensor where rows were expected")
    };
    Ok(f(&cpu.as_slice::<T>()?[start..end]))
}

/// A copy of the values of a tensor.
pub fn values<T: Float>(tensor: &Tensor) -> Result<Vec<T>> {
    with_values(tensor, <[T]>::to_vec)
}

/// A `rows × width` tensor, which takes the vector without a copy.
pub fn matrix<T: Float>(values: Vec<T>, rows: usize, width: usize) -> Result<Tensor> {
    Tensor::from_vec(values, (rows, width), &Device::Cpu)
}

fn rows_per_task(width: usize) -> usize {
    VALUES_PER_TASK.div_ceil(width.max(1))
}

/// The sum of `term(i)` over all i below `count`.
#[inline(always)]
fn sum_of<T: Float>(count: usize, term: impl Fn(usize) -> T) -> T {
    let mut lanes = [T::zero(); LANES];
    let whole = count / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(start + lane);
        }
    }
    let mut total = T::zero();
    for lane in lanes {
        total += lane;
    }
    for index in whole..count {
        total += term(index);
    }
    total
}

/// `Σ a[i]·b[i]`.
#[inline(always)]
pub fn dot<T: Float>(a: &[T], b: &[T]) -> T {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [T::zero(); LANES];
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            lanes[i] += a[i] * b[i];
        }
    }
    let mut total = T::zero();
    for lane in lanes {
        total += lane;
    }
    for (a, b) in a_rest.iter().zip(b_rest) {
        total += *a * *b;
    }
    total
}

/// y = x · w / √(mean(x²) + ε), row by row.
pub fn rms_norm<T: Float>(x: &Tensor, weight: &[T], epsilon: f64) -> Result<Tensor> {
    let (rows, width) = x.dims2()?;
    let mut y = vec![T::zero(); rows * width];
    with_values(x, |x: &[T]| rms_norm_rows(x, weight, epsilon, &mut y))?;
    matrix(y, rows, width)
}

/// The same on slices.
pub fn rms_norm_rows<T: Float>(x: &[T], weight: &[T], epsilon: f64, y: &mut [T]) {
    let width = weight.len();
    y.par_chunks_mut(width).zip(x.par_chunks(width)).with_min_len(rows_per_task(width)).for_each(
        |(y, x)| {
            Arch::new().dispatch(|| {
                let inverse = inverse_rms(x, epsilon);
                for ((y, x), w) in y.iter_mut().zip(x).zip(weight) {
                    *y = *x * inverse * *w;
                }
            });
        },
    );
}

#[inline(always)]
fn inverse_rms<T: Float>(x: &[T], epsilon: f64) -> T {
    let mean = dot(x, x) / T::from_f64(x.len() as f64);
    T::one() / (mean + T::from_f64(epsilon)).sqrt()
}

/// `residual` plus the gradient of [`rms_norm`] with respect to x, which is
/// dx = dy·w·s − x · s³/n · Σ(dy·w·x) with s = 1/√(mean(x²) + ε).
pub fn rms_norm_backward<T: Float>(
    residual: &Tensor,
    dy: &Tensor,
    x: &Tensor,
    weight: &[T],
    epsilon: f64,
) -> Result<Tensor> {
    let (rows, width) = x.dims2()?;
    let mut dx = values::<T>(residual)?;
    with_values(dy, |dy: &[T]| {
        with_values(x, |x: &[T]| {
            dx.par_chunks_mut(width)
                .zip(dy.par_chunks(width))
                .zip(x.par_chunks(width))
                .with_min_len(rows_per_task(width))
                .for_each(|((dx, dy), x)| {
                    let s = inverse_rms(x, epsilon);
                    let along = sum_of(width, |i| dy[i] * weight[i] * x[i]);
                    let shrink = along * s * s * s / T::from_f64(width as f64);
                    for i in 0..width {
                        dx[i] += dy[i] * weight[i] * s - x[i] * shrink;
                    }
                });
        })
    })??;
    matrix(dx, rows, width)
}

/// h = silu(gate) · up.
pub fn swiglu<T: Float>(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    let (rows, width) = gate.dims2()?;
    let mut h = values::<T>(gate)?;
    with_values(up, |up: &[T]| swiglu_in_place(&mut h, up))?;
    matrix(h, rows, width)
}

/// The same on slices. The result replaces the gate.
pub fn swiglu_in_place<T: Float>(gate: &mut [T], up: &[T]) {
    gate.par_chunks_mut(VALUES_PER_TASK).zip(up.par_chunks(VALUES_PER_TASK)).for_each(
        |(gate, up)| {
            Arch::new().dispatch(|| {
                for (g, u) in gate.iter_mut().zip(up) {
                    *g = *g * sigmoid(*g) * *u;
                }
            });
        },
    );
}

#[inline(always)]
fn sigmoid<T: Float>(x: T) -> T {
    T::one() / (T::one() + (T::zero() - x).exp())
}

/// (dgate, dup) of [`swiglu`]: dup = dh · silu(g) and
/// dgate = dh · u · σ(g)(1 + g(1 − σ(g))).
pub fn swiglu_backward<T: Float>(
    dh: &Tensor,
    gate: &Tensor,
    up: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let (rows, width) = gate.dims2()?;
    let mut dgate = vec![T::zero(); rows * width];
    let mut dup = vec![T::zero(); rows * width];
    with_values(dh, |dh: &[T]| {
        with_values(gate, |gate: &[T]| {
            with_values(up, |up: &[T]| {
                dgate
                    .par_chunks_mut(VALUES_PER_TASK)
                    .zip(dup.par_chunks_mut(VALUES_PER_TASK))
                    .zip(dh.par_chunks(VALUES_PER_TASK))
                    .zip(gate.par_chunks(VALUES_PER_TASK))
                    .zip(up.par_chunks(VALUES_PER_TASK))
                    .for_each(|((((dgate, dup), dh), gate), up)| {
                        Arch::new().dispatch(|| {
                            let rest = dh.iter().zip(gate).zip(up);
                            let both = dgate.iter_mut().zip(dup.iter_mut());
                            for ((dgate, dup), ((dh, gate), up)) in both.zip(rest) {
                                let s = sigmoid(*gate);
                                let silu = *gate * s;
                                *dup = *dh * silu;
                                *dgate = *dh * *up * (s + silu * (T::one() - s));
                            }
                        });
                    });
            })
        })
    })???;
    Ok((matrix(dgate, rows, width)?, matrix(dup, rows, width)?))
}

/// x + y.
pub fn add<T: Float>(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (rows, width) = x.dims2()?;
    let mut sum = values::<T>(x)?;
    with_values(y, |y: &[T]| {
        sum.par_chunks_mut(VALUES_PER_TASK).zip(y.par_chunks(VALUES_PER_TASK)).for_each(
            |(sum, y)| {
                for (sum, y) in sum.iter_mut().zip(y) {
                    *sum += *y;
                }
            },
        );
    })?;
    matrix(sum, rows, width)
}

/// x with `bias` added to every row.
pub fn add_bias<T: Float>(x: &Tensor, bias: &[T]) -> Result<Tensor> {
    let (rows, width) = x.dims2()?;
    let mut sum = values::<T>(x)?;
    for row in sum.chunks_mut(width) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value += *bias;
        }
    }
    matrix(sum, rows, width)
}

/// Which two values of a head form a pair that is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopePairs {
    /// (j, j + half): qwen2 in GGUF.
    Halves,
    /// (2j, 2j + 1): llama in GGUF, whose rows of q and k are permuted for this.
    Adjacent,
}

/// Rotary position embedding (RoFormer, arXiv:2104.09864).
#[derive(Debug)]
pub struct Rope {
    pairs: RopePairs,
    head: usize,
    /// The angle of each pair at position 1, in radians.
    frequencies: Vec<f64>,
}

impl Rope {
    /// `factors` are divisors of the frequencies (`rope_freqs.weight` of Llama 3).
    pub fn new(pairs: RopePairs, head: usize, base: f64, factors: Option<&[f32]>) -> Rope {
        let frequencies = (0..head / 2)
            .map(|j| {
                let factor = factors.and_then(|f| f.get(j)).map_or(1.0, |f| f64::from(*f));
                base.powf(-2.0 * j as f64 / head as f64) / factor
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
