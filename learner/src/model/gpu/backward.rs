//! The gradient of a forward pass on the GPU. The formulas are those of [`model`](crate::model).

use crate::kernels::matrix;
use crate::model::LoraGradients;
use crate::model::gpu::attention::Gradients;
use crate::model::gpu::card::{Buffer, Rows};
use crate::model::gpu::model::GpuModel;
use crate::model::gpu::passes::{GpuLora, GpuPass, Kept, Tails, pair_of};
use crate::model::gpu::products::{Batch, Precision, Sum};
use crate::model::lora::LoraGradient;
use crate::model::weights::{DOWN, GATE, K, O, Q, UP, V};
use anyhow::ensure;
use candle_core::Tensor;

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
            let rows = tails.each.last().map_or(0, |tail| tail.rows.end);
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
        for tail in &tails.each {
            let seen = model.seen(self.layer, tail, &kept.k, &kept.v)?;
            let rows = &tail.rows;
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
