//! Row-wise functions of the transformer and their derivatives, on candle
//! tensors. Matrix products are candle's; what is here is memory-bound.
//!
//! Every tensor is two-dimensional, contiguous and on the CPU: one row a token.
//! Results do not depend on the number of threads: rows are independent and no
//! sum crosses them.

use crate::real::Real;
use candle_core::{Device, Result, Storage, Tensor, bail};
use rayon::prelude::*;

/// Values a parallel task handles at least; smaller ones cost more than they save.
const VALUES_PER_TASK: usize = 8192;

/// Accumulators of a sum, so that it vectorises: floating-point addition may
/// not be reordered by the compiler.
const LANES: usize = 16;

/// Runs `f` on the values of a contiguous CPU tensor.
pub fn with_values<T: Real, R>(tensor: &Tensor, f: impl FnOnce(&[T]) -> R) -> Result<R> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(cpu) = &*storage else { bail!("a tensor of the learner left the CPU") };
    let Some((start, end)) = layout.contiguous_offsets() else {
        bail!("a strided tensor where rows were expected")
    };
    Ok(f(&cpu.as_slice::<T>()?[start..end]))
}

/// The values of `tensor`, copied out.
pub fn values<T: Real>(tensor: &Tensor) -> Result<Vec<T>> {
    with_values(tensor, <[T]>::to_vec)
}

/// A `rows × width` tensor that takes the vector over without a copy.
pub fn matrix<T: Real>(values: Vec<T>, rows: usize, width: usize) -> Result<Tensor> {
    Tensor::from_vec(values, (rows, width), &Device::Cpu)
}

fn rows_per_task(width: usize) -> usize {
    VALUES_PER_TASK.div_ceil(width.max(1))
}

#[inline(always)]
fn sum_of<T: Real>(count: usize, term: impl Fn(usize) -> T) -> T {
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

pub fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let (a, b) = (&a[..a.len().min(b.len())], &b[..a.len().min(b.len())]);
    sum_of(a.len(), |i| a[i] * b[i])
}

/// y = x · w / √(mean(x²) + ε), row by row.
pub fn rms_norm<T: Real>(x: &Tensor, weight: &[T], epsilon: f64) -> Result<Tensor> {
    let (rows, width) = x.dims2()?;
    let mut y = vec![T::zero(); rows * width];
    with_values(x, |x: &[T]| {
        y.par_chunks_mut(width)
            .zip(x.par_chunks(width))
            .with_min_len(rows_per_task(width))
            .for_each(|(y, x)| {
                let inverse = inverse_rms(x, epsilon);
                for ((y, x), w) in y.iter_mut().zip(x).zip(weight) {
                    *y = *x * inverse * *w;
                }
            });
    })?;
    matrix(y, rows, width)
}

fn inverse_rms<T: Real>(x: &[T], epsilon: f64) -> T {
    let mean = dot(x, x) / T::from_f64(x.len() as f64);
    T::one() / (mean + T::from_f64(epsilon)).sqrt()
}

/// residual + the gradient of [`rms_norm`] with respect to x:
/// dx = dy·w·s − x · s³/n · Σ(dy·w·x), where s = 1/√(mean(x²) + ε).
pub fn rms_norm_backward<T: Real>(
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
pub fn swiglu<T: Real>(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    let (rows, width) = gate.dims2()?;
    let mut h = vec![T::zero(); rows * width];
    with_values(gate, |gate: &[T]| {
        with_values(up, |up: &[T]| {
            h.par_chunks_mut(VALUES_PER_TASK)
                .zip(gate.par_chunks(VALUES_PER_TASK))
                .zip(up.par_chunks(VALUES_PER_TASK))
                .for_each(|((h, gate), up)| {
                    for ((h, g), u) in h.iter_mut().zip(gate).zip(up) {
                        *h = *g * sigmoid(*g) * *u;
                    }
                });
        })
    })??;
    matrix(h, rows, width)
}

#[inline(always)]
fn sigmoid<T: Real>(x: T) -> T {
    T::one() / (T::one() + (T::zero() - x).exp())
}

/// (dgate, dup) of [`swiglu`]: dup = dh · silu(g), dgate = dh · u · σ(g)(1 + g(1 − σ(g))).
pub fn swiglu_backward<T: Real>(
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
                        for i in 0..dh.len() {
                            let s = sigmoid(gate[i]);
                            let silu = gate[i] * s;
                            dup[i] = dh[i] * silu;
                            dgate[i] = dh[i] * up[i] * (s + silu * (T::one() - s));
                        }
                    });
            })
        })
    })???;
    Ok((matrix(dgate, rows, width)?, matrix(dup, rows, width)?))
}

/// x + y.
pub fn add<T: Real>(x: &Tensor, y: &Tensor) -> Result<Tensor> {
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
pub fn add_bias<T: Real>(x: &Tensor, bias: &[T]) -> Result<Tensor> {
    let (rows, width) = x.dims2()?;
    let mut sum = values::<T>(x)?;
    for row in sum.chunks_mut(width) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value += *bias;
        }
    }
    matrix(sum, rows, width)
}

/// Which two values of a head a rotation turns together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopePairs {
    /// (j, j + half): qwen2 in GGUF.
    Halves,
    /// (2j, 2j + 1): llama in GGUF, whose q and k rows are permuted for it.
    Adjacent,
}

/// Rotary position embedding (RoFormer, arXiv:2104.09864).
#[derive(Debug)]
pub struct Rope {
    pairs: RopePairs,
    head: usize,
    /// Angle per position of each pair, in radians.
    frequencies: Vec<f64>,
}

impl Rope {
    /// `factors` divides the frequencies (llama 3's `rope_freqs.weight`).
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
    pub fn rotate<T: Real>(&self, x: &Tensor, positions: &[usize]) -> Result<Tensor> {
        self.turn::<T>(x, positions, 1.0)
    }

    /// The gradient of [`Rope::rotate`]: a rotation's transpose is its inverse.
    pub fn rotate_back<T: Real>(&self, dx: &Tensor, positions: &[usize]) -> Result<Tensor> {
        self.turn::<T>(dx, positions, -1.0)
    }

    fn turn<T: Real>(&self, x: &Tensor, positions: &[usize], sign: f64) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        let mut y = values::<T>(x)?;
        let half = self.head / 2;
        y.par_chunks_mut(width).zip(positions).with_min_len(rows_per_task(width)).for_each(
            |(row, position)| {
                for j in 0..half {
                    let angle = *position as f64 * self.frequencies[j];
                    let (sin, cos) = angle.sin_cos();
                    let (sin, cos) = (T::from_f64(sin * sign), T::from_f64(cos));
                    let (first, second) = match self.pairs {
                        RopePairs::Halves => (j, j + half),
                        RopePairs::Adjacent => (2 * j, 2 * j + 1),
                    };
                    for head in row.chunks_mut(self.head) {
                        let (a, b) = (head[first], head[second]);
                        head[first] = a * cos - b * sin;
                        head[second] = a * sin + b * cos;
                    }
                }
            },
        );
        matrix(y, rows, width)
    }
}
