//! Causal grouped-query attention on the GPU, and its gradient. The formulas are those of
//! [`attention`](crate::model::attention); the products are those of cuBLAS.

use crate::model::gpu::card::{Buffer, Gpu, Rows, View};
use crate::model::gpu::products::{Batch, Precision, Sum};
use crate::model::heads::Heads;
use std::ops::Range;

/// Bytes of the scores that are in memory at a time.
const SCORES_BYTES_MAX: usize = 64 << 20;

const PRECISION: Precision = Precision::Tf32;

/// The keys and values that the rows of one sequence see; the last ones are their own.
pub(super) struct Seen {
    pub k: Rows,
    pub v: Rows,
    /// The number of keys before those of the first row.
    pub past: usize,
}

/// The gradients of the rows of a sequence, with respect to q, k and v.
#[derive(Clone, Copy)]
pub(super) struct Gradients<'a> {
    pub q: View<'a>,
    pub k: View<'a>,
    pub v: View<'a>,
}

/// Some of the queries of a sequence.
struct Chunk {
    rows: Range<usize>,
    /// The number of keys that the last of them sees.
    seen: usize,
}

/// One chunk after the other, such that the scores of all heads fit into memory.
fn chunks(heads: Heads, rows: usize, past: usize) -> impl Iterator<Item = Chunk> {
    let row_bytes = heads.query * (past + rows) * size_of::<f32>();
    let most = (SCORES_BYTES_MAX / row_bytes).max(1);
    (0..rows).step_by(most).map(move |first| {
        let rows = first..(first + most).min(rows);
        Chunk { seen: past + rows.end, rows }
    })
}

/// The columns of a key/value head in keys and values.
fn columns(heads: Heads, head: usize) -> Range<usize> {
    head * heads.width..(head + 1) * heads.width
}

/// The columns of the first query head that shares a key/value head.
fn query_columns(heads: Heads, head: usize) -> Range<usize> {
    let first = head * heads.group() * heads.width;
    first..first + heads.width
}

impl Gpu {
    /// Keys and values for the rows of a sequence: those of the rows `path` of a group of prompts,
    /// and then `own`, if there are any.
    pub(super) fn seen(
        &self,
        (k, v): (&Buffer<u16>, &Buffer<u16>),
        path: &Buffer<u32>,
        path_rows: usize,
        own: Option<(View, View)>,
        kv_width: usize,
    ) -> anyhow::Result<(Rows, Rows)> {
        let own_rows = own.map_or(0, |(k, _)| k.rows);
        let all = path_rows + own_rows;
        let (all_k, all_v) = (self.rows(all, kv_width)?, self.rows(all, kv_width)?);
        self.gather_half(all_k.part(0..path_rows), k, path)?;
        self.gather_half(all_v.part(0..path_rows), v, path)?;
        if let Some((k, v)) = own {
            self.copy(all_k.part(path_rows..all), k)?;
            self.copy(all_v.part(path_rows..all), v)?;
        }
        Ok((all_k, all_v))
    }

    /// Writes the output for the rows `q` of a sequence to `output`.
    pub(super) fn attend(
        &self,
        heads: Heads,
        q: View,
        seen: &Seen,
        output: View,
    ) -> anyhow::Result<()> {
        for chunk in chunks(heads, q.rows, seen.past) {
            let (weights, batch) = self.weights(heads, q, seen, &chunk)?;
            for head in 0..heads.key_value {
                let output = of_queries(output, &chunk, heads, head);
                let v = seen.v.part(0..chunk.seen).columns(columns(heads, head));
                let batch = Batch { y: heads.width, x: batch.y, w: 0, ..batch };
                let p = of_head(&weights, &chunk, heads, head);
                self.times(PRECISION, output, p, v, Sum::REPLACED, batch)?;
            }
        }
        Ok(())
    }

    /// The weights of all keys for the queries of a chunk: for each query head, a matrix `queries ×
    /// keys`, one below the other. The batch is that of the scores of one key/value head.
    fn weights(
        &self,
        heads: Heads,
        q: View,
        seen: &Seen,
        chunk: &Chunk,
    ) -> anyhow::Result<(Rows, Batch)> {
        let rows = chunk.rows.len();
        let scores = self.rows(heads.query * rows, chunk.seen)?;
        let batch = Batch { count: heads.group(), y: rows * chunk.seen, x: heads.width, w: 0 };
        self.scores(heads, q, &seen.k, &scores, chunk, batch)?;
        let past = seen.past + chunk.rows.start;
        self.causal_softmax(scores.view(), rows, past, heads.scale)?;
        Ok((scores, batch))
    }

    /// x · keysᵀ for all heads.
    fn scores(
        &self,
        heads: Heads,
        x: View,
        keys: &Rows,
        scores: &Rows,
        chunk: &Chunk,
        batch: Batch,
    ) -> anyhow::Result<()> {
        for head in 0..heads.key_value {
            let x = of_queries(x, chunk, heads, head);
            let keys = keys.part(0..chunk.seen).columns(columns(heads, head));
            let y = of_head(scores, chunk, heads, head);
            self.times_transposed(PRECISION, y, x, keys, Sum::REPLACED, batch)?;
        }
        Ok(())
    }

    /// The gradients for the rows of a sequence. The keys and values before them are constants.
    pub(super) fn attend_backward(
        &self,
        heads: Heads,
        q: View,
        seen: &Seen,
        d_output: View,
        gradients: Gradients,
    ) -> anyhow::Result<()> {
        // Of each query head for itself. Those that share a key are added up in the end.
        let dk = self.zero_rows(q.rows, q.width)?;
        let dv = self.zero_rows(q.rows, q.width)?;
        for chunk in chunks(heads, q.rows, seen.past) {
            let (p, batch) = self.weights(heads, q, seen, &chunk)?;
            let ds = self.rows(p.rows, p.width)?;
            self.scores(heads, d_output, &seen.v, &ds, &chunk, batch)?;
            self.softmax_backward(ds.view(), p.view(), heads.scale)?;
            for head in 0..heads.key_value {
                let k = seen.k.part(0..chunk.seen).columns(columns(heads, head));
                let scores = batch.y;
                let batch = Batch { y: heads.width, x: scores, w: 0, ..batch };
                let ds = of_head(&ds, &chunk, heads, head);
                let dq = of_queries(gradients.q, &chunk, heads, head);
                self.times(PRECISION, dq, ds, k, Sum::REPLACED, batch)?;

                let own = seen.past..chunk.seen;
                let batch = Batch { w: heads.width, ..batch };
                let p = of_head(&p, &chunk, heads, head).columns(own.clone());
                let to = dv.part(0..chunk.rows.end).columns(query_columns(heads, head));
                let d_output = of_queries(d_output, &chunk, heads, head);
                self.transposed_times(PRECISION, to, p, d_output, Sum::ADDED, batch)?;
                let to = dk.part(0..chunk.rows.end).columns(query_columns(heads, head));
                let q = of_queries(q, &chunk, heads, head);
                self.transposed_times(PRECISION, to, ds.columns(own), q, Sum::ADDED, batch)?;
            }
        }
        self.sum_groups(gradients.k, dk.view(), heads.group(), heads.width)?;
        self.sum_groups(gradients.v, dv.view(), heads.group(), heads.width)
    }
}

/// The scores of the first query head that shares a key/value head.
fn of_head<'a>(scores: &'a Rows, chunk: &Chunk, heads: Heads, head: usize) -> View<'a> {
    let first = head * heads.group() * chunk.rows.len();
    scores.part(first..first + chunk.rows.len())
}

/// The rows of a chunk in the columns of the first query head that shares a key/value head.
fn of_queries<'a>(x: View<'a>, chunk: &Chunk, heads: Heads, head: usize) -> View<'a> {
    x.rows(chunk.rows.clone()).columns(query_columns(heads, head))
}
