//! The weights of the base model, as the served GGUF stores them.
//!
//! Matrices stay quantised in memory and are dequantised where they are used. The learner
//! then computes with exactly the same numbers as the engine of the server.

use crate::kernels::float::Float;
use crate::kernels::int8_dot::Int8Unit;
use crate::kernels::int8_round::Int8Activations;
use crate::kernels::matmul::QuantisedMatrix;
use crate::kernels::quant_blocks::Format;
use crate::kernels::{Rope, RopePairs, matrix, with_values};
use anyhow::{Context, bail};
use candle_core::{Device, Tensor};
use models::gguf::{Gguf, TensorInfo, Value};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
#[cfg(feature = "cuda")]
use std::sync::OnceLock;

/// The vocabulary matrices are used in blocks of this many rows. A whole one in f32 would be
/// the largest thing in memory.
const VOCABULARY_BLOCK_ROWS: usize = 4096;

/// The adapted linear maps of a layer, in the order of [`Layer::maps`].
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
    pub feed_forward: usize,
    pub vocabulary: usize,
    /// The context length that the model was trained with, in tokens.
    pub context: usize,
    pub rms_epsilon: f64,
}

impl Shape {
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
    /// Dequantised, in GPU memory.
    #[cfg(feature = "cuda")]
    Gpu(crate::model::gpu::GpuMatrix),
}

impl Weight {
    /// x · Wᵀ: `rows × in` → `rows × out`.
    pub fn forward(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        match self {
            Weight::Plain(weight) => x.matmul(&weight.t()?),
            Weight::Quantised(weight) => weight.forward(x),
            #[cfg(feature = "cuda")]
            Weight::Gpu(weight) => weight.forward(x),
        }
    }

    /// y += x · Wᵀ, without a gradient. If there is a `unit` and W is quantised, activations
    /// are rounded to 8 bits, as the server does on a CPU.
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
        with_values(&self.forward(&x)?, |part: &[T]| {
            y.iter_mut().zip(part).for_each(|(y, part)| *y += *part);
        })
    }

    /// The gradient with respect to x, dy · W: `rows × out` → `rows × in`.
    pub fn backward(&self, dy: &Tensor) -> candle_core::Result<Tensor> {
        match self {
            Weight::Plain(weight) => dy.matmul(weight),
            Weight::Quantised(weight) => weight.backward(dy),
            #[cfg(feature = "cuda")]
            Weight::Gpu(weight) => weight.backward(dy),
        }
    }

    pub fn rows(&self) -> candle_core::Result<usize> {
        match self {
            Weight::Plain(tensor) => tensor.dim(0),
            Weight::Quantised(quantised) => Ok(quantised.rows()),
            #[cfg(feature = "cuda")]
            Weight::Gpu(matrix) => Ok(matrix.rows_out()),
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
            #[cfg(feature = "cuda")]
            Weight::Gpu(_) => candle_core::bail!("a matrix on the GPU was asked for on the CPU"),
        }
    }
}

/// The frozen weights of one layer.
pub struct Layer<T> {
    pub attention_norm: Vec<T>,
    pub feed_forward_norm: Vec<T>,
    /// In the order of [`MAPS`].
    pub maps: [Weight; 7],
    /// The biases of q, k and v, which qwen2 has.
    pub bias: [Option<Vec<T>>; 3],
}

impl<T: Float> Layer<T> {
    /// The feed-forward part of normed rows on the GPU; `None` if its maps are not there.
    #[cfg(feature = "cuda")]
    pub fn feed_forward_on_gpu(&self, x: &[T]) -> Option<candle_core::Result<Vec<f32>>> {
        match [GATE, UP, DOWN].map(|map| &self.maps[map]) {
            [Weight::Gpu(gate), Weight::Gpu(up), Weight::Gpu(down)] => {
                let result = crate::model::gpu::Gpu::feed_forward([gate, up, down], T::as_f32(x)?);
                Some(result.map_err(candle_core::Error::wrap))
            }
            _ => None,
        }
    }

    #[cfg(not(feature = "cuda"))]
    pub fn feed_forward_on_gpu(&self, _: &[T]) -> Option<candle_core::Result<Vec<f32>>> {
        None
    }
}

/// A `vocabulary × width` matrix in blocks of rows.
pub struct VocabularyMatrix {
    pub blocks: Vec<Weight>,
    /// The number of rows of every block but the last one, which may have fewer.
    pub block_rows: usize,
    pub width: usize,
    /// The same blocks in GPU memory, once they are moved there. Rows are still read from `blocks`.
    #[cfg(feature = "cuda")]
    pub on_gpu: OnceLock<Vec<crate::model::gpu::GpuMatrix>>,
}

impl VocabularyMatrix {
    pub fn new(blocks: Vec<Weight>, block_rows: usize, width: usize) -> VocabularyMatrix {
        VocabularyMatrix {
            blocks,
            block_rows,
            width,
            #[cfg(feature = "cuda")]
            on_gpu: OnceLock::new(),
        }
    }

    /// x · Wᵀ for the rows of one block.
    pub fn forward(&self, block: usize, x: &Tensor) -> candle_core::Result<Tensor> {
        #[cfg(feature = "cuda")]
        if let Some(weight) = self.on_gpu.get().and_then(|blocks| blocks.get(block)) {
            return weight.forward(x);
        }
        self.blocks[block].forward(x)
    }

    /// dy · W for the rows of one block.
    pub fn backward(&self, block: usize, dy: &Tensor) -> candle_core::Result<Tensor> {
        #[cfg(feature = "cuda")]
        if let Some(weight) = self.on_gpu.get().and_then(|blocks| blocks.get(block)) {
            return weight.backward(dy);
        }
        self.blocks[block].backward(dy)
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
        }
        matrix(rows, ids.len(), self.width)
    }
}

/// The base model: all weights that stay as they are.
pub struct Transformer<T> {
    pub shape: Shape,
    pub embedding: Arc<VocabularyMatrix>,
    /// The same matrix as the embedding if the file has only one.
    pub head: Arc<VocabularyMatrix>,
    pub output_norm: Vec<T>,
    pub layers: Vec<Layer<T>>,
    pub rope: Rope,
}

/// Reads the weights of a qwen2 or llama model.
///
/// # Errors
/// The learner cannot compute the architecture, a tensor type or the RoPE scaling exactly; a
/// tensor is missing or has a wrong shape; or the file cannot be read.
pub fn load(gguf: &Gguf) -> anyhow::Result<Transformer<f32>> {
    let file = File::open(&gguf.path)
        .with_context(|| format!("cannot open the base model {}", gguf.path.display()))?;
    let mut reader = WeightsReader { gguf, file };
    reader.weights().with_context(|| format!("cannot use the base model {}", gguf.path.display()))
}

struct WeightsReader<'a> {
    gguf: &'a Gguf,
    file: File,
}

impl WeightsReader<'_> {
    fn weights(&mut self) -> anyhow::Result<Transformer<f32>> {
        let (shape, rope_base) = self.shape()?;
        let pairs = match shape.architecture.as_str() {
            "qwen2" => RopePairs::Halves,
            "llama" => RopePairs::Adjacent,
            other => bail!("architecture {other} is not supported; use a qwen2 or llama model"),
        };
        let factors = match self.gguf.tensor("rope_freqs.weight") {
            Some(_) => Some(self.vector("rope_freqs.weight", shape.head_width / 2)?),
            None => None,
        };
        let rope = Rope::new(pairs, shape.head_width, rope_base, factors.as_deref());
        let embedding = Arc::new(self.vocabulary("token_embd.weight", &shape)?);
        let head = match self.gguf.tensor("output.weight") {
            Some(_) => Arc::new(self.vocabulary("output.weight", &shape)?),
            None => embedding.clone(),
        };
        let output_norm = self.vector("output_norm.weight", shape.width)?;
        let layers = (0..shape.layers)
            .map(|layer| self.layer(layer, &shape))
            .collect::<anyhow::Result<_>>()?;
        Ok(Transformer { shape, embedding, head, output_norm, layers, rope })
    }

    fn layer(&mut self, layer: usize, shape: &Shape) -> anyhow::Result<Layer<f32>> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let mut maps = Vec::with_capacity(MAPS.len());
        for (map, part) in MAPS.iter().enumerate() {
            let (rows, width) = shape.map(map);
            maps.push(self.matrix(&name(&format!("{part}.weight")), rows, width)?);
        }
        let Ok(maps) = <[Weight; 7]>::try_from(maps) else { bail!("a layer has seven maps") };
        let mut bias = [None, None, None];
        for (map, bias) in bias.iter_mut().enumerate() {
            let name = name(&format!("{}.bias", MAPS[map]));
            if self.gguf.tensor(&name).is_some() {
                *bias = Some(self.vector(&name, shape.map(map).0)?);
            }
        }
        for (map, part) in MAPS.iter().enumerate().skip(bias.len()) {
            if self.gguf.tensor(&name(&format!("{part}.bias"))).is_some() {
                bail!("blk.{layer}.{}.bias is not supported", MAPS[map]);
            }
        }
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm.weight"), shape.width)?,
            feed_forward_norm: self.vector(&name("ffn_norm.weight"), shape.width)?,
            maps,
            bias,
        })
    }

    fn shape(&self) -> anyhow::Result<(Shape, f64)> {
        let architecture =
            self.gguf.architecture().context("general.architecture is missing")?.to_owned();
        let key = |key: &str| format!("{architecture}.{key}");
        let number = |name: &str| {
            let key = key(name);
            let value = self.gguf.u32(&key).with_context(|| format!("{key} is missing"))?;
            if value == 0 {
                bail!("{key} is 0");
            }
            Ok(value as usize)
        };
        if let Some(scaling) = self.gguf.str(&key("rope.scaling.type"))
            && scaling != "none"
        {
            bail!("RoPE scaling {scaling} is not supported");
        }
        let (width, heads) = (number("embedding_length")?, number("attention.head_count")?);
        let kv_heads = match self.gguf.u32(&key("attention.head_count_kv")) {
            Some(count) => count as usize,
            None => heads,
        };
        let head_width = match self.gguf.u32(&key("attention.key_length")) {
            Some(length) => length as usize,
            None => width / heads,
        };
        let rotated = self.gguf.u32(&key("rope.dimension_count"));
        if rotated.is_some_and(|rotated| rotated as usize != head_width) {
            bail!("RoPE over a part of a head is not supported");
        }
        if kv_heads == 0 || heads % kv_heads != 0 || head_width == 0 || head_width % 2 != 0 {
            bail!("{heads} heads of {head_width} over {kv_heads} key/value heads do not fit");
        }
        let embedding =
            self.gguf.tensor("token_embd.weight").context("token_embd.weight is missing")?;
        let epsilon_key = key("attention.layer_norm_rms_epsilon");
        let shape = Shape {
            layers: number("block_count")?,
            width,
            heads,
            kv_heads,
            head_width,
            feed_forward: number("feed_forward_length")?,
            vocabulary: embedding.dims.get(1).map_or(0, |rows| *rows as usize),
            context: number("context_length")?,
            rms_epsilon: f64::from(
                self.gguf.f32(&epsilon_key).with_context(|| format!("{epsilon_key} is missing"))?,
            ),
            architecture: architecture.clone(),
        };
        // 10,000 is the default of llama.cpp.
        let base = match self.gguf.metadata.get(&key("rope.freq_base")) {
            Some(Value::F32(base)) => f64::from(*base),
            _ => 10_000.0,
        };
        Ok((shape, base))
    }

    fn info(&self, name: &str, dims: &[u64]) -> anyhow::Result<&TensorInfo> {
        let info = self.gguf.tensor(name).with_context(|| format!("{name} is missing"))?;
        if info.dims != dims {
            bail!("{name} has shape {:?}, {dims:?} was expected", info.dims);
        }
        Ok(info)
    }

    fn matrix(&mut self, name: &str, rows: usize, width: usize) -> anyhow::Result<Weight> {
        self.info(name, &[width as u64, rows as u64])?;
        self.rows(name, 0, rows, width)
    }

    fn vocabulary(&mut self, name: &str, shape: &Shape) -> anyhow::Result<VocabularyMatrix> {
        let (rows, width) = (shape.vocabulary, shape.width);
        self.info(name, &[width as u64, rows as u64])?;
        let blocks = (0..rows)
            .step_by(VOCABULARY_BLOCK_ROWS)
            .map(|from| self.rows(name, from, VOCABULARY_BLOCK_ROWS.min(rows - from), width))
            .collect::<anyhow::Result<_>>()?;
        Ok(VocabularyMatrix::new(blocks, VOCABULARY_BLOCK_ROWS, width))
    }

    /// `count` rows of a matrix, from row `from` on, as the file stores them.
    fn rows(
        &mut self,
        name: &str,
        from: usize,
        count: usize,
        width: usize,
    ) -> anyhow::Result<Weight> {
        let info = self.gguf.tensor(name).with_context(|| format!("{name} is missing"))?;
        let format = Format::from_ggml(info.ggml_type).with_context(|| {
            format!("{name} has ggml type {}, which is not supported", info.ggml_type)
        })?;
        let row_bytes = width / format.block_values() * format.block_bytes();
        let offset = self.gguf.data_offset + info.offset + (from * row_bytes) as u64;
        let mut bytes = vec![0; count * row_bytes];
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut bytes).with_context(|| format!("{name} is truncated"))?;
        let quantised =
            QuantisedMatrix::new(format, bytes, count, width).with_context(|| name.to_owned())?;
        Ok(Weight::Quantised(quantised))
    }

    fn vector(&mut self, name: &str, length: usize) -> anyhow::Result<Vec<f32>> {
        self.info(name, &[length as u64])?;
        let weight = self.rows(name, 0, 1, length)?;
        Ok(weight.rows_of(&[0])?)
    }
}
