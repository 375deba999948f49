//! The layers of a model on an NVIDIA GPU (feature `cuda`).
//!
//! A step spends most of its time in the maps of every layer, and of the rest most in the
//! output matrix. They are dequantised once and stay in GPU memory. All other code is the same with
//! and without a GPU.

use crate::limits::GPU_SPARE_BYTES;
use crate::model::gpu::{Gpu, GpuMatrix};
use crate::model::weights::{Transformer, VocabularyMatrix, Weight};
use anyhow::ensure;
use rayon::prelude::*;
use std::sync::Arc;

/// Rows that one thread dequantises at a time.
const ROWS_AT_ONCE: usize = 256;

/// Moves the maps of the layers into GPU memory, and the output matrix if it fits too. Returns the
/// name of the GPU.
///
/// # Errors
/// There is no driver, no cuBLAS, no GPU, or not enough free memory on it. The weights are
/// then unchanged.
pub fn move_layers(weights: &mut Transformer<f32>) -> anyhow::Result<String> {
    let gpu = Arc::new(Gpu::open()?);
    let shape = &weights.shape;
    let values_a_layer: usize =
        shape.maps().iter().map(|map| shape.map(*map)).map(|(out, width)| out * width).sum();
    let needed = shape.layers * values_a_layer * size_of::<f32>() + GPU_SPARE_BYTES;
    let free = gpu.free_bytes()?;
    ensure!(free >= needed, "the GPU has {} MiB free, {} are needed", free >> 20, needed >> 20);

    let name = gpu.name()?;
    let moved = weights
        .layers
        .iter()
        .map(|layer| layer.maps.iter().map(|map| upload(&gpu, &map.weight)).collect())
        .collect::<anyhow::Result<Vec<Vec<GpuMatrix>>>>()?;
    for (layer, moved) in weights.layers.iter_mut().zip(moved) {
        for (map, moved) in layer.maps.iter_mut().zip(moved) {
            map.weight = Weight::Gpu(moved);
        }
    }
    move_head(&gpu, &weights.head)?;
    Ok(name)
}

/// Copies the output matrix into GPU memory, if it fits.
fn move_head(gpu: &Arc<Gpu>, head: &VocabularyMatrix) -> anyhow::Result<()> {
    let mut rows = 0;
    for block in &head.blocks {
        rows += block.rows()?;
    }
    if gpu.free_bytes()? >= rows * head.width * size_of::<f32>() + GPU_SPARE_BYTES {
        let blocks = head.blocks.iter().map(|block| upload(gpu, block));
        let blocks = blocks.collect::<anyhow::Result<Vec<GpuMatrix>>>()?;
        // It is empty: a model is moved once.
        let _ = head.on_gpu.set(blocks);
    }
    Ok(())
}

/// Copies a matrix. All threads of the pool dequantise it, because one alone takes seconds for the
/// matrices of a large model.
fn upload(gpu: &Arc<Gpu>, weight: &Weight) -> anyhow::Result<GpuMatrix> {
    let rows_out = weight.rows()?;
    let firsts: Vec<usize> = (0..rows_out).step_by(ROWS_AT_ONCE).collect();
    let parts = firsts.par_iter().map(|first| {
        let last = (first + ROWS_AT_ONCE).min(rows_out);
        let rows: Vec<u32> = (*first as u32..last as u32).collect();
        weight.rows_of::<f32>(&rows)
    });
    let parts = parts.collect::<candle_core::Result<Vec<Vec<f32>>>>()?;
    gpu.upload(&parts.concat(), rows_out)
}
