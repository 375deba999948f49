//! Causal grouped-query attention of one sequence in f32, without a gradient.
//!
//! It computes the same as [`attention`](crate::model::attention) and is faster: the scores
//! of a task stay in the cache of its core, and nothing is copied that is read only once.

use crate::kernels::exponentials;
use crate::kernels::tile::{AlignedVec, LINE, TileRows, row_sums, stride};
use crate::model::heads::Heads;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// The number of queries of a task. QUERIES · keys scores fit into the L2 cache.
const QUERIES: usize = 48;

/// The number of keys is rounded up to a multiple of this, so that the product consists of
/// whole blocks of registers.
const KEYS: usize = 4 * LINE;

/// The output of attention, with the shape of `q`.
///
/// The last rows of `k` and `v` belong to the rows of `q`. Each row of `q` sees all keys
/// except those of the rows after it.
pub fn attention_f32(heads: Heads, q: &[f32], k: &[f32], v: &[f32]) -> Vec<f32> {
    let (width, kv_width) = (heads.query * heads.width, heads.key_value * heads.width);
    let (rows, keys) = (q.len() / width, k.len() / kv_width);
    let stride = stride(keys.next_multiple_of(KEYS));
    let transposed = transposed(k, kv_width, stride);
    let mut output = vec![0.0; q.len()];
    // There is one task for each query head and block of queries. The longest comes first.
    let mut tasks: Vec<(usize, usize, Vec<&mut [f32]>)> = (0..rows)
        .step_by(QUERIES)
        .flat_map(|from| (0..heads.query).map(move |head| (from, head, Vec::new())))
        .collect();
    for (row, output) in output.chunks_mut(width).enumerate() {
        let first = row / QUERIES * heads.query;
        for (task, part) in tasks[first..].iter_mut().zip(output.chunks_mut(heads.width)) {
            task.2.push(part);
        }
    }
    tasks.into_par_iter().rev().with_max_len(1).for_each(|(from, head, output)| {
        let group = head / heads.group() * heads.width;
        Arch::new().dispatch(HeadTask {
            heads,
            visible: keys - rows + from + 1,
            q: TileRows {
                values: &q[from * width + head * heads.width..],
                count: output.len(),
                stride: width,
                depth: heads.width,
            },
            k: TileRows {
                values: &transposed.slice()[group * stride..],
                count: heads.width,
                stride,
                depth: stride,
            },
            v: TileRows { values: &v[group..], count: keys, stride: kv_width, depth: heads.width },
            output,
        });
    });
    output
}

/// The transpose of the keys, with rows padded with zeros.
fn transposed(k: &[f32], kv_width: usize, stride: usize) -> AlignedVec {
    let mut transposed = AlignedVec::zeros(kv_width * stride);
    for (key, values) in k.chunks(kv_width).enumerate() {
        for (row, value) in transposed.slice_mut().chunks_mut(stride).zip(values) {
            row[key] = *value;
        }
    }
    transposed
}

/// A task: some queries of one head.
struct HeadTask<'a> {
    heads: Heads,
    /// The number of keys that the first query sees.
    visible: usize,
    q: TileRows<'a>,
    /// `width × keys`.
    k: TileRows<'a>,
    v: TileRows<'a>,
    output: Vec<&'a mut [f32]>,
}

impl WithSimd for HeadTask<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let HeadTask { heads, visible, q, k, v, output } = self;
        let seen = visible + q.count - 1;
        let padded = seen.next_multiple_of(KEYS);
        let mut scores = AlignedVec::zeros(q.count * padded);
        let scores = &mut scores.slice_mut()[..q.count * padded];
        row_sums(simd, q, TileRows { depth: padded, ..k }, scores);
        let mut inverse = [0.0; QUERIES];
        for (row, scores) in scores.chunks_exact_mut(padded).enumerate() {
            let (past, future) = scores[..seen].split_at_mut(visible + row);
            future.fill(0.0);
            inverse[row] = 1.0 / exponentials(past, heads.scale as f32).1;
        }
        let weights = TileRows { values: scores, count: q.count, stride: padded, depth: seen };
        let mut sums = vec![0.0; q.count * heads.width];
        row_sums(simd, weights, TileRows { count: seen, ..v }, &mut sums);
        for ((output, sums), inverse) in
            output.into_iter().zip(sums.chunks_exact(heads.width)).zip(inverse)
        {
            for (output, sum) in output.iter_mut().zip(sums) {
                *output = sum * inverse;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{matrix, values};
    use crate::model::attention::Sequence;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// The f64 path is the reference: its gradient is compared with central differences.
    #[test]
    fn attention_in_f32_equals_that_in_f64() {
        let mut random = StdRng::seed_from_u64(1);
        for (query, key_value, width, rows, past) in
            [(14, 2, 64, 70, 0), (6, 3, 24, 50, 81), (2, 2, 80, 1, 130), (1, 1, 6, 3, 0)]
        {
            let scale = 1.0 / (width as f64).sqrt();
            let heads = Heads { query, key_value, width, scale };
            let mut some = |rows: usize, width: usize| -> (Vec<f32>, candle_core::Tensor) {
                let x: Vec<f32> =
                    (0..rows * width).map(|_| random.random_range(-2f32..2.0)).collect();
                let wide = x.iter().map(|x| f64::from(*x)).collect();
                (x, matrix::<f64>(wide, rows, width).unwrap())
            };
            let q = some(rows, query * width);
            let k = some(past + rows, key_value * width);
            let v = some(past + rows, key_value * width);
            let sequence = Sequence { q: q.1, k: k.1, v: v.1, past };
            let expected = values::<f64>(&sequence.forward::<f64>(heads).unwrap()).unwrap();
            for (ours, expected) in attention_f32(heads, &q.0, &k.0, &v.0).iter().zip(expected) {
                let off = (f64::from(*ours) - expected).abs();
                assert!(off < 1e-5, "{heads:?}: {ours} for {expected}");
            }
        }
    }
}
