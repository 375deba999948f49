//! The forward pass and the hand-written backward pass of qwen2 and llama models.
//!
//! Both go through the *tail* of an episode: `prompt[adapter_from..]` and the generated
//! tokens. The keys and values of the prompt before the tail are constants. The adapter acts
//! on the rows of the tail only (an activated LoRA, arXiv:2504.12397). Nothing before the
//! tail depends on it, so that this gradient is exact.
//!
//! The tails of a batch are concatenated. Each map then takes one matrix product for any
//! number of episodes; only attention handles the tails one by one.

pub mod attention;
pub mod attention_forward;
#[cfg(feature = "cuda")]
pub mod gpu;
#[cfg(feature = "cuda")]
pub mod gpu_layers;
pub mod heads;
pub mod lm_head;
pub mod lora;
pub mod prompt_pass;
pub mod weights;

use crate::kernels::float::Float;
use crate::kernels::{
    add, add_bias, matrix, rms_norm, rms_norm_backward, swiglu, swiglu_backward, with_values,
};
use crate::model::attention::Sequence;
use crate::model::heads::Heads;
use crate::model::lm_head::{Target, predict};
use crate::model::lora::{Lora, LoraGradient, LoraLayer, Reduced};
use crate::model::prompt_pass::{PromptKv, PromptPlace};
use crate::model::weights::{DOWN, GATE, K, Layer, MAPS, O, Q, UP, V};
use candle_core::{Device, Result, Tensor};
use rayon::prelude::*;
use std::ops::Range;

pub use crate::model::weights::Transformer;

/// The tail of one episode.
#[derive(Debug, Clone)]
pub struct Tail {
    pub place: PromptPlace,
    /// The number of rows before the tail, all of them in the keys and values of the prompt.
    pub past: usize,
    /// `prompt[adapter_from..]` and every generated token but the last.
    pub tokens: Vec<u32>,
    /// The tokens that the last `targets.len()` rows predict.
    pub targets: Vec<Target>,
}

/// Concatenated tails.
pub struct TailBatch {
    tokens: Vec<u32>,
    positions: Vec<usize>,
    /// Of each tail: where its prompt lies, the rows before it, and its own rows.
    tails: Vec<(PromptPlace, usize, Range<usize>)>,
    /// The row that predicts each target.
    predicting: Vec<u32>,
    targets: Vec<Target>,
}

impl TailBatch {
    pub fn new<'a>(tails: impl IntoIterator<Item = &'a Tail>) -> TailBatch {
        let mut batch = TailBatch {
            tokens: Vec::new(),
            positions: Vec::new(),
            tails: Vec::new(),
            predicting: Vec::new(),
            targets: Vec::new(),
        };
        for tail in tails {
            let first = batch.tokens.len();
            let end = first + tail.tokens.len();
            batch.tokens.extend_from_slice(&tail.tokens);
            batch.positions.extend(tail.past..tail.past + tail.tokens.len());
            batch.tails.push((tail.place, tail.past, first..end));
            batch.predicting.extend((end - tail.targets.len()..end).map(|row| row as u32));
            batch.targets.extend_from_slice(&tail.targets);
        }
        batch
    }

    /// The number of tails.
    pub fn len(&self) -> usize {
        self.tails.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tails.is_empty()
    }
}

/// What a layer keeps for its gradient. Tensors share memory with the forward pass where
/// possible. Norms, attention weights and SwiGLU are computed again.
struct SavedLayer {
    x: Tensor,
    sequences: Vec<Sequence>,
    attended: Tensor,
    middle: Tensor,
    gate: Tensor,
    up: Tensor,
    reduced: Vec<Reduced>,
}

/// A forward pass that can be differentiated.
pub struct ForwardPass<'a, T> {
    model: &'a Transformer<T>,
    lora: &'a Lora,
    batch: &'a TailBatch,
    /// ln π of each target, in the order of the batch.
    pub logprobs: Vec<T>,
    x: Tensor,
    d_logprob: Tensor,
    saved: Vec<SavedLayer>,
}

/// The gradient of every pair, in the order of the adapter.
pub type LoraGradients = Vec<LoraGradient>;

impl<T: Float> Transformer<T> {
    pub fn heads(&self) -> Heads {
        Heads {
            query: self.shape.heads,
            key_value: self.shape.kv_heads,
            width: self.shape.head_width,
        }
    }

    /// ln π of each target under the base, or under base and adapter.
    pub fn logprobs(
        &self,
        lora: Option<&Lora>,
        batch: &TailBatch,
        kv: &PromptKv,
    ) -> Result<Vec<T>> {
        let x = self.layers(lora, batch, kv, None)?;
        Ok(self.predict(&x, batch, false)?.logprobs)
    }

    /// The same under base and adapter, which keeps what [`ForwardPass::backward`] needs.
    pub fn forward<'a>(
        &'a self,
        lora: &'a Lora,
        batch: &'a TailBatch,
        kv: &PromptKv,
    ) -> Result<ForwardPass<'a, T>> {
        let mut saved = Vec::with_capacity(self.layers.len());
        let x = self.layers(Some(lora), batch, kv, Some(&mut saved))?;
        let prediction = self.predict(&x, batch, true)?;
        let Some(d_logprob) = prediction.gradient else {
            candle_core::bail!("the head returned no gradient")
        };
        Ok(ForwardPass {
            model: self,
            lora,
            batch,
            logprobs: prediction.logprobs,
            x,
            d_logprob,
            saved,
        })
    }

    fn predict(
        &self,
        x: &Tensor,
        batch: &TailBatch,
        want_gradient: bool,
    ) -> Result<crate::model::lm_head::Prediction<T>> {
        let rows = Tensor::new(batch.predicting.as_slice(), &Device::Cpu)?;
        let x = x.index_select(&rows, 0)?;
        let normed = rms_norm(&x, &self.output_norm, self.shape.rms_epsilon)?;
        predict(&self.head, &normed, &batch.targets, want_gradient)
    }

    fn layers(
        &self,
        lora: Option<&Lora>,
        batch: &TailBatch,
        kv: &PromptKv,
        mut saved: Option<&mut Vec<SavedLayer>>,
    ) -> Result<Tensor> {
        let mut x = self.embedding.embed::<T>(&batch.tokens)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let pairs = lora.map(|lora| (lora.layers[index].as_slice(), lora.scale()));
            let (y, kept) = self.layer(index, layer, x, pairs, batch, kv)?;
            x = y;
            if let Some(saved) = &mut saved {
                saved.push(kept);
            }
        }
        Ok(x)
    }

    fn layer(
        &self,
        index: usize,
        layer: &Layer<T>,
        x: Tensor,
        lora: Option<(&[LoraLayer], f64)>,
        batch: &TailBatch,
        kv: &PromptKv,
    ) -> Result<(Tensor, SavedLayer)> {
        let epsilon = self.shape.rms_epsilon;
        let maps = &layer.maps;
        let mut reduced = Vec::with_capacity(MAPS.len());
        // It is called in the order of MAPS, so that `reduced` has the same order.
        let mut linear = |map: usize, x: &Tensor| -> Result<Tensor> {
            let y = maps[map].forward(x)?;
            let Some((pairs, scale)) = lora else { return Ok(y) };
            let (y, kept) = pairs[map].forward::<T>(x, &y, scale)?;
            reduced.push(kept);
            Ok(y)
        };

        let normed = rms_norm(&x, &layer.attention_norm, epsilon)?;
        let q = bias(linear(Q, &normed)?, &layer.bias[Q])?;
        let k = bias(linear(K, &normed)?, &layer.bias[K])?;
        let v = bias(linear(V, &normed)?, &layer.bias[V])?;
        let q = self.rope.rotate::<T>(&q, &batch.positions)?;
        let k = self.rope.rotate::<T>(&k, &batch.positions)?;
        let sequences = batch
            .tails
            .iter()
            .map(|(place, past, rows)| {
                let own = |x: &Tensor| x.narrow(0, rows.start, rows.len());
                let (k, v) = match kv.prefix::<T>(*place, index)? {
                    Some((past_k, past_v)) => (
                        Tensor::cat(&[&past_k, &own(&k)?], 0)?,
                        Tensor::cat(&[&past_v, &own(&v)?], 0)?,
                    ),
                    None => (own(&k)?, own(&v)?),
                };
                Ok(Sequence { q: own(&q)?, k, v, past: *past })
            })
            .collect::<Result<Vec<_>>>()?;
        let parts: Vec<Tensor> = sequences
            .par_iter()
            .map(|sequence| sequence.forward::<T>(self.heads()))
            .collect::<Result<_>>()?;
        let attended = Tensor::cat(&parts, 0)?;
        let middle = add::<T>(&x, &linear(O, &attended)?)?;

        let normed = rms_norm(&middle, &layer.feed_forward_norm, epsilon)?;
        let gate = linear(GATE, &normed)?;
        let up = linear(UP, &normed)?;
        let h = swiglu::<T>(&gate, &up)?;
        let y = add::<T>(&middle, &linear(DOWN, &h)?)?;
        Ok((y, SavedLayer { x, sequences, attended, middle, gate, up, reduced }))
    }

    /// The gradient with respect to the layer's input, and the gradients of its pairs.
    fn layer_backward(
        &self,
        layer: &Layer<T>,
        saved: SavedLayer,
        dy: Tensor,
        pairs: &[LoraLayer],
        scale: f64,
        batch: &TailBatch,
    ) -> Result<(Tensor, Vec<LoraGradient>)> {
        let epsilon = self.shape.rms_epsilon;
        let maps = &layer.maps;
        let mut gradients: [Option<LoraGradient>; 7] = Default::default();
        let mut linear = |map: usize, x: &Tensor, dy: &Tensor| -> Result<Tensor> {
            let (gradient, through) = pairs[map].backward(x, &saved.reduced[map], dy, scale)?;
            gradients[map] = Some(gradient);
            add::<T>(&maps[map].backward(dy)?, &through)
        };

        let h = swiglu::<T>(&saved.gate, &saved.up)?;
        let dh = linear(DOWN, &h, &dy)?;
        let (d_gate, d_up) = swiglu_backward::<T>(&dh, &saved.gate, &saved.up)?;
        let normed = rms_norm(&saved.middle, &layer.feed_forward_norm, epsilon)?;
        let d_normed = add::<T>(&linear(GATE, &normed, &d_gate)?, &linear(UP, &normed, &d_up)?)?;
        let weight = &layer.feed_forward_norm;
        let d_middle = rms_norm_backward(&dy, &d_normed, &saved.middle, weight, epsilon)?;

        let d_attended = linear(O, &saved.attended, &d_middle)?;
        let parts: Vec<(Tensor, Tensor, Tensor)> = saved
            .sequences
            .par_iter()
            .zip(&batch.tails)
            .map(|(sequence, (_, _, rows))| {
                let d_attended = d_attended.narrow(0, rows.start, rows.len())?;
                sequence.backward::<T>(self.heads(), &d_attended)
            })
            .collect::<Result<_>>()?;
        let whole = |part: fn(&(Tensor, Tensor, Tensor)) -> &Tensor| {
            Tensor::cat(&parts.iter().map(part).collect::<Vec<_>>(), 0)
        };
        let dq = self.rope.rotate_back::<T>(&whole(|part| &part.0)?, &batch.positions)?;
        let dk = self.rope.rotate_back::<T>(&whole(|part| &part.1)?, &batch.positions)?;
        let dv = whole(|part| &part.2)?;
        let normed = rms_norm(&saved.x, &layer.attention_norm, epsilon)?;
        let d_normed = add::<T>(&linear(Q, &normed, &dq)?, &linear(K, &normed, &dk)?)?;
        let d_normed = add::<T>(&d_normed, &linear(V, &normed, &dv)?)?;
        let weight = &layer.attention_norm;
        let dx = rms_norm_backward(&d_middle, &d_normed, &saved.x, weight, epsilon)?;
        Ok((dx, gradients.into_iter().flatten().collect()))
    }
}

impl<T: Float> ForwardPass<'_, T> {
    /// The gradient of a loss, where `d_loss[i] = ∂loss/∂logprobs[i]`.
    pub fn backward(self, d_loss: &[T]) -> Result<LoraGradients> {
        let model = self.model;
        let (rows, width) = self.x.dims2()?;
        let predicting = &self.batch.predicting;

        // First through the head and the output norm, for the rows that predict a target.
        let mut d_normed = Vec::with_capacity(predicting.len() * width);
        with_values(&self.d_logprob, |d_logprob: &[T]| {
            for (row, d) in d_logprob.chunks(width).zip(d_loss) {
                d_normed.extend(row.iter().map(|value| *value * *d));
            }
        })?;
        let d_normed = matrix(d_normed, predicting.len(), width)?;
        let index = Tensor::new(predicting.as_slice(), &Device::Cpu)?;
        let x = self.x.index_select(&index, 0)?;
        let nothing = matrix(vec![T::zero(); predicting.len() * width], predicting.len(), width)?;
        let weight = &model.output_norm;
        let at_rows = rms_norm_backward(&nothing, &d_normed, &x, weight, model.shape.rms_epsilon)?;
        let mut dx = vec![T::zero(); rows * width];
        with_values(&at_rows, |at_rows: &[T]| {
            for (row, values) in predicting.iter().zip(at_rows.chunks(width)) {
                dx[*row as usize * width..][..width].copy_from_slice(values);
            }
        })?;
        let mut dx = matrix(dx, rows, width)?;

        let mut by_layer = Vec::with_capacity(self.saved.len());
        for (index, saved) in self.saved.into_iter().enumerate().rev() {
            let (layer, pairs) = (&model.layers[index], &self.lora.layers[index]);
            let (next, gradients) =
                model.layer_backward(layer, saved, dx, pairs, self.lora.scale(), self.batch)?;
            dx = next;
            by_layer.push(gradients);
        }
        Ok(by_layer.into_iter().rev().flatten().collect())
    }
}

/// x plus the bias, if the map has one.
fn bias<T: Float>(x: Tensor, bias: &Option<Vec<T>>) -> Result<Tensor> {
    match bias {
        Some(bias) => add_bias(&x, bias),
        None => Ok(x),
    }
}
