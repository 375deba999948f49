//! The passes through the layers on the GPU: that of prompts, and those of tails. They compute what
//! [`prompt_pass`](crate::model::prompt_pass) and [`model`](crate::model) say, in the same order.

use crate::kernels::{scale_in_place, values};
use crate::model::TailBatch;
use crate::model::gpu::attention::Seen;
use crate::model::gpu::card::{Buffer, Rows, View};
use crate::model::gpu::kernels::GpuAngles;
use crate::model::gpu::model::{GpuLayer, GpuModel};
use crate::model::gpu::products::{Batch, Precision, Sum};
use crate::model::lora::Lora;
use crate::model::prefix_tree::PrefixTree;
use crate::model::weights::{DOWN, GATE, K, O, Q, UP, V};
use anyhow::{Context, ensure};
use std::ops::Range;

/// The number of rows of which the feed-forward part of prompts is computed at once, because its
/// activations are the widest.
const FEED_FORWARD_ROWS: usize = 1024;

/// The keys, which are rotated, and the values of a group of prompts: of each layer, `rows ×
/// kv_width` of f16 by their bits.
pub struct GpuKv {
    layers: Vec<(Buffer<u16>, Buffer<u16>)>,
}

/// The keys and values that a prompt's lie among, and its rows there.
pub(in crate::model) type PromptRows<'a> = (&'a GpuKv, &'a [u32]);

/// An adapter in GPU memory. All its values are in one buffer, which is copied at once.
pub(super) struct GpuLora {
    pub(super) values: Buffer<f32>,
    /// The places of the pairs of each layer. The gradient has the same places.
    pub(super) layers: Vec<Vec<PairPlace>>,
    pub(super) rank: usize,
    pub(super) scale: f64,
}

/// The place where a pair begins in the values of an adapter.
#[derive(Clone, Copy)]
pub(super) struct PairPlace {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) rows_out: usize,
    pub(super) rows_in: usize,
}

/// The input of a linear map: as it is for the adapter, and rounded for the frozen matrix.
struct Input {
    exact: Rows,
    rounded: Buffer<u16>,
}

/// The tensors that a layer keeps for its gradient. Norms, attention weights and activations are
/// computed again.
pub(super) struct Kept {
    pub(super) x: Rows,
    /// q and k before the norms of their heads, if there are any.
    pub(super) before_head_norms: Option<[Rows; 2]>,
    pub(super) q: Rows,
    pub(super) k: Rows,
    pub(super) v: Rows,
    pub(super) attended: Rows,
    pub(super) middle: Rows,
    pub(super) gate: Rows,
    pub(super) up: Rows,
    /// (alpha/r)·xAᵀ of each map.
    pub(super) reduced: Vec<Rows>,
}

/// The rows of a batch of tails on the GPU.
pub(super) struct Tails<'a> {
    pub(super) each: Vec<TailRows<'a>>,
    pub(super) angles: GpuAngles,
}

/// The rows of one tail, and where the keys and values before them lie.
pub(super) struct TailRows<'a> {
    kv: &'a GpuKv,
    path: Buffer<u32>,
    past: usize,
    pub(super) rows: Range<usize>,
}

/// A forward pass on the GPU that can be differentiated.
pub struct GpuPass<'a> {
    pub(super) model: &'a GpuModel,
    pub(super) lora: GpuLora,
    pub(super) tails: Tails<'a>,
    pub(super) predicting: Buffer<u32>,
    pub(super) x: Rows,
    pub(super) d_logprob: Rows,
    /// The first layer that something is kept of.
    pub(super) first: usize,
    pub(super) kept: Vec<Kept>,
    pub logprobs: Vec<f32>,
}

impl GpuModel {
    /// Runs the base over the rows of one tree.
    pub(in crate::model) fn prompt_pass(&self, tree: &PrefixTree) -> anyhow::Result<GpuKv> {
        self.run(|| self.pass_through(tree))
    }

    fn pass_through(&self, tree: &PrefixTree) -> anyhow::Result<GpuKv> {
        let mut layers = Vec::with_capacity(self.layers.len());
        if tree.tokens.is_empty() {
            return Ok(GpuKv { layers });
        }
        let gpu = &self.gpu;
        let mut x = self.embedded(&tree.tokens)?;
        let angles = self.angles(&tree.positions)?;
        let paths = tree.branches.iter().map(|branch| {
            let path = &tree.paths[branch.prompt][..branch.start + branch.rows.len()];
            gpu.upload(path)
        });
        let paths = paths.collect::<anyhow::Result<Vec<_>>>()?;
        for (index, layer) in self.layers.iter().enumerate() {
            let normed = self.input(gpu.norm(&layer.attention_norm, x.view())?)?;
            let k = self.rotated(layer, K, &normed, &angles)?;
            let v = self.base(layer, V, &normed)?;
            let kept = (gpu.to_half(k.view())?, gpu.to_half(v.view())?);
            // The last layer has no output, because nothing reads it.
            if index + 1 < self.layers.len() {
                let q = self.rotated(layer, Q, &normed, &angles)?;
                let attended = gpu.rows(q.rows, q.width)?;
                for (branch, path) in tree.branches.iter().zip(&paths) {
                    let kv = (&kept.0, &kept.1);
                    let (k, v) = gpu.seen(kv, path, path.len(), None, k.width)?;
                    let seen = Seen { k, v, past: branch.start };
                    let rows = || branch.rows.clone();
                    gpu.attend(self.heads, q.part(rows()), &seen, attended.part(rows()))?;
                }
                let output = self.base(layer, O, &self.input(attended)?)?;
                gpu.add_scaled(x.view(), output.view(), self.residual_scale)?;
                x = self.feed_forward(layer, x)?;
            }
            layers.push(kept);
        }
        gpu.finish()?;
        Ok(GpuKv { layers })
    }

    /// Adds the feed-forward part of the base to rows.
    fn feed_forward(&self, layer: &GpuLayer, x: Rows) -> anyhow::Result<Rows> {
        let gpu = &self.gpu;
        for first in (0..x.rows).step_by(FEED_FORWARD_ROWS) {
            let rows = x.part(first..(first + FEED_FORWARD_ROWS).min(x.rows));
            let normed = self.input(gpu.norm(&layer.feed_forward_norm, rows)?)?;
            let gate = self.base(layer, GATE, &normed)?;
            let up = self.base(layer, UP, &normed)?;
            let h = self.input(gpu.gated(self.activation, gate.view(), up.view())?)?;
            let output = self.base(layer, DOWN, &h)?;
            gpu.add_scaled(rows, output.view(), self.residual_scale)?;
        }
        Ok(x)
    }

    /// ln π of each target under the base, or under base and adapter.
    pub(in crate::model) fn logprobs(
        &self,
        lora: Option<&Lora>,
        batch: &TailBatch,
        prompts: &[PromptRows],
    ) -> anyhow::Result<Vec<f32>> {
        self.run(|| {
            let lora = lora.map(|lora| self.upload_lora(lora)).transpose()?;
            let tails = self.tails(batch, prompts)?;
            let predicting = self.gpu.upload(&batch.predicting)?;
            let x = self.layers(lora.as_ref(), batch, &tails, None)?;
            let x = self.gpu.gather(x.view(), &predicting)?;
            let normed = self.gpu.norm(&self.output_norm, x.view())?;
            Ok(self.predict(normed.view(), &batch.targets, false)?.logprobs)
        })
    }

    /// The same under base and adapter, which keeps what [`GpuPass::backward`] needs.
    pub(in crate::model) fn forward<'a>(
        &'a self,
        lora: &Lora,
        batch: &TailBatch,
        prompts: &[PromptRows<'a>],
    ) -> anyhow::Result<GpuPass<'a>> {
        self.run(|| {
            let first = lora.first_layer();
            let lora = self.upload_lora(lora)?;
            let tails = self.tails(batch, prompts)?;
            let predicting = self.gpu.upload(&batch.predicting)?;
            let mut kept = Vec::with_capacity(self.layers.len() - first);
            let x = self.layers(Some(&lora), batch, &tails, Some(&mut kept))?;
            let x = self.gpu.gather(x.view(), &predicting)?;
            let normed = self.gpu.norm(&self.output_norm, x.view())?;
            let prediction = self.predict(normed.view(), &batch.targets, true)?;
            let d_logprob = prediction.gradient.context("the head returned no gradient")?;
            let logprobs = prediction.logprobs;
            let model = self;
            Ok(GpuPass { model, lora, tails, predicting, x, d_logprob, first, kept, logprobs })
        })
    }

    fn embedded(&self, tokens: &[u32]) -> anyhow::Result<Rows> {
        let mut x = values::<f32>(&self.embedding.embed::<f32>(tokens)?)?;
        scale_in_place(&mut x, self.embedding_scale);
        self.gpu.upload_rows(&x, self.embedding.width)
    }

    fn upload_lora(&self, lora: &Lora) -> anyhow::Result<GpuLora> {
        let mut all = vec![];
        let mut layers = Vec::with_capacity(lora.layers.len());
        for layer in &lora.layers {
            let mut places = Vec::with_capacity(layer.len());
            for pair in layer {
                let ((rank, rows_in), (rows_out, _)) = (pair.a.dims2()?, pair.b.dims2()?);
                let (a, b) = (all.len(), all.len() + rank * rows_in);
                places.push(PairPlace { a, b, rows_out, rows_in });
                all.extend(values::<f32>(&pair.a.contiguous()?)?);
                all.extend(values::<f32>(&pair.b.contiguous()?)?);
            }
            layers.push(places);
        }
        ensure!(!all.is_empty(), "the adapter has no values");
        let (rank, scale) = (lora.rank, lora.scale());
        Ok(GpuLora { values: self.gpu.upload(&all)?, layers, rank, scale })
    }

    fn tails<'a>(
        &self,
        batch: &TailBatch,
        prompts: &[PromptRows<'a>],
    ) -> anyhow::Result<Tails<'a>> {
        let tails = batch.tails.iter().zip(prompts);
        let each = tails.map(|((_, past, rows), (kv, path))| {
            ensure!(path.len() == *past, "a tail behind {past} rows, {} are known", path.len());
            // The GPU takes no buffer without values.
            let path: &[u32] = if path.is_empty() { &[0] } else { path };
            Ok(TailRows { kv, path: self.gpu.upload(path)?, past: *past, rows: rows.clone() })
        });
        let each = each.collect::<anyhow::Result<_>>()?;
        Ok(Tails { each, angles: self.angles(&batch.positions)? })
    }

    fn layers(
        &self,
        lora: Option<&GpuLora>,
        batch: &TailBatch,
        tails: &Tails,
        mut kept: Option<&mut Vec<Kept>>,
    ) -> anyhow::Result<Rows> {
        let mut x = self.embedded(&batch.tokens)?;
        for index in 0..self.layers.len() {
            let pairs = lora.filter(|lora| !lora.layers[index].is_empty());
            let (y, keeps) = self.layer(index, x, pairs, tails)?;
            x = y;
            if let Some(kept) = &mut kept
                && pairs.is_some()
            {
                kept.push(keeps);
            }
        }
        Ok(x)
    }

    fn layer(
        &self,
        index: usize,
        x: Rows,
        lora: Option<&GpuLora>,
        tails: &Tails,
    ) -> anyhow::Result<(Rows, Kept)> {
        let (gpu, layer) = (&self.gpu, &self.layers[index]);
        let mut reduced = Vec::with_capacity(layer.maps.len());
        // It is called in the order of the layer's maps, so that `reduced` has the same order.
        let mut linear = |map: usize, x: &Input| -> anyhow::Result<Rows> {
            let y = self.base(layer, map, x)?;
            if let Some(lora) = lora {
                let (a, b) = lora.pair(index, map);
                let u = gpu.rows(x.exact.rows, lora.rank)?;
                let (exact, scale) = (Precision::Single, Sum::scaled(lora.scale));
                gpu.times_transposed(exact, u.view(), x.exact.view(), a, scale, Batch::ONE)?;
                gpu.times_transposed(exact, y.view(), u.view(), b, Sum::ADDED, Batch::ONE)?;
                reduced.push(u);
            }
            Ok(y)
        };

        let normed = self.input(gpu.norm(&layer.attention_norm, x.view())?)?;
        let mut q = linear(Q, &normed)?;
        let mut k = linear(K, &normed)?;
        let v = linear(V, &normed)?;
        let mut before_head_norms = None;
        if let Some([of_q, of_k]) = &layer.head_norms {
            let normed = [gpu.norm(of_q, q.view())?, gpu.norm(of_k, k.view())?];
            before_head_norms = Some([q, k]);
            [q, k] = normed;
        }
        gpu.rotate(q.view(), &tails.angles, 1.0)?;
        gpu.rotate(k.view(), &tails.angles, 1.0)?;
        let attended = gpu.rows(q.rows, q.width)?;
        for tail in &tails.each {
            let seen = self.seen(index, tail, &k, &v)?;
            let output = attended.part(tail.rows.clone());
            gpu.attend(self.heads, q.part(tail.rows.clone()), &seen, output)?;
        }
        let attended = self.input(attended)?;
        let output = linear(O, &attended)?;
        let middle = gpu.copy_of(&x)?;
        gpu.add_scaled(middle.view(), output.view(), self.residual_scale)?;

        let normed = self.input(gpu.norm(&layer.feed_forward_norm, middle.view())?)?;
        let gate = linear(GATE, &normed)?;
        let up = linear(UP, &normed)?;
        let h = self.input(gpu.gated(self.activation, gate.view(), up.view())?)?;
        let output = linear(DOWN, &h)?;
        let y = gpu.copy_of(&middle)?;
        gpu.add_scaled(y.view(), output.view(), self.residual_scale)?;
        let attended = attended.exact;
        let kept = Kept { x, before_head_norms, q, k, v, attended, middle, gate, up, reduced };
        Ok((y, kept))
    }

    /// Returns what the rows of a tail see in a layer.
    pub(super) fn seen(
        &self,
        layer: usize,
        tail: &TailRows,
        k: &Rows,
        v: &Rows,
    ) -> anyhow::Result<Seen> {
        let TailRows { kv, path, past, rows } = tail;
        let own = Some((k.part(rows.clone()), v.part(rows.clone())));
        let (k, v) = match kv.layers.get(layer) {
            Some((of_k, of_v)) => self.gpu.seen((of_k, of_v), path, *past, own, k.width)?,
            // All prompts of the group are empty.
            None => {
                let nothing = self.gpu.zeros(1)?;
                self.gpu.seen((&nothing, &nothing), path, *past, own, k.width)?
            }
        };
        Ok(Seen { k, v, past: *past })
    }

    /// W·x + b.
    fn base(&self, layer: &GpuLayer, map: usize, x: &Input) -> anyhow::Result<Rows> {
        let (gpu, map) = (&self.gpu, &layer.maps[map]);
        let y = gpu.rows(x.exact.rows, map.weight.rows)?;
        let rounded = x.rounded.matrix(0, x.exact.rows, x.exact.width);
        let w = map.weight.bits.matrix(0, map.weight.rows, map.weight.width);
        let (precision, sum) = (Precision::Bfloat, Sum::REPLACED);
        gpu.times_transposed(precision, y.view(), rounded, w, sum, Batch::ONE)?;
        if let Some(bias) = &map.bias {
            gpu.add_to_rows(y.view(), bias)?;
        }
        Ok(y)
    }

    /// q or k of the base, with the norms of their heads, rotated.
    fn rotated(
        &self,
        layer: &GpuLayer,
        map: usize,
        x: &Input,
        angles: &GpuAngles,
    ) -> anyhow::Result<Rows> {
        let mut y = self.base(layer, map, x)?;
        if let Some([of_q, of_k]) = &layer.head_norms {
            y = self.gpu.norm(if map == Q { of_q } else { of_k }, y.view())?;
        }
        self.gpu.rotate(y.view(), angles, 1.0)?;
        Ok(y)
    }

    fn input(&self, exact: Rows) -> anyhow::Result<Input> {
        Ok(Input { rounded: self.gpu.to_bfloat(exact.view())?, exact })
    }
}

impl GpuLora {
    pub(super) fn pair(&self, layer: usize, map: usize) -> (View<'_>, View<'_>) {
        pair_of(&self.values, self.layers[layer][map], self.rank)
    }
}

/// A and B of a pair, or their gradients.
pub(super) fn pair_of(values: &Buffer<f32>, place: PairPlace, rank: usize) -> (View<'_>, View<'_>) {
    let PairPlace { a, b, rows_out, rows_in } = place;
    (values.matrix(a, rank, rows_in), values.matrix(b, rows_out, rank))
}
