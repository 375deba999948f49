//! The weights of a model in GPU memory.

use crate::kernels::activation::Activation;
use crate::kernels::norm::{Norm, NormKind};
use crate::kernels::rope::Rope;
use crate::limits::GPU_SPARE_BYTES;
use crate::model::Transformer;
use crate::model::architecture::FeedForward;
use crate::model::gpu::card::{Buffer, Gpu};
use crate::model::gpu::kernels::{GpuAngles, GpuNorm};
use crate::model::heads::Heads;
use crate::model::weights::{LinearMap, VocabularyMatrix, Weight};
use anyhow::{bail, ensure};
use half::bf16;
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows that one thread dequantises at a time.
const ROWS_AT_ONCE: usize = 256;

/// A model in GPU memory.
pub struct GpuModel {
    pub(super) gpu: Gpu,
    pub(super) layers: Vec<GpuLayer>,
    pub(super) output_norm: GpuNorm,
    pub(super) head: GpuMatrix,
    /// On the CPU, which reads a few rows of it for a pass.
    pub(super) embedding: Arc<VocabularyMatrix>,
    pub(super) embedding_scale: f64,
    pub(super) heads: Heads,
    pub(super) activation: Activation,
    pub(super) residual_scale: f64,
    rope: Rope,
    name: String,
    /// Something failed on the GPU, which is then not used again.
    failed: AtomicBool,
}

pub(super) struct GpuLayer {
    pub attention_norm: GpuNorm,
    pub feed_forward_norm: GpuNorm,
    /// The norms of the heads of q and k, if there are any.
    pub head_norms: Option<[GpuNorm; 2]>,
    /// In the order of [`Shape::maps`](crate::model::weights::Shape::maps) of a gated model.
    pub maps: Vec<GpuMap>,
}

pub(super) struct GpuMap {
    pub weight: GpuMatrix,
    pub bias: Option<Buffer<f32>>,
}

/// A frozen `rows × width` matrix of bf16, by its bits.
pub(super) struct GpuMatrix {
    pub bits: Buffer<u16>,
    pub rows: usize,
    pub width: usize,
}

impl GpuModel {
    /// Copies a model to the first GPU.
    ///
    /// # Errors
    /// There is no driver, no cuBLAS, no GPU, not enough free memory on it, or the passes on the
    /// GPU do not know how the model is built.
    pub fn copy_of(model: &Transformer<f32>) -> anyhow::Result<GpuModel> {
        check_block(model)?;
        let gpu = Gpu::open()?;
        let needed = weight_bytes(model)? + GPU_SPARE_BYTES;
        let free = gpu.free_bytes()?;
        ensure!(free >= needed, "the GPU has {} MiB free, {} are needed", free >> 20, needed >> 20);
        let layers = model.layers.iter().map(|layer| {
            let maps = layer.maps.iter().map(|map| upload_map(&gpu, map));
            Ok(GpuLayer {
                attention_norm: upload_norm(&gpu, &layer.attention_norm)?,
                feed_forward_norm: upload_norm(&gpu, &layer.feed_forward_norm)?,
                head_norms: match &layer.head_norms {
                    Some([q, k]) => Some([upload_norm(&gpu, q)?, upload_norm(&gpu, k)?]),
                    None => None,
                },
                maps: maps.collect::<anyhow::Result<_>>()?,
            })
        });
        Ok(GpuModel {
            layers: layers.collect::<anyhow::Result<_>>()?,
            output_norm: upload_norm(&gpu, &model.output_norm)?,
            head: upload_head(&gpu, &model.head)?,
            embedding: model.embedding.clone(),
            embedding_scale: model.shape.block.embedding_scale,
            heads: model.heads(),
            activation: model.shape.block.activation,
            residual_scale: model.shape.block.residual_scale,
            rope: model.rope.clone(),
            name: gpu.name()?,
            failed: AtomicBool::new(false),
            gpu,
        })
    }

    /// The name of the GPU.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if a pass has failed, so that the CPU has to do the work.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Does something on the GPU, and remembers if it fails.
    pub(super) fn run<R>(&self, work: impl FnOnce() -> anyhow::Result<R>) -> anyhow::Result<R> {
        let done = self.gpu.enter().and_then(|()| work());
        self.failed.fetch_or(done.is_err(), Ordering::Relaxed);
        done
    }

    /// Returns what rotates the rows of a pass.
    pub(super) fn angles(&self, positions: &[usize]) -> anyhow::Result<GpuAngles> {
        let pairs = self.rope.angles::<f32>(positions, 1.0);
        let values: Vec<f32> = pairs.into_iter().flat_map(|(sin, cos)| [sin, cos]).collect();
        let halves = self.rope.has_halves();
        let head_width = self.heads.width;
        Ok(GpuAngles { values: self.gpu.upload(&values)?, head_width, halves })
    }
}

/// Refuses a model whose layers the passes on the GPU do not compute.
fn check_block(model: &Transformer<f32>) -> anyhow::Result<()> {
    let block = &model.shape.block;
    let has_norm_bias = model.output_norm.bias.is_some();
    if block.norm != NormKind::Rms || has_norm_bias || block.feed_forward != FeedForward::Gated {
        bail!("models of the architecture {} learn on the CPU", model.shape.architecture);
    }
    Ok(())
}

/// Bytes of all matrices in GPU memory. What else there is has a few megabytes.
fn weight_bytes(model: &Transformer<f32>) -> anyhow::Result<usize> {
    let shape = &model.shape;
    let maps = shape.maps().iter().map(|map| shape.map(*map));
    let a_layer: usize = maps.map(|(out, width)| out * width).sum();
    let mut rows = 0;
    for block in &model.head.blocks {
        rows += block.rows()?;
    }
    Ok((shape.layers * a_layer + rows * model.head.width) * size_of::<u16>())
}

fn upload_norm(gpu: &Gpu, norm: &Norm<f32>) -> anyhow::Result<GpuNorm> {
    Ok(GpuNorm { weight: gpu.upload(&norm.weight)?, epsilon: norm.epsilon as f32 })
}

fn upload_map(gpu: &Gpu, map: &LinearMap<f32>) -> anyhow::Result<GpuMap> {
    let bits = bfloats(&map.weight)?;
    let rows = map.weight.rows()?;
    let weight = GpuMatrix { width: bits.len() / rows, bits: gpu.upload(&bits)?, rows };
    let bias = map.bias.as_ref().map(|bias| gpu.upload(bias)).transpose()?;
    Ok(GpuMap { weight, bias })
}

fn upload_head(gpu: &Gpu, head: &VocabularyMatrix) -> anyhow::Result<GpuMatrix> {
    let mut bits = vec![];
    for block in &head.blocks {
        bits.extend(bfloats(block)?);
    }
    let (rows, width) = (bits.len() / head.width, head.width);
    Ok(GpuMatrix { bits: gpu.upload(&bits)?, rows, width })
}

/// A matrix rounded to bf16. All threads of the pool dequantise it, because one alone takes seconds
/// for the matrices of a large model.
fn bfloats(weight: &Weight) -> anyhow::Result<Vec<u16>> {
    let rows = weight.rows()?;
    let firsts: Vec<usize> = (0..rows).step_by(ROWS_AT_ONCE).collect();
    let parts = firsts.par_iter().map(|first| {
        let last = (first + ROWS_AT_ONCE).min(rows);
        let rows: Vec<u32> = (*first as u32..last as u32).collect();
        let values = weight.rows_of::<f32>(&rows)?;
        Ok(values.into_iter().map(|value| bf16::from_f32(value).to_bits()).collect())
    });
    Ok(parts.collect::<candle_core::Result<Vec<Vec<u16>>>>()?.concat())
}
