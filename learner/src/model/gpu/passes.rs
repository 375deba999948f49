//! The passes through the layers on the GPU: that of prompts, and those of tails with their
//! gradient. They compute what [`prompt_pass`](crate::model::prompt_pass) and
//! [`model`](crate::model) say, in the same order.

use crate::kernels::{matrix, scale_in_place, values};
use crate::model::gpu::attention::{Gradients, Seen};
use crate::model::gpu::card::{Buffer, Rows, View};
use crate::model::gpu::kernels::GpuAngles;
use crate::model::gpu::model::{GpuLayer, GpuModel};
use crate::model::gpu::products::{Batch, Precision, Sum};
use crate::model::lora::{Lora, LoraGradient};
use crate::model::prefix_tree::PrefixTree;
use crate::model::weights::{DOWN, GATE, K, O, Q, UP, V};
use crate::model::{LoraGradients, TailBatch};
use anyhow::{Context, ensure};
use candle_core::Tensor;
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
struct GpuLora {
    values: Buffer<f32>,
    /// Of each layer, the places of its pairs. The gradient has the same places.
    layers: Vec<Vec<PairPlace>>,
    rank: usize,
    scale: f64,
}

/// Where a pair begins in the values of an adapter.
#[derive(Clone, Copy)]
struct PairPlace {
    a: usize,
    b: usize,
    rows_out: usize,
    rows_in: usize,
}

/// The input of a linear map: as it is for the adapter, and rounded for the frozen matrix.
struct Input {
    exact: Rows,
    rounded: Buffer<u16>,
}

/// What a layer keeps for its gradient. Norms, attention weights and activations are computed
/// again.
struct Kept {
    x: Rows,
    /// q and k before the norms of their heads, if there are any.
    before_head_norms: Option<[Rows; 2]>,
    q: Rows,
    k: Rows,
    v: Rows,
    attended: Rows,
    middle: Rows,
    gate: Rows,
    up: Rows,
    /// Of each map, (alpha/r)·xAᵀ.
    reduced: Vec<Rows>,
}

/// The rows of a batch of tails on the GPU, and where the keys and values before them lie.
struct Tails<'a> {
    kv: Vec<&'a GpuKv>,
    paths: Vec<Buffer<u32>>,
    path_rows: Vec<usize>,
    rows: Vec<Range<usize>>,
    angles: GpuAngles,
}

/// A forward pass on the GPU that can be differentiated.
pub struct GpuPass<'a> {
    model: &'a GpuModel,
    lora: GpuLora,
    tails: Tails<'a>,
    predicting: Buffer<u32>,
    x: Rows,
    d_logprob: Rows,
    /// The first layer that something is kept of.
    first: usize,
    kept: Vec<Kept>,
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
        let mut tails = Tails {
            kv: vec![],
            paths: vec![],
            path_rows: vec![],
            rows: vec![],
            angles: self.angles(&batch.positions)?,
        };
        for ((_, past, rows), (group, path)) in batch.tails.iter().zip(prompts) {
            ensure!(path.len() == *past, "a tail behind {past} rows, {} are known", path.len());
            tails.kv.push(*group);
            tails.path_rows.push(path.len());
            // The GPU takes no buffer without values.
            let path: &[u32] = if path.is_empty() { &[0] } else { path };
            tails.paths.push(self.gpu.upload(path)?);
            tails.rows.push(rows.clone());
        }
        Ok(tails)
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
        for (tail, rows) in tails.rows.iter().enumerate() {
            let seen = self.seen(index, tails, tail, &k, &v)?;
            let output = attended.part(rows.clone());
            gpu.attend(self.heads, q.part(rows.clone()), &seen, output)?;
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

    /// What the rows of a tail see in a layer.
    fn seen(
        &self,
        layer: usize,
        tails: &Tails,
        tail: usize,
        k: &Rows,
        v: &Rows,
    ) -> anyhow::Result<Seen> {
        let (rows, past) = (&tails.rows[tail], tails.path_rows[tail]);
        let own = Some((k.part(rows.clone()), v.part(rows.clone())));
        let group = tails.kv[tail].layers.get(layer);
        let (k, v) = match group {
            Some((of_k, of_v)) => {
                self.gpu.seen((of_k, of_v), &tails.paths[tail], past, own, k.width)?
            }
            // All prompts of the group are empty.
            None => {
                let nothing = self.gpu.zeros(1)?;
                self.gpu.seen((&nothing, &nothing), &tails.paths[tail], past, own, k.width)?
            }
        };
        Ok(Seen { k, v, past })
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
    fn pair(&self, layer: usize, map: usize) -> (View<'_>, View<'_>) {
        pair_of(&self.values, self.layers[layer][map], self.rank)
    }
}

/// A and B of a pair, or their gradients.
fn pair_of(values: &Buffer<f32>, place: PairPlace, rank: usize) -> (View<'_>, View<'_>) {
    let PairPlace { a, b, rows_out, rows_in } = place;
    (values.matrix(a, rank, rows_in), values.matrix(b, rows_out, rank))
}

impl GpuPass<'_> {
    /// The gradient of a loss, where `d_loss[i] = ∂loss/∂logprobs[i]`.
    pub fn backward(self, d_loss: &[f32]) -> anyhow::Result<LoraGradients> {
        self.model.run(|| {
            let GpuPass { model, lora, tails, predicting, x, d_logprob, first, kept, .. } = &self;
            let gpu = &model.gpu;
            ensure!(d_loss.len() == d_logprob.rows, "a gradient for other targets");
            gpu.scale_rows(d_logprob.view(), &gpu.upload(d_loss)?)?;
            let at_rows = gpu.rows(x.rows, x.width)?;
            let norm = &model.output_norm;
            gpu.norm_backward(norm, at_rows.view(), d_logprob.view(), x.view(), false)?;
            let rows = tails.rows.last().map_or(0, |rows| rows.end);
            let mut dx = gpu.zero_rows(rows, x.width)?;
            gpu.scatter(dx.view(), at_rows.view(), predicting)?;

            let gradient = gpu.space::<f32>(lora.values.len())?;
            for (index, kept) in kept.iter().enumerate().rev() {
                let backward = LayerBackward { model, lora, tails, layer: first + index, kept };
                dx = backward.run(dx, &gradient)?;
            }
            self.gradients(&gpu.download(&gradient)?)
        })
    }

    /// Cuts the values of the whole gradient into those of the pairs.
    fn gradients(&self, all: &[f32]) -> anyhow::Result<LoraGradients> {
        let rank = self.lora.rank;
        let tensor = |from: usize, rows: usize, width: usize| -> candle_core::Result<Tensor> {
            matrix(all[from..from + rows * width].to_vec(), rows, width)
        };
        let places = self.lora.layers.iter().flatten();
        let gradients = places.map(|place| {
            Ok(LoraGradient {
                a: tensor(place.a, rank, place.rows_in)?,
                b: tensor(place.b, place.rows_out, rank)?,
            })
        });
        gradients.collect()
    }
}

/// The backward pass of one layer.
struct LayerBackward<'a> {
    model: &'a GpuModel,
    lora: &'a GpuLora,
    tails: &'a Tails<'a>,
    layer: usize,
    kept: &'a Kept,
}

impl LayerBackward<'_> {
    /// The gradient with respect to the layer's input. Those of its pairs go into `gradient`.
    fn run(&self, dy: Rows, gradient: &Buffer<f32>) -> anyhow::Result<Rows> {
        let LayerBackward { model, tails, kept, .. } = self;
        let gpu = &model.gpu;
        let layer = &model.layers[self.layer];
        let like = |x: &Rows| gpu.rows(x.rows, x.width);

        let normed = gpu.norm(&layer.feed_forward_norm, kept.middle.view())?;
        let (gate, up) = (kept.gate.view(), kept.up.view());
        let h = gpu.gated(model.activation, gate, up)?;
        let dh = like(&h)?;
        self.linear(DOWN, &h, &self.scaled(&dy)?, &dh, false, gradient)?;
        let (d_gate, d_up) = gpu.gated_backward(model.activation, dh.view(), gate, up)?;
        let d_normed = like(&normed)?;
        self.linear(GATE, &normed, &d_gate, &d_normed, false, gradient)?;
        self.linear(UP, &normed, &d_up, &d_normed, true, gradient)?;
        let d_middle = dy;
        let (norm, middle) = (&layer.feed_forward_norm, kept.middle.view());
        gpu.norm_backward(norm, d_middle.view(), d_normed.view(), middle, true)?;

        let d_attended = like(&kept.attended)?;
        let d_output = self.scaled(&d_middle)?;
        self.linear(O, &kept.attended, &d_output, &d_attended, false, gradient)?;
        let (mut dq, mut dk, dv) = (like(&kept.q)?, like(&kept.k)?, like(&kept.v)?);
        for (tail, rows) in tails.rows.iter().enumerate() {
            let seen = model.seen(self.layer, tails, tail, &kept.k, &kept.v)?;
            let gradients = Gradients {
                q: dq.part(rows.clone()),
                k: dk.part(rows.clone()),
                v: dv.part(rows.clone()),
            };
            let d_output = d_attended.part(rows.clone());
            let q = kept.q.part(rows.clone());
            gpu.attend_backward(model.heads, q, &seen, d_output, gradients)?;
        }
        gpu.rotate(dq.view(), &tails.angles, -1.0)?;
        gpu.rotate(dk.view(), &tails.angles, -1.0)?;
        if let (Some([of_q, of_k]), Some([q, k])) = (&layer.head_norms, &kept.before_head_norms) {
            let (before_q, before_k) = (like(q)?, like(k)?);
            gpu.norm_backward(of_q, before_q.view(), dq.view(), q.view(), false)?;
            gpu.norm_backward(of_k, before_k.view(), dk.view(), k.view(), false)?;
            (dq, dk) = (before_q, before_k);
        }
        let normed = gpu.norm(&layer.attention_norm, kept.x.view())?;
        let d_normed = like(&normed)?;
        self.linear(Q, &normed, &dq, &d_normed, false, gradient)?;
        self.linear(K, &normed, &dk, &d_normed, true, gradient)?;
        self.linear(V, &normed, &dv, &d_normed, true, gradient)?;
        let dx = d_middle;
        let (norm, x) = (&layer.attention_norm, kept.x.view());
        gpu.norm_backward(norm, dx.view(), d_normed.view(), x, true)?;
        Ok(dx)
    }

    /// A copy times the factor of residuals.
    fn scaled(&self, x: &Rows) -> anyhow::Result<Rows> {
        let gpu = &self.model.gpu;
        let y = gpu.zero_rows(x.rows, x.width)?;
        gpu.add_scaled(y.view(), x.view(), self.model.residual_scale)?;
        Ok(y)
    }

    /// The gradient of a map and its pair: that of its input goes to `dx`, or is added to it.
    fn linear(
        &self,
        map: usize,
        x: &Rows,
        dy: &Rows,
        dx: &Rows,
        adds: bool,
        gradient: &Buffer<f32>,
    ) -> anyhow::Result<()> {
        let LayerBackward { model, lora, layer, kept, .. } = self;
        let gpu = &model.gpu;
        let weight = &model.layers[*layer].maps[map].weight;
        let rounded = gpu.to_bfloat(dy.view())?;
        let w = weight.bits.matrix(0, weight.rows, weight.width);
        let dy_rounded = rounded.matrix(0, dy.rows, dy.width);
        let sum = Sum::adding(adds);
        gpu.times(Precision::Bfloat, dx.view(), dy_rounded, w, sum, Batch::ONE)?;

        let (exact, one) = (Precision::Single, Batch::ONE);
        let (a, b) = lora.pair(*layer, map);
        let (d_a, d_b) = pair_of(gradient, lora.layers[*layer][map], lora.rank);
        let (u, du) = (&kept.reduced[map], gpu.rows(dy.rows, lora.rank)?);
        gpu.transposed_times(exact, d_b, dy.view(), u.view(), Sum::REPLACED, one)?;
        gpu.times(exact, du.view(), dy.view(), b, Sum::scaled(lora.scale), one)?;
        gpu.transposed_times(exact, d_a, du.view(), x.view(), Sum::REPLACED, one)?;
        gpu.times(exact, dx.view(), du.view(), a, Sum::ADDED, one)
    }
}
