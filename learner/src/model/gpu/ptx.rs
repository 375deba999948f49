//! The compiled kernels.

use anyhow::Context;
use cudarc::driver::{CudaContext, CudaFunction};
use cudarc::nvrtc::Ptx;
use std::collections::BTreeMap;
use std::sync::Arc;

/// kernels.cu, compiled.
const PTX: &str = include_str!("kernels.ptx");

const NAMES: [&str; 17] = [
    "rms_norm",
    "rms_norm_backward",
    "rotate",
    "add_to_rows",
    "add_scaled",
    "scale_rows",
    "gated",
    "gated_backward",
    "causal_softmax",
    "softmax_backward",
    "sum_groups",
    "gather_rows",
    "gather_half_rows",
    "scatter_rows",
    "to_half",
    "to_bfloat",
    "predict",
];

pub type Kernels = BTreeMap<&'static str, CudaFunction>;

/// Compiles the kernels for the GPU, which the driver does.
pub fn load_kernels(context: &Arc<CudaContext>) -> anyhow::Result<Kernels> {
    let module = context.load_module(Ptx::from_src(PTX));
    let module = module.context("the driver cannot compile the kernels for the GPU")?;
    let function = |name| {
        let function = module.load_function(name);
        Ok((name, function.with_context(|| format!("the kernel {name} is missing"))?))
    };
    NAMES.into_iter().map(function).collect()
}
