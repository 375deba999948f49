//! The row-wise functions of the transformer and their derivatives, on tensors of candle, and in
//! the other submodules the matrix products.
//!
//! Every tensor is two-dimensional, contiguous and on the CPU, and has one row for each token.
//! Results do not depend on the number of threads, because rows are independent and no sum
//! crosses them.

pub mod activation;
pub mod float;
pub mod int8_dot;
pub mod int8_matmul;
pub mod int8_round;
pub mod matmul;
pub mod norm;
pub mod quant_blocks;
pub mod rope;
pub mod strips;
pub mod tile;
pub mod weight_bytes;

use crate::kernels::float::Float;
use candle_core::{Device, Result, Storage, Tensor, bail};
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

/// Replaces the scores by exp((score − highest) · scale). Returns the highest score and the sum.
#[inline(always)]
pub fn exponentials<T: Float>(scores: &mut [T], scale: T) -> (T, T) {
    let mut tops = [scores[0]; LANES];
    let (lines, rest) = scores.as_chunks::<LANES>();
    for line in lines {
        for (top, score) in tops.iter_mut().zip(line) {
            *top = if *score > *top { *score } else { *top };
        }
    }
    let top = tops.iter().chain(rest).fold(tops[0], |a, b| a.max(*b));
    let mut sums = [T::zero(); LANES];
    let (lines, rest) = scores.as_chunks_mut::<LANES>();
    for line in lines {
        for (sum, score) in sums.iter_mut().zip(line) {
            *score = ((*score - top) * scale).exp();
            *sum += *score;
        }
    }
    let mut sum = T::zero();
    for lane in sums {
        sum += lane;
    }
    for score in rest {
        *score = ((*score - top) * scale).exp();
        sum += *score;
    }
    (top, sum)
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

/// factor · x.
pub fn scaled<T: Float>(x: &Tensor, factor: f64) -> Result<Tensor> {
    if factor == 1.0 { Ok(x.clone()) } else { x.affine(factor, 0.0) }
}

/// The same on a slice.
pub fn scale_in_place<T: Float>(x: &mut [T], factor: f64) {
    if factor != 1.0 {
        let factor = T::from_f64(factor);
        x.par_chunks_mut(VALUES_PER_TASK)
            .for_each(|x| x.iter_mut().for_each(|value| *value *= factor));
    }
}

/// x with `bias` added to every row.
pub fn add_bias<T: Float>(x: &Tensor, bias: &[T]) -> Result<Tensor> {
    let (rows, width) = x.dims2()?;
    let mut sum = values::<T>(x)?;
    add_to_rows(&mut sum, bias, T::one());
    matrix(sum, rows, width)
}

/// Adds factor · `bias` to every row of a slice.
pub fn add_to_rows<T: Float>(x: &mut [T], bias: &[T], factor: T) {
    for row in x.chunks_mut(bias.len()) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value += *bias * factor;
        }
    }
}
