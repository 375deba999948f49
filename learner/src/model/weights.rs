//! The weights of the base model, as the served GGUF stores them. [`load`](super::load) reads them.
//!
//! Matrices stay quantised in memory and are dequantised where they are used. The learner
//! then computes with exactly the same numbers as the engine of the server.

use crate::kernels::float::Float;
use crate::kernels::int8_dot::Int8Unit;
use crate::kernels::int8_round::Int8Activations;
use crate::kernels::matmul::QuantisedMatrix;
use crate::kernels::norm::Norm;
use crate::kernels::{matrix, with_values};
use crate::model::architecture::{Block, FeedForward};
use candle_core::{Device, Tensor};
use feedback::experts::ExpertLayout;

/// All linear maps that a layer may have and that are adapted. [`Shape::maps`] says which of them
/// the layers of a model have.
pub const MAPS: [&str; 7] =
    ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];
pub const Q: usize = 0;
pub const K: usize = 1;
pub const V: usize = 2;
pub const O: usize = 3;
pub const GATE: usize = 4;
pub const UP: usize = 5;
pub const DOWN: usize = 6;

/// The sizes of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub architecture: String,
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_width: usize,
    /// The width between up and down map, or that of one expert.
    pub feed_forward: usize,
    pub vocabulary: usize,
    /// The context length that the model was trained with, in tokens.
    pub context: usize,
    pub block: Block,
}

impl Shape {
    /// The maps that each layer has, in the order of [`Layer::maps`] and of an adapter's pairs.
    pub fn maps(&self) -> &'static [usize] {
        match self.block.feed_forward {
            FeedForward::Plain => &[Q, K, V, O, UP, DOWN],
            FeedForward::Gated => &[Q, K, V, O, GATE, UP, DOWN],
            FeedForward::Experts(_) => &[Q, K, V, O],
        }
    }

    /// Returns how the server records the experts of this model; `None` if it has none.
    pub fn expert_layout(&self) -> Option<ExpertLayout> {
        let FeedForward::Experts(experts) = self.block.feed_forward else { return None };
        let short = |number: usize| u16::try_from(number).ok();
        Some(ExpertLayout {
            experts: short(experts.count)?,
            used: short(experts.used)?,
            layers: short(self.layers)?,
        })
    }

    /// Returns where a map stands in [`Shape::maps`].
    pub fn place(&self, map: usize) -> usize {
        map - usize::from(self.block.feed_forward == FeedForward::Plain && map > GATE)
    }

    /// The numbers of outputs and inputs of a map.
    pub fn map(&self, map: usize) -> (usize, usize) {
        let (q, kv) = (self.heads * self.head_width, self.kv_heads * self.head_width);
        match map {
            Q => (q, self.width),
            K | V => (kv, self.width),
            O => (self.width, q),
            GATE | UP => (self.feed_forward, self.width),
            _ => (self.width, self.feed_forward),
        }
    }
}

/// A frozen matrix, `out × in`.
pub enum Weight {
    /// In the number type of the model, for tests.
    Plain(Tensor),
    Quantised(QuantisedMatrix),
}

impl Weight {
    /// x · Wᵀ: `rows × in` → `rows × out`. If there is a `unit` and W is quantised, activations
    /// are rounded to 8 bits, as the server does on a CPU.
    pub fn forward(&self, unit: Option<Int8Unit>, x: &Tensor) -> candle_core::Result<Tensor> {
        match self {
            Weight::Plain(weight) => x.matmul(&weight.t()?),
            Weight::Quantised(weight) => weight.forward(unit, x),
        }
    }

    /// y += x · Wᵀ in the same way.
    pub fn add_product<T: Float>(
        &self,
        unit: Option<Int8Unit>,
        x: &[T],
        y: &mut [T],
    ) -> candle_core::Result<()> {
        if let (Weight::Quantised(weight), Some(unit)) = (self, unit)
            && weight.has_integers()
            && let (Some(x), Some(y)) = (T::as_f32(x), T::as_f32_mut(y))
        {
            weight.add_int8_product(
                unit,
                &Int8Activations::round(x, weight.width(), weight.format()),
                y,
            );
            return Ok(());
        }
        let rows = y.len() / self.rows()?;
        let x = Tensor::from_slice(x, (rows, x.len() / rows), &Device::Cpu)?;
        with_values(&self.forward(None, &x)?, |part: &[T]| {
            y.iter_mut().zip(part).for_each(|(y, part)| *y += *part);
        })
    }

    /// The gradient with respect to x, dy · W: `rows × out` → `rows × in`. It is that of the
    /// product of floats, whether or not x was rounded.
    pub fn backward(&self, dy: &Tensor) -> candle_core::Result<Tensor> {
        match self {
            Weight::Plain(weight) => dy.matmul(weight),
            Weight::Quantised(weight) => weight.backward(dy),
        }
    }

    /// Takes the matrix out of this process's memory until it is read again.
    pub fn release(&self) {
        if let Weight::Quantised(weight) = self {
            weight.release();
        }
    }

    pub fn rows(&self) -> candle_core::Result<usize> {
        match self {
            Weight::Plain(tensor) => tensor.dim(0),
            Weight::Quantised(quantised) => Ok(quantised.rows()),
        }
    }

    /// Some rows, one after the other, in the number type of the model.
    pub fn rows_of<T: Float>(&self, rows: &[u32]) -> candle_core::Result<Vec<T>> {
        match self {
            Weight::Plain(tensor) => {
                crate::kernels::values(&tensor.index_select(&Tensor::new(rows, &Device::Cpu)?, 0)?)
            }
            Weight::Quantised(quantised) => {
                let values = quantised.dequantised(rows.iter().map(|row| *row as usize));
                let tensor = matrix(values, rows.len(), quantised.width())?;
                crate::kernels::values(&tensor.to_dtype(T::DTYPE)?)
            }
        }
    }
}

/// A linear map with its bias, if the model has one.
pub struct LinearMap<T> {
    pub weight: Weight,
    pub bias: Option<Vec<T>>,
}

/// The frozen weights of the experts of one layer, and of the router that chooses among them.
pub struct Experts {
    /// `experts × width`.
    pub router: Weight,
    pub experts: Vec<Expert>,
}

/// One expert: down · (f(gate · x) · (up · x)).
pub struct Expert {
    pub gate: Weight,
    pub up: Weight,
    pub down: Weight,
}

/// The frozen weights of one layer.
pub struct Layer<T> {
    pub attention_norm: Norm<T>,
    pub feed_forward_norm: Norm<T>,
    /// The norms of the heads of q and k, if the architecture has them.
    pub head_norms: Option<[Norm<T>; 2]>,
    /// In the order of [`Shape::maps`].
    pub maps: Vec<LinearMap<T>>,
    /// The experts, if the feed-forward part consists of them.
    pub experts: Option<Experts>,
}

impl<T> Layer<T> {
    /// Takes the matrices out of this process's memory until they are read again.
    pub fn release(&self) {
        self.maps.iter().for_each(|map| map.weight.release());
        if let Some(Experts { router, experts }) = &self.experts {
            router.release();
            for Expert { gate, up, down } in experts {
                [gate, up, down].into_iter().for_each(Weight::release);
            }
        }
    }
}

/// A `vocabulary × width` matrix in blocks of rows.
pub struct VocabularyMatrix {
    pub blocks: Vec<Weight>,
    /// The number of rows of every block but the last one, which may have fewer.
    pub block_rows: usize,
    pub width: usize,
}

impl VocabularyMatrix {
    pub fn new(blocks: Vec<Weight>, block_rows: usize, width: usize) -> VocabularyMatrix {
        VocabularyMatrix { blocks, block_rows, width }
    }

    /// The rows of the tokens `ids`, in their order. The caller has checked the ids.
    pub fn embed<T: Float>(&self, ids: &[u32]) -> candle_core::Result<Tensor> {
        let mut rows = vec![T::zero(); ids.len() * self.width];
        for (block, weight) in self.blocks.iter().enumerate() {
            let here: Vec<usize> =
                (0..ids.len()).filter(|i| ids[*i] as usize / self.block_rows == block).collect();
            if here.is_empty() {
                continue;
            }
            let local: Vec<u32> = here.iter().map(|i| ids[*i] % self.block_rows as u32).collect();
            let found = weight.rows_of::<T>(&local)?;
            for (row, values) in here.iter().zip(found.chunks(self.width)) {
                rows[row * self.width..][..self.width].copy_from_slice(values);
            }
            weight.release();
        }
        matrix(rows, ids.len(), self.width)
    }
}
