//! Causal grouped-query attention of one sequence, and its gradient.
//!
//! The query heads that share a key/value head are stacked into one matrix. Each product is
//! then one matmul of candle, and the product itself computes the sum over the group that
//! the gradients of k and v consist of.

use crate::kernels::float::Float;
use crate::kernels::{dot, exponentials, matrix, values, with_values};
use crate::model::attention_forward::attention_f32;
use crate::model::heads::Heads;
use candle_core::{Result, Tensor};
use pulp::Arch;
use rayon::prelude::*;

/// The number of queries of a task. It limits the score matrix of a task to
/// QUERY_BLOCK · heads-per-group · keys values.
const QUERY_BLOCK: usize = 64;

/// The inputs for one sequence. Row i of `q` sees the keys `0..=past + i`.
///
/// `q` is `rows × query·width`; `k` and `v` are `(past + rows) × key_value·width`. q and k are
/// rotated already.
#[derive(Debug, Clone)]
pub struct Sequence {
    pub q: Tensor,
    pub k: Tensor,
    pub v: Tensor,
    pub past: usize,
}

/// A task: the queries of one block, for the query heads that share a key/value head.
struct GroupTask {
    head: usize,
    from: usize,
    rows: usize,
}

fn tasks(heads: Heads, rows: usize) -> Vec<GroupTask> {
    // The blocks with the most keys come first, so that all threads end at about the same
    // time.
    let blocks = rows.div_ceil(QUERY_BLOCK);
    (0..blocks)
        .rev()
        .flat_map(|block| {
            let from = block * QUERY_BLOCK;
            let rows = QUERY_BLOCK.min(rows - from);
            (0..heads.key_value).map(move |head| GroupTask { head, from, rows })
        })
        .collect()
}

impl Sequence {
    /// The output, `rows × query·width`.
    pub fn forward<T: Float>(&self, heads: Heads) -> Result<Tensor> {
        let (rows, width) = self.q.dims2()?;
        let single = with_values(&self.q, |q: &[T]| {
            with_values(&self.k, |k: &[T]| {
                with_values(&self.v, |v: &[T]| {
                    let (q, k, v) = (T::as_f32(q)?, T::as_f32(k)?, T::as_f32(v)?);
                    Some(attention_f32(heads, q, k, v))
                })
            })
        })???;
        if let Some(output) = single {
            return matrix(output, rows, width);
        }
        let parts: Vec<(GroupTask, Vec<T>)> = tasks(heads, rows)
            .into_par_iter()
            .with_max_len(1)
            .map(|task| {
                let q = gather::<T>(&self.q, heads, &task)?;
                let (k, v) = self.keys_values(heads, &task)?;
                let weights = self.weights::<T>(heads, &task, &q, &k)?;
                let output = values(&weights.matmul(&v)?)?;
                Ok((task, output))
            })
            .collect::<Result<_>>()?;
        let mut output = vec![T::zero(); rows * width];
        for (task, part) in &parts {
            scatter(&mut output, part, heads, task);
        }
        matrix(output, rows, width)
    }

    /// (dq, dk, dv) for the rows of this sequence. The keys and values of the past are
    /// constants and have no gradient.
    ///
    /// With P = softmax(c·qkᵀ) and o = Pv: dv = Pᵀdo, dP = do·vᵀ,
    /// dS = P∘(dP − rowsum(P∘dP)), dq = c·dS·k, dk = c·dSᵀq.
    pub fn backward<T: Float>(
        &self,
        heads: Heads,
        d_output: &Tensor,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let (rows, width) = self.q.dims2()?;
        let kv_width = heads.key_value * heads.width;
        let parts: Vec<(GroupTask, [Vec<T>; 3])> = tasks(heads, rows)
            .into_par_iter()
            .with_max_len(1)
            .map(|task| {
                let q = gather::<T>(&self.q, heads, &task)?;
                let d_output = gather::<T>(d_output, heads, &task)?;
                let (k, v) = self.keys_values(heads, &task)?;
                let p = self.weights::<T>(heads, &task, &q, &k)?;
                let dp = d_output.matmul(&v.t()?)?;
                let ds = softmax_backward::<T>(&p, &dp, heads.scale)?;
                let own = |x: &Tensor| x.narrow(1, self.past, task.from + task.rows);
                let dq = values(&ds.matmul(&k)?)?;
                let dk = values(&own(&ds)?.t()?.matmul(&q)?)?;
                let dv = values(&own(&p)?.t()?.matmul(&d_output)?)?;
                Ok((task, [dq, dk, dv]))
            })
            .collect::<Result<_>>()?;
        let mut dq = vec![T::zero(); rows * width];
        let mut dk = vec![T::zero(); rows * kv_width];
        let mut dv = vec![T::zero(); rows * kv_width];
        for (task, [q, k, v]) in &parts {
            scatter(&mut dq, q, heads, task);
            accumulate(&mut dk, k, heads, task);
            accumulate(&mut dv, v, heads, task);
        }
        Ok((matrix(dq, rows, width)?, matrix(dk, rows, kv_width)?, matrix(dv, rows, kv_width)?))
    }

    /// The keys and values that a task can see: `(past + from + rows) × width`, strided.
    fn keys_values(&self, heads: Heads, task: &GroupTask) -> Result<(Tensor, Tensor)> {
        let seen = self.past + task.from + task.rows;
        let of = |x: &Tensor| x.narrow(0, 0, seen)?.narrow(1, task.head * heads.width, heads.width);
        Ok((of(&self.k)?, of(&self.v)?))
    }

    /// softmax(scale·q·kᵀ), where future keys have weight 0: `rows·group × seen`.
    fn weights<T: Float>(
        &self,
        heads: Heads,
        task: &GroupTask,
        q: &Tensor,
        k: &Tensor,
    ) -> Result<Tensor> {
        let scores = q.matmul(&k.t()?)?;
        let (rows, seen) = scores.dims2()?;
        let scale = T::from_f64(heads.scale);
        let mut p = values::<T>(&scores)?;
        for (index, row) in p.chunks_mut(seen).enumerate() {
            let visible = self.past + task.from + index / heads.group() + 1;
            let (past, future) = row.split_at_mut(visible);
            Arch::new().dispatch(|| {
                let inverse = T::one() / exponentials(past, scale).1;
                past.iter_mut().for_each(|weight| *weight *= inverse);
            });
            future.fill(T::zero());
        }
        matrix(p, rows, seen)
    }
}

/// scale · P∘(dP − rowsum(P∘dP)).
fn softmax_backward<T: Float>(p: &Tensor, dp: &Tensor, scale: f64) -> Result<Tensor> {
    let (rows, seen) = p.dims2()?;
    let scale = T::from_f64(scale);
    let mut ds = values::<T>(dp)?;
    with_values(p, |p: &[T]| {
        for (ds, p) in ds.chunks_mut(seen).zip(p.chunks(seen)) {
            let along = dot(ds, p);
            for (ds, p) in ds.iter_mut().zip(p) {
                *ds = *p * (*ds - along) * scale;
            }
        }
    })?;
    matrix(ds, rows, seen)
}

/// The rows of a task for the query heads of its group, stacked to `rows·group × width`.
fn gather<T: Float>(x: &Tensor, heads: Heads, task: &GroupTask) -> Result<Tensor> {
    let width = x.dim(1)?;
    let (from, span) = group_span(heads, task);
    let mut stacked = Vec::with_capacity(task.rows * span);
    with_values(x, |x: &[T]| {
        for row in x[task.from * width..].chunks(width).take(task.rows) {
            stacked.extend_from_slice(&row[from..from + span]);
        }
    })?;
    matrix(stacked, task.rows * heads.group(), heads.width)
}

/// The reverse of [`gather`].
fn scatter<T: Float>(x: &mut [T], part: &[T], heads: Heads, task: &GroupTask) {
    let width = heads.query * heads.width;
    let (from, span) = group_span(heads, task);
    for (row, part) in x[task.from * width..].chunks_mut(width).zip(part.chunks(span)) {
        row[from..from + span].copy_from_slice(part);
    }
}

/// The first column and the number of columns of the task's query heads.
fn group_span(heads: Heads, task: &GroupTask) -> (usize, usize) {
    let span = heads.group() * heads.width;
    (task.head * span, span)
}

/// Adds a task's gradient of one key/value head to the whole gradient.
fn accumulate<T: Float>(x: &mut [T], part: &[T], heads: Heads, task: &GroupTask) {
    let width = heads.key_value * heads.width;
    let from = task.head * heads.width;
    for (row, part) in x.chunks_mut(width).zip(part.chunks(heads.width)) {
        for (value, part) in row[from..from + heads.width].iter_mut().zip(part) {
            *value += *part;
        }
    }
}
