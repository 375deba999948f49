//! The forward pass and the hand-written backward pass of a model. They follow the block that
//! [`architecture`] describes.
//!
//! Both go through the *tail* of an episode: `prompt[adapter_from..]` and the generated
//! tokens. The keys and values of the prompt before the tail are constants. The adapter acts
//! on the rows of the tail only (an activated LoRA, arXiv:2504.12397). Nothing before the
//! tail depends on it, so that this gradient is exact.
//!
//! The tails of a batch are concatenated. Each map then takes one matrix product for any
//! number of episodes; only attention handles the tails one by one.

pub mod architecture;
pub mod attention;
pub mod attention_forward;
pub mod experts;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod heads;
pub mod known_prompts;
pub mod lm_head;
pub mod load;
pub mod lora;
mod prefix_tree;
pub mod prompt_pass;
pub mod weights;

use crate::kernels::float::Float;
use crate::kernels::int8_dot::Int8Unit;
use crate::kernels::norm::Norm;
use crate::kernels::rope::Rope;
use crate::kernels::{add, add_bias, matrix, scaled, values, with_values};
use crate::model::architecture::FeedForward;
use crate::model::attention::Sequence;
use crate::model::experts::Routing;
use crate::model::heads::Heads;
use crate::model::lm_head::{Target, predict};
use crate::model::lora::{Lora, LoraGradient, Reduced};
use crate::model::prompt_pass::{PromptKv, PromptPlace};
use crate::model::weights::{
    DOWN, Experts, GATE, K, Layer, LinearMap, O, Q, Shape, UP, V, VocabularyMatrix,
};
use candle_core::{Device, Result, Tensor};
use feedback::experts::NOT_CHOSEN;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// The base model: all weights that stay as they are.
pub struct Transformer<T> {
    pub shape: Shape,
    pub embedding: Arc<VocabularyMatrix>,
    /// The same matrix as the embedding if the file has only one.
    pub head: Arc<VocabularyMatrix>,
    /// The norm before the head. Its weights hold the factor of the logits too.
    pub output_norm: Norm<T>,
    pub layers: Vec<Layer<T>>,
    pub rope: Rope,
    /// The unit that multiplies quantised matrices with activations, which are rounded to 8 bits;
    /// `None` for products of floats. The gradient is that of floats in any case.
    pub unit: Option<Int8Unit>,
    /// The same model in the memory of a GPU, which then computes all passes.
    #[cfg(feature = "cuda")]
    pub gpu: Option<gpu::GpuModel>,
}

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
    /// The experts that the server chose: for each row, those of each layer. They may end before
    /// the rows do, or hold [`NOT_CHOSEN`]; there the router chooses. Empty for a model without
    /// experts.
    pub experts: Vec<u16>,
}

/// The place of a tail's prompt, the number of rows before the tail, and the tail's own rows in the
/// batch.
type TailRows = (PromptPlace, usize, Range<usize>);

/// Concatenated tails.
pub struct TailBatch {
    /// No adapter changes a layer before this one.
    first_adapted: usize,
    /// The input of that layer, once a pass has come there. Later passes begin with it.
    below: OnceLock<Tensor>,
    tokens: Vec<u32>,
    positions: Vec<usize>,
    tails: Vec<TailRows>,
    /// The row that predicts each target.
    predicting: Vec<u32>,
    targets: Vec<Target>,
    /// [`Tail::experts`] of each tail.
    experts: Vec<Vec<u16>>,
}

impl TailBatch {
    pub fn new<'a>(tails: impl IntoIterator<Item = &'a Tail>) -> TailBatch {
        let mut batch = TailBatch {
            first_adapted: 0,
            below: OnceLock::new(),
            tokens: Vec::new(),
            positions: Vec::new(),
            tails: Vec::new(),
            predicting: Vec::new(),
            targets: Vec::new(),
            experts: Vec::new(),
        };
        for tail in tails {
            let first = batch.tokens.len();
            let end = first + tail.tokens.len();
            batch.tokens.extend_from_slice(&tail.tokens);
            batch.positions.extend(tail.past..tail.past + tail.tokens.len());
            batch.tails.push((tail.place, tail.past, first..end));
            batch.predicting.extend((end - tail.targets.len()..end).map(|row| row as u32));
            batch.targets.extend_from_slice(&tail.targets);
            batch.experts.push(tail.experts.clone());
        }
        batch
    }

    /// The same tails for passes under adapters that change no layer before `layer`. What is below
    /// it is computed once.
    pub fn adapted_from(self, layer: usize) -> TailBatch {
        TailBatch { first_adapted: layer, below: OnceLock::new(), ..self }
    }

    /// The first tails of several batches, of each as many as are given with it, for passes under
    /// the same adapters. What is below the adapters is taken from the batches if all know it.
    ///
    /// # Errors
    /// It cannot be copied.
    pub fn joined(parts: &[(&TailBatch, usize)]) -> Result<TailBatch> {
        let first_adapted = parts.first().map_or(0, |(batch, _)| batch.first_adapted);
        let mut joined = TailBatch { first_adapted, ..TailBatch::new([]) };
        let mut below = Vec::with_capacity(parts.len());
        for (batch, count) in parts {
            let (first, tails) = (joined.rows(), &batch.tails[..*count]);
            let rows = tails.last().map_or(0, |(.., rows)| rows.end);
            let targets = batch.predicting.partition_point(|row| (*row as usize) < rows);
            let moved = |row: &u32| first as u32 + row;
            joined.tokens.extend_from_slice(&batch.tokens[..rows]);
            joined.positions.extend_from_slice(&batch.positions[..rows]);
            joined.tails.extend(
                tails.iter().map(|(place, past, rows)| {
                    (*place, *past, first + rows.start..first + rows.end)
                }),
            );
            joined.predicting.extend(batch.predicting[..targets].iter().map(moved));
            joined.targets.extend_from_slice(&batch.targets[..targets]);
            joined.experts.extend_from_slice(&batch.experts[..*count]);
            below.extend(batch.below.get().map(|x| x.narrow(0, 0, rows)));
        }
        if below.len() == parts.len() && !below.is_empty() {
            joined.below =
                OnceLock::from(Tensor::cat(&below.into_iter().collect::<Result<Vec<_>>>()?, 0)?);
        }
        Ok(joined)
    }

    /// Takes what is below the adapters from a batch in which the tails of this one begin at row
    /// `first`, if a pass has come there.
    ///
    /// # Errors
    /// The batch has too few rows.
    pub fn take_below(&self, joined: &TailBatch, first: usize) -> Result<()> {
        if let Some(x) = joined.below.get() {
            let own = x.narrow(0, first, self.rows())?;
            self.below.get_or_init(|| own);
        }
        Ok(())
    }

    /// The number of rows of all tails.
    pub fn rows(&self) -> usize {
        self.tokens.len()
    }

    /// The number of tails.
    pub fn len(&self) -> usize {
        self.tails.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tails.is_empty()
    }

    /// Returns where the prompt of each tail lies in GPU memory.
    #[cfg(feature = "cuda")]
    fn prompts_on_gpu<'a>(
        &self,
        kv: &'a PromptKv,
    ) -> anyhow::Result<Vec<gpu::passes::PromptRows<'a>>> {
        self.tails.iter().map(|(place, ..)| kv.on_gpu(*place)).collect()
    }

    /// The experts of each row in one of `layers` layers; `None` where none are recorded.
    fn recorded(&self, layer: usize, layers: usize, used: usize) -> Vec<Option<&[u16]>> {
        let tails = self.tails.iter().zip(&self.experts);
        let rows = tails.flat_map(|((_, _, rows), experts)| {
            (0..rows.len()).map(move |row| {
                let ids = experts.get((row * layers + layer) * used..)?.get(..used)?;
                (ids[0] != NOT_CHOSEN).then_some(ids)
            })
        });
        rows.collect()
    }
}

/// The tensors that a layer keeps for its gradient. They share memory with the forward pass where
/// possible. Norms, attention weights and all between the up and the down map, which is the widest,
/// are computed again, and the keys and values of prompts are read again.
struct SavedLayer<T> {
    x: Tensor,
    /// q and k before the norms of their heads, if there are any.
    before_head_norms: Option<[Tensor; 2]>,
    /// q, k and v of the tails' own rows. q and k are rotated.
    own: [Tensor; 3],
    attended: Tensor,
    middle: Tensor,
    /// Through which experts the rows went, if there are any.
    routing: Option<Routing<T>>,
    reduced: Vec<Reduced>,
}

/// A forward pass that can be differentiated.
pub struct ForwardPass<'a, T> {
    /// ln π of each target, in the order of the batch.
    pub logprobs: Vec<T>,
    on: PassOn<'a, T>,
}

/// The place where a pass was computed.
enum PassOn<'a, T> {
    Cpu(CpuPass<'a, T>),
    #[cfg(feature = "cuda")]
    Gpu(Box<gpu::passes::GpuPass<'a>>),
}

struct CpuPass<'a, T> {
    model: &'a Transformer<T>,
    lora: &'a Lora,
    batch: &'a TailBatch,
    kv: &'a PromptKv,
    x: Tensor,
    d_logprob: Tensor,
    saved: Vec<SavedLayer<T>>,
}

/// The gradient of every pair, in the order of the adapter.
pub type LoraGradients = Vec<LoraGradient>;

/// A function that gets the gradient of a pair and the index of the pair in the adapter.
pub type AddGradient<'a> = dyn FnMut(usize, LoraGradient) -> Result<()> + 'a;

impl<T: Float> Transformer<T> {
    pub fn heads(&self) -> Heads {
        Heads {
            query: self.shape.heads,
            key_value: self.shape.kv_heads,
            width: self.shape.head_width,
            scale: self.shape.block.attention_scale,
        }
    }

    /// ln π of each target under the base, or under base and adapter.
    pub fn logprobs(
        &self,
        lora: Option<&Lora>,
        batch: &TailBatch,
        kv: &PromptKv,
    ) -> Result<Vec<T>> {
        #[cfg(feature = "cuda")]
        if let Some(gpu) = &self.gpu {
            let logprobs =
                batch.prompts_on_gpu(kv).and_then(|prompts| gpu.logprobs(lora, batch, &prompts));
            return Ok(numbers(&logprobs.map_err(candle_core::Error::wrap)?));
        }
        let x = self.layers(lora, batch, kv, None)?;
        Ok(self.predict(&x, batch, false)?.logprobs)
    }

    /// The same under base and adapter, which keeps what [`ForwardPass::backward`] needs.
    pub fn forward<'a>(
        &'a self,
        lora: &'a Lora,
        batch: &'a TailBatch,
        kv: &'a PromptKv,
    ) -> Result<ForwardPass<'a, T>> {
        #[cfg(feature = "cuda")]
        if let Some(gpu) = &self.gpu {
            let pass = batch.prompts_on_gpu(kv);
            let pass = pass.and_then(|prompts| gpu.forward(lora, batch, &prompts));
            let pass = pass.map_err(candle_core::Error::wrap)?;
            return Ok(ForwardPass {
                logprobs: numbers(&pass.logprobs),
                on: PassOn::Gpu(Box::new(pass)),
            });
        }
        let mut saved = Vec::with_capacity(self.layers.len());
        let x = self.layers(Some(lora), batch, kv, Some(&mut saved))?;
        let prediction = self.predict(&x, batch, true)?;
        let Some(d_logprob) = prediction.gradient else {
            candle_core::bail!("the head returned no gradient")
        };
        let pass = CpuPass { model: self, lora, batch, kv, x, d_logprob, saved };
        Ok(ForwardPass { logprobs: prediction.logprobs, on: PassOn::Cpu(pass) })
    }

    fn predict(
        &self,
        x: &Tensor,
        batch: &TailBatch,
        want_gradient: bool,
    ) -> Result<crate::model::lm_head::Prediction<T>> {
        let rows = Tensor::new(batch.predicting.as_slice(), &Device::Cpu)?;
        let x = x.index_select(&rows, 0)?;
        let normed = self.output_norm.forward(&x)?;
        predict(self.unit, &self.head, &normed, &batch.targets, want_gradient)
    }

    fn layers(
        &self,
        lora: Option<&Lora>,
        batch: &TailBatch,
        kv: &PromptKv,
        mut saved: Option<&mut Vec<SavedLayer<T>>>,
    ) -> Result<Tensor> {
        let first = batch.first_adapted;
        if lora.is_some_and(|lora| lora.first_layer() < first) {
            candle_core::bail!("the adapter changes a layer before {first}")
        }
        let mut x = match batch.below.get() {
            Some(x) => x.clone(),
            None => {
                let x = self.embedding.embed::<T>(&batch.tokens)?;
                let mut x = scaled::<T>(&x, self.shape.block.embedding_scale)?;
                for index in 0..first {
                    (x, _) = self.layer(index, x, None, batch, kv)?;
                }
                batch.below.get_or_init(|| x).clone()
            }
        };
        for index in first..self.layers.len() {
            let (y, kept) = self.layer(index, x, lora, batch, kv)?;
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
        x: Tensor,
        lora: Option<&Lora>,
        batch: &TailBatch,
        kv: &PromptKv,
    ) -> Result<(Tensor, SavedLayer<T>)> {
        let (block, layer) = (&self.shape.block, &self.layers[index]);
        let mut reduced = Vec::with_capacity(layer.maps.len());
        // It is called in the order of the layer's maps, so that `reduced` has the same order.
        let mut linear = |map: usize, x: &Tensor| -> Result<Tensor> {
            let (y, kept) = self.linear(index, map, lora, x)?;
            reduced.extend(kept);
            Ok(y)
        };

        let normed = layer.attention_norm.forward(&x)?;
        let mut q = linear(Q, &normed)?;
        let mut k = linear(K, &normed)?;
        let v = linear(V, &normed)?;
        let before_head_norms = match &layer.head_norms {
            Some([of_q, of_k]) => {
                let before = [q, k];
                (q, k) = (of_q.forward(&before[0])?, of_k.forward(&before[1])?);
                Some(before)
            }
            None => None,
        };
        let q = self.rope.rotate::<T>(&q, &batch.positions)?;
        let k = self.rope.rotate::<T>(&k, &batch.positions)?;
        let own = [q, k, v];
        let parts: Vec<Tensor> = batch
            .tails
            .par_iter()
            .map(|tail| sequence::<T>(tail, &own, kv, index)?.forward::<T>(self.heads()))
            .collect::<Result<_>>()?;
        let attended = Tensor::cat(&parts, 0)?;
        let output = scaled::<T>(&linear(O, &attended)?, block.residual_scale)?;
        let middle = add::<T>(&x, &output)?;

        let normed = layer.feed_forward_norm.forward(&middle)?;
        let mut routing = None;
        let output = match &layer.experts {
            Some(experts) => {
                let (rows, width) = normed.dims2()?;
                let normed = values::<T>(&normed)?;
                let routing = routing.insert(self.route(experts, index, &normed, batch)?);
                let output = experts.forward(self.unit, block.activation, &normed, routing)?;
                matrix(output, rows, width)?
            }
            None => {
                let (gate, up) = self.gate_and_up(&normed, &mut linear)?;
                let h = self.activated(gate.as_ref(), &up)?;
                linear(DOWN, &h)?
            }
        };
        let y = add::<T>(&middle, &scaled::<T>(&output, block.residual_scale)?)?;
        let kept = SavedLayer { x, before_head_norms, own, attended, middle, routing, reduced };
        layer.release();
        Ok((y, kept))
    }

    /// The output of a linear map, with the part of the adapter and what its gradient needs if the
    /// layer is adapted.
    fn linear(
        &self,
        layer: usize,
        map: usize,
        lora: Option<&Lora>,
        x: &Tensor,
    ) -> Result<(Tensor, Option<Reduced>)> {
        let place = self.shape.place(map);
        let LinearMap { weight, bias } = &self.layers[layer].maps[place];
        let pair = lora.and_then(|lora| Some((lora.layers[layer].get(place)?, lora.scale())));
        let (y, reduced) = match pair {
            Some((pair, scale)) => {
                let (y, reduced) = pair.forward_through::<T>(self.unit, weight, x, scale)?;
                (y, Some(reduced))
            }
            None => (weight.forward(self.unit, x)?, None),
        };
        let y = match bias {
            Some(bias) => add_bias(&y, bias)?,
            None => y,
        };
        Ok((y, reduced))
    }

    /// The inputs of the activation, the first of which not every architecture has.
    fn gate_and_up(
        &self,
        normed: &Tensor,
        mut linear: impl FnMut(usize, &Tensor) -> Result<Tensor>,
    ) -> Result<(Option<Tensor>, Tensor)> {
        let is_gated = self.shape.block.feed_forward == FeedForward::Gated;
        let gate = if is_gated { Some(linear(GATE, normed)?) } else { None };
        Ok((gate, linear(UP, normed)?))
    }

    /// Through which experts of a layer the rows of a batch go.
    fn route(
        &self,
        experts: &Experts,
        layer: usize,
        normed: &[T],
        batch: &TailBatch,
    ) -> Result<Routing<T>> {
        let FeedForward::Experts(sizes) = self.shape.block.feed_forward else {
            candle_core::bail!("a layer has experts, and its architecture has none")
        };
        let recorded = batch.recorded(layer, self.layers.len(), sizes.used);
        experts.route(normed, sizes.used, |row| recorded[row])
    }

    /// The input of the down map.
    fn activated(&self, gate: Option<&Tensor>, up: &Tensor) -> Result<Tensor> {
        let activation = self.shape.block.activation;
        match gate {
            Some(gate) => activation.gated::<T>(gate, up),
            None => activation.plain::<T>(up),
        }
    }

    /// The gradient with respect to the layer's input, and the gradients of its pairs.
    fn layer_backward(
        &self,
        index: usize,
        saved: SavedLayer<T>,
        dy: Tensor,
        lora: &Lora,
        batch: &TailBatch,
        kv: &PromptKv,
    ) -> Result<(Tensor, Vec<LoraGradient>)> {
        let (block, layer) = (&self.shape.block, &self.layers[index]);
        let (pairs, scale) = (&lora.layers[index], lora.scale());
        let mut gradients: Vec<Option<LoraGradient>> = layer.maps.iter().map(|_| None).collect();
        let mut linear = |map: usize, x: &Tensor, dy: &Tensor| -> Result<Tensor> {
            let place = self.shape.place(map);
            let reduced = &saved.reduced[place];
            let (gradient, through) = pairs[place].backward(x, reduced, dy, scale)?;
            gradients[place] = Some(gradient);
            add::<T>(&layer.maps[place].weight.backward(dy)?, &through)
        };

        let d_output = scaled::<T>(&dy, block.residual_scale)?;
        let normed = layer.feed_forward_norm.forward(&saved.middle)?;
        let d_normed = match layer.experts.as_ref().zip(saved.routing.as_ref()) {
            Some((experts, routing)) => {
                let (rows, width) = normed.dims2()?;
                let (x, dy) = (values::<T>(&normed)?, values::<T>(&d_output)?);
                let dx = experts.backward(self.unit, block.activation, &x, &dy, routing)?;
                matrix(dx, rows, width)?
            }
            None => {
                let again = |map, x: &Tensor| Ok(self.linear(index, map, Some(lora), x)?.0);
                let (gate, up) = self.gate_and_up(&normed, again)?;
                let h = self.activated(gate.as_ref(), &up)?;
                let dh = linear(DOWN, &h, &d_output)?;
                match gate {
                    Some(gate) => {
                        let (d_gate, d_up) =
                            block.activation.gated_backward::<T>(&dh, &gate, &up)?;
                        add::<T>(&linear(GATE, &normed, &d_gate)?, &linear(UP, &normed, &d_up)?)?
                    }
                    None => {
                        let d_up = block.activation.plain_backward::<T>(&dh, &up)?;
                        linear(UP, &normed, &d_up)?
                    }
                }
            }
        };
        let d_middle = layer.feed_forward_norm.backward(&dy, &d_normed, &saved.middle)?;

        let d_output = scaled::<T>(&d_middle, block.residual_scale)?;
        let d_attended = linear(O, &saved.attended, &d_output)?;
        let own = &saved.own;
        let parts: Vec<(Tensor, Tensor, Tensor)> = batch
            .tails
            .par_iter()
            .map(|tail| {
                let (_, _, rows) = tail;
                let d_attended = d_attended.narrow(0, rows.start, rows.len())?;
                sequence::<T>(tail, own, kv, index)?.backward::<T>(self.heads(), &d_attended)
            })
            .collect::<Result<_>>()?;
        let whole = |part: fn(&(Tensor, Tensor, Tensor)) -> &Tensor| {
            Tensor::cat(&parts.iter().map(part).collect::<Vec<_>>(), 0)
        };
        let mut dq = self.rope.rotate_back::<T>(&whole(|part| &part.0)?, &batch.positions)?;
        let mut dk = self.rope.rotate_back::<T>(&whole(|part| &part.1)?, &batch.positions)?;
        let dv = whole(|part| &part.2)?;
        if let (Some([of_q, of_k]), Some([q, k])) = (&layer.head_norms, &saved.before_head_norms) {
            (dq, dk) = (of_q.gradient(&dq, q)?, of_k.gradient(&dk, k)?);
        }
        let normed = layer.attention_norm.forward(&saved.x)?;
        let d_normed = add::<T>(&linear(Q, &normed, &dq)?, &linear(K, &normed, &dk)?)?;
        let d_normed = add::<T>(&d_normed, &linear(V, &normed, &dv)?)?;
        let dx = layer.attention_norm.backward(&d_middle, &d_normed, &saved.x)?;
        layer.release();
        Ok((dx, gradients.into_iter().flatten().collect()))
    }
}

/// The inputs for attention of one tail in a layer: its own rows of q, k and v behind the keys and
/// values of its prompt.
fn sequence<T: Float>(
    tail: &TailRows,
    own: &[Tensor; 3],
    kv: &PromptKv,
    layer: usize,
) -> Result<Sequence> {
    let (place, past, rows) = tail;
    let of_tail = |x: &Tensor| x.narrow(0, rows.start, rows.len());
    let [q, k, v] = own;
    let (q, k, v) = (of_tail(q)?, of_tail(k)?, of_tail(v)?);
    let (k, v) = match kv.prefix::<T>(*place, layer)? {
        Some((past_k, past_v)) => {
            (Tensor::cat(&[&past_k, &k], 0)?, Tensor::cat(&[&past_v, &v], 0)?)
        }
        None => (k, v),
    };
    Ok(Sequence { q, k, v, past: *past })
}

impl<T: Float> ForwardPass<'_, T> {
    /// The experts that the rows went through, one layer after the other; nothing for a layer
    /// without experts.
    pub fn chosen_experts(&self) -> impl Iterator<Item = &[u16]> {
        let saved = match &self.on {
            PassOn::Cpu(pass) => pass.saved.as_slice(),
            // Models with experts learn on the CPU.
            #[cfg(feature = "cuda")]
            PassOn::Gpu(_) => &[],
        };
        saved.iter().filter_map(|saved| Some(saved.routing.as_ref()?.chosen.as_slice()))
    }

    /// The gradient of a loss, where `d_loss[i] = ∂loss/∂logprobs[i]`.
    pub fn backward(self, d_loss: &[T]) -> Result<LoraGradients> {
        let mut by_pair = Vec::new();
        self.backward_into(d_loss, &mut |pair, gradient| {
            by_pair.push((pair, gradient));
            Ok(())
        })?;
        by_pair.sort_by_key(|(pair, _)| *pair);
        Ok(by_pair.into_iter().map(|(_, gradient)| gradient).collect())
    }

    /// The same, but `add` gets the gradient of each pair as soon as it is known, with the index of
    /// the pair in the adapter. A CPU then never holds those of all pairs together.
    pub fn backward_into(self, d_loss: &[T], add: &mut AddGradient) -> Result<()> {
        match self.on {
            PassOn::Cpu(pass) => pass.backward(d_loss, add),
            #[cfg(feature = "cuda")]
            PassOn::Gpu(pass) => {
                let d_loss: Vec<f32> = d_loss.iter().map(|d| d.to_f64() as f32).collect();
                let gradients = pass.backward(&d_loss).map_err(candle_core::Error::wrap)?;
                gradients.into_iter().enumerate().try_for_each(|(pair, part)| add(pair, part))
            }
        }
    }
}

/// Numbers of a GPU in the number type of the model.
#[cfg(feature = "cuda")]
fn numbers<T: Float>(values: &[f32]) -> Vec<T> {
    values.iter().map(|value| T::from_f64(f64::from(*value))).collect()
}

impl<T: Float> CpuPass<'_, T> {
    fn backward(self, d_loss: &[T], add: &mut AddGradient) -> Result<()> {
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
        let at_rows = model.output_norm.gradient(&d_normed, &x)?;
        let mut dx = vec![T::zero(); rows * width];
        with_values(&at_rows, |at_rows: &[T]| {
            for (row, values) in predicting.iter().zip(at_rows.chunks(width)) {
                dx[*row as usize * width..][..width].copy_from_slice(values);
            }
        })?;
        let mut dx = matrix(dx, rows, width)?;

        let mut pairs_left: usize = self.lora.layers.iter().map(Vec::len).sum();
        // The layers before the first that is adapted have no gradient.
        let first_saved = model.layers.len() - self.saved.len();
        let unadapted = self.lora.first_layer() - first_saved;
        let saved = self.saved.into_iter().enumerate().skip(unadapted).rev();
        for (index, saved) in saved {
            let index = first_saved + index;
            let (next, gradients) =
                model.layer_backward(index, saved, dx, self.lora, self.batch, self.kv)?;
            dx = next;
            pairs_left -= gradients.len();
            for (pair, gradient) in gradients.into_iter().enumerate() {
                add(pairs_left + pair, gradient)?;
            }
        }
        Ok(())
    }
}
