//! How far the GPU is from the CPU of the same machine: log-probs of the server, and log-probs and
//! gradients of the learner.

use crate::{Bench, run};
use anyhow::Result;
use serde_json::Value;

/// Log-probs by llama.cpp on the CPU and on the GPU, and the time of a long prompt by the size of
/// the micro-batch.
pub fn logits(bench: &Bench, shape: &str) -> Result<Value> {
    let mut program = bench.program("engine_gpu");
    json(run(program.arg("--model").arg(bench.model(shape)))?)
}

/// The learner's step on the CPU and on the GPU.
pub fn gradient(bench: &Bench, shape: &str) -> Result<Value> {
    let mut program = bench.program("learner_gpu");
    json(run(program.arg("compare").arg("--model").arg(bench.model(shape)))?)
}

fn json(text: String) -> Result<Value> {
    Ok(serde_json::from_str(&text)?)
}
