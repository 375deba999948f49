//! Reads a model from its GGUF file, and refuses what the passes would not compute exactly.

use crate::kernels::int8_dot::Int8Unit;
use crate::kernels::matmul::QuantisedMatrix;
use crate::kernels::norm::Norm;
use crate::kernels::quant_blocks::Format;
use crate::kernels::rope::{Rope, RopePairs};
use crate::kernels::weight_bytes::MappedFile;
use crate::model::Transformer;
use crate::model::architecture::{Architecture, Block, FeedForward, Keys};
use crate::model::weights::{
    Expert, Experts, Layer, LinearMap, MAPS, Shape, VocabularyMatrix, Weight,
};
use anyhow::{Context, bail, ensure};
use models::gguf::{Gguf, TensorInfo};
use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;

/// The vocabulary matrices are used in blocks of this many rows. A whole one in f32 would be
/// the largest thing in memory.
const VOCABULARY_BLOCK_ROWS: usize = 1024;

/// The divisors of the rotation's frequencies.
const ROPE_FACTORS: &str = "rope_freqs.weight";

/// Reads the weights of a model.
///
/// # Errors
/// The learner cannot compute the architecture, a tensor or the RoPE scaling exactly; a tensor
/// is missing or has a wrong shape; or the file cannot be read. The message is one line that
/// names the file and what to do.
pub fn load(gguf: &Gguf) -> anyhow::Result<Transformer<f32>> {
    let file = File::open(&gguf.path)
        .with_context(|| format!("cannot open the base model {}", gguf.path.display()))?;
    let file = MappedFile::new(&file)
        .with_context(|| format!("cannot map the base model {}", gguf.path.display()))?;
    let mut reader = WeightsReader { gguf, file, read: HashSet::new() };
    reader.weights().with_context(|| {
        format!(
            "cannot learn on the base model {}; `hone model list` shows the models that learn",
            gguf.path.display()
        )
    })
}

struct WeightsReader<'a> {
    gguf: &'a Gguf,
    file: MappedFile,
    /// The names of the tensors that were read.
    read: HashSet<String>,
}

impl WeightsReader<'_> {
    fn weights(&mut self) -> anyhow::Result<Transformer<f32>> {
        let keys = Keys::of(self.gguf)?;
        let (shape, pairs) = self.shape(&keys)?;
        let mut frequencies = keys.rope()?;
        if self.gguf.tensor(ROPE_FACTORS).is_some() {
            frequencies.factors = self.vector(ROPE_FACTORS, shape.head_width / 2)?;
        }
        let rope = Rope::new(pairs, shape.head_width, &frequencies);
        let embedding = Arc::new(self.vocabulary("token_embd.weight", &shape)?);
        let head = match self.gguf.tensor("output.weight") {
            Some(_) => Arc::new(self.vocabulary("output.weight", &shape)?),
            None => embedding.clone(),
        };
        let mut output_norm = self.norm("output_norm", shape.width, &shape.block)?;
        let bias = output_norm.bias.iter_mut().flatten();
        output_norm.weight.iter_mut().chain(bias).for_each(|weight| {
            *weight = (f64::from(*weight) * shape.block.logit_scale) as f32;
        });
        let layers = (0..shape.layers)
            .map(|layer| self.layer(layer, &shape))
            .collect::<anyhow::Result<_>>()?;
        // A tensor that is left would change what llama.cpp computes.
        let left = self.gguf.tensors.iter().find(|tensor| !self.read.contains(&tensor.name));
        if let Some(left) = left {
            bail!("Hone does not learn on a {} model with {}", keys.architecture(), left.name);
        }
        Ok(Transformer {
            shape,
            embedding,
            head,
            output_norm,
            layers,
            rope,
            unit: Int8Unit::fastest(),
            #[cfg(feature = "cuda")]
            gpu: None,
        })
    }

    fn layer(&mut self, layer: usize, shape: &Shape) -> anyhow::Result<Layer<f32>> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let maps = shape
            .maps()
            .iter()
            .map(|map| {
                let (rows, width) = shape.map(*map);
                let weight = self.matrix(&name(&format!("{}.weight", MAPS[*map])), rows, width)?;
                let bias = self.optional_vector(&name(&format!("{}.bias", MAPS[*map])), rows)?;
                Ok(LinearMap { weight, bias })
            })
            .collect::<anyhow::Result<_>>()?;
        let experts = match shape.block.feed_forward {
            FeedForward::Experts(experts) => {
                Some(self.experts(&format!("blk.{layer}."), experts.count, shape)?)
            }
            _ => None,
        };
        let head_norms = if shape.block.has_head_norms {
            let mut norm = |part| self.norm(&name(part), shape.head_width, &shape.block);
            Some([norm("attn_q_norm")?, norm("attn_k_norm")?])
        } else {
            None
        };
        Ok(Layer {
            attention_norm: self.norm(&name("attn_norm"), shape.width, &shape.block)?,
            feed_forward_norm: self.norm(&name("ffn_norm"), shape.width, &shape.block)?,
            head_norms,
            maps,
            experts,
        })
    }

    /// The router and the experts of the layer whose tensors begin with `layer`.
    fn experts(&mut self, layer: &str, count: usize, shape: &Shape) -> anyhow::Result<Experts> {
        let (width, between) = (shape.width, shape.feed_forward);
        let mut stack = |name: &str, rows, columns| {
            self.stack(&format!("{layer}{name}.weight"), count, rows, columns)
        };
        let gates = stack("ffn_gate_exps", between, width)?;
        let ups = stack("ffn_up_exps", between, width)?;
        let downs = stack("ffn_down_exps", width, between)?;
        let experts = gates.into_iter().zip(ups).zip(downs);
        let router = self.matrix(&format!("{layer}ffn_gate_inp.weight"), count, width)?;
        let experts = experts.map(|((gate, up), down)| Expert { gate, up, down }).collect();
        Ok(Experts { router, experts })
    }

    /// `count` matrices that stand one after the other in a tensor of three dimensions.
    fn stack(
        &mut self,
        name: &str,
        count: usize,
        rows: usize,
        width: usize,
    ) -> anyhow::Result<Vec<Weight>> {
        self.info(name, &[width as u64, rows as u64, count as u64])?;
        (0..count).map(|index| self.rows(name, index * rows, rows, width)).collect()
    }

    fn shape(&self, keys: &Keys) -> anyhow::Result<(Shape, RopePairs)> {
        let (width, heads) = (keys.size("embedding_length")?, keys.size("attention.head_count")?);
        let kv_heads = keys.optional_size("attention.head_count_kv")?.unwrap_or(heads);
        let head_width = match keys.optional_size("attention.key_length")? {
            Some(length) => length,
            None => {
                ensure!(width % heads == 0, "{heads} heads do not divide a width of {width}");
                width / heads
            }
        };
        let value_width = keys.optional_size("attention.value_length")?.unwrap_or(width / heads);
        ensure!(
            value_width == head_width,
            "its keys have {head_width} values a head and its values {value_width}, which Hone \
             does not learn on"
        );
        let rotated = keys.optional_size("rope.dimension_count")?.unwrap_or(head_width);
        ensure!(
            rotated == head_width,
            "its rotation covers {rotated} of the {head_width} values of a head, which Hone does \
             not learn on"
        );
        ensure!(
            heads.is_multiple_of(kv_heads) && head_width.is_multiple_of(2),
            "{heads} heads of {head_width} over {kv_heads} key/value heads do not fit"
        );
        let embedding =
            self.gguf.tensor("token_embd.weight").context("token_embd.weight is missing")?;
        let vocabulary = embedding.dims.get(1).map_or(0, |rows| *rows as usize);
        if let Some(tokens) = self.gguf.array("tokenizer.ggml.tokens") {
            ensure!(
                tokens.len() == vocabulary,
                "it has {} tokens and the embeddings of {vocabulary}",
                tokens.len()
            );
        }
        let Architecture { block, pairs } = keys.architecture_of(width, head_width)?;
        let feed_forward = match block.feed_forward {
            FeedForward::Experts(experts) => {
                // Without the key, llama.cpp divides the width among the experts of a token.
                match keys.optional_size("expert_feed_forward_length")? {
                    Some(width) => width,
                    None => keys.size("feed_forward_length")? / experts.used,
                }
            }
            _ => keys.size("feed_forward_length")?,
        };
        let shape = Shape {
            architecture: keys.architecture().to_owned(),
            layers: keys.size("block_count")?,
            width,
            heads,
            kv_heads,
            head_width,
            feed_forward,
            vocabulary,
            context: keys.size("context_length")?,
            block,
        };
        Ok((shape, pairs))
    }

    fn norm(&mut self, name: &str, width: usize, block: &Block) -> anyhow::Result<Norm<f32>> {
        Ok(Norm {
            kind: block.norm,
            weight: self.vector(&format!("{name}.weight"), width)?,
            bias: self.optional_vector(&format!("{name}.bias"), width)?,
            epsilon: block.norm_epsilon,
        })
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
        let tensor = self.gguf.data_offset.saturating_add(info.offset);
        let start = usize::try_from(tensor)?.saturating_add(from * row_bytes);
        let bytes = self.file.part(start..start.saturating_add(count * row_bytes));
        let bytes = bytes.with_context(|| format!("{name} is truncated"))?;
        let quantised =
            QuantisedMatrix::new(format, bytes, count, width).with_context(|| name.to_owned())?;
        self.read.insert(name.to_owned());
        Ok(Weight::Quantised(quantised))
    }

    fn vector(&mut self, name: &str, length: usize) -> anyhow::Result<Vec<f32>> {
        self.info(name, &[length as u64])?;
        let weight = self.rows(name, 0, 1, length)?;
        Ok(weight.rows_of(&[0])?)
    }

    fn optional_vector(&mut self, name: &str, length: usize) -> anyhow::Result<Option<Vec<f32>>> {
        match self.gguf.tensor(name) {
            Some(_) => self.vector(name, length).map(Some),
            None => Ok(None),
        }
    }
}
