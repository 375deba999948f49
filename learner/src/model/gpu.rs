//! Matrix products on an NVIDIA GPU (feature `cuda`).
//!
//! A frozen matrix stays in GPU memory as f32; only activations are copied. cuBLAS computes in full
//! f32 (not TF32), so that the log-probs stay within the tolerances of the tests.
//!
//! The driver and cuBLAS are loaded when the program runs. The same binary works on a
//! machine that has neither.
//!
//! `unsafe` because cudarc cannot check the sizes that cuBLAS is given. They are checked
//! here, in one place.
#![allow(unsafe_code)]

use crate::kernels::{matrix, with_values};
use anyhow::{Context, bail, ensure};
use candle_core::Tensor;
use cudarc::cublas::sys::cublasOperation_t::{self, CUBLAS_OP_N, CUBLAS_OP_T};
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use std::sync::Arc;

/// The first GPU of the machine.
pub struct Gpu {
    stream: Arc<CudaStream>,
    blas: CudaBlas,
}

/// A frozen `out × in` matrix of f32 in GPU memory.
pub struct GpuMatrix {
    gpu: Arc<Gpu>,
    values: CudaSlice<f32>,
    rows_out: usize,
    rows_in: usize,
}

impl Gpu {
    pub fn open() -> anyhow::Result<Gpu> {
        if !libraries_present() {
            bail!("no CUDA driver or no cuBLAS on this machine");
        }
        let context = CudaContext::new(0).context("cannot open the first GPU")?;
        let stream = context.default_stream();
        let blas = CudaBlas::new(stream.clone()).context("cannot start cuBLAS")?;
        Ok(Gpu { stream, blas })
    }

    /// The name of the GPU.
    pub fn name(&self) -> anyhow::Result<String> {
        self.stream.context().name().context("cannot ask for the GPU's name")
    }

    pub fn free_bytes(&self) -> anyhow::Result<usize> {
        let memory = self.stream.context().mem_get_info();
        Ok(memory.context("cannot ask for the GPU's free memory")?.0)
    }

    /// Copies a matrix of `rows_out` rows into GPU memory.
    pub fn upload(self: &Arc<Gpu>, host: &[f32], rows_out: usize) -> anyhow::Result<GpuMatrix> {
        let rows_in = host.len() / rows_out;
        let values = self.stream.clone_htod(host).context("cannot copy a matrix to the GPU")?;
        Ok(GpuMatrix { gpu: self.clone(), values, rows_out, rows_in })
    }
}

impl GpuMatrix {
    pub fn rows_out(&self) -> usize {
        self.rows_out
    }

    /// x · Wᵀ: `rows × in` → `rows × out`.
    pub fn forward(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        self.product(x, CUBLAS_OP_T).map_err(candle_core::Error::wrap)
    }

    /// dy · W: `rows × out` → `rows × in`.
    pub fn backward(&self, dy: &Tensor) -> candle_core::Result<Tensor> {
        self.product(dy, CUBLAS_OP_N).map_err(candle_core::Error::wrap)
    }

    /// y = x · Wᵀ with `CUBLAS_OP_T`, and y = x · W with `CUBLAS_OP_N`.
    ///
    /// cuBLAS reads matrices column by column. A matrix that lies in memory row by row is
    /// its own transpose to cuBLAS, which therefore computes yᵀ = op(W) · xᵀ.
    fn product(&self, x: &Tensor, op: cublasOperation_t) -> anyhow::Result<Tensor> {
        let (from, to) = match op {
            CUBLAS_OP_T => (self.rows_in, self.rows_out),
            _ => (self.rows_out, self.rows_in),
        };
        let (rows, width) = x.dims2()?;
        ensure!(width == from, "a row of {width} values, {from} were expected");
        let stream = &self.gpu.stream;
        // The caller may be any thread of the pool.
        stream.context().bind_to_thread()?;
        let x = with_values(&x.contiguous()?, |x: &[f32]| stream.clone_htod(x))??;
        let mut y = stream.alloc_zeros::<f32>(rows * to)?;
        let config = GemmConfig {
            transa: op,
            transb: CUBLAS_OP_N,
            m: i32::try_from(to)?,
            n: i32::try_from(rows)?,
            k: i32::try_from(from)?,
            alpha: 1.0,
            lda: i32::try_from(self.rows_in)?,
            ldb: i32::try_from(from)?,
            beta: 0.0,
            ldc: i32::try_from(to)?,
        };
        // SAFETY: W has out × in values, x has rows × from (its width is checked above) and
        // y has rows × to. The leading dimensions are those of these matrices.
        unsafe { self.gpu.blas.gemm(config, &self.values, &x, &mut y)? };
        Ok(matrix(stream.clone_dtoh(&y)?, rows, to)?)
    }
}

fn libraries_present() -> bool {
    // SAFETY: both only try to open a shared library by its usual name.
    unsafe { cudarc::driver::sys::is_culib_present() && cudarc::cublas::sys::is_culib_present() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::values;
    use crate::testing::skip;

    /// Without a GPU the test checks only that this is the reason for the error.
    #[test]
    fn a_product_on_the_gpu_is_the_product_on_the_cpu() {
        let gpu = match Gpu::open() {
            Ok(gpu) => Arc::new(gpu),
            Err(error) => {
                assert!(!libraries_present() || CudaContext::device_count().unwrap_or(0) == 0);
                return skip(&format!("a product on the GPU: {error:#}"), &["gpu"]);
            }
        };
        let host = |rows: usize, width: usize| {
            let values = (0..rows * width).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0).collect();
            matrix(values, rows, width).unwrap()
        };
        // One matrix is square: its transpose has the same shape, so that only the values
        // can show that the two were confused.
        for (rows_out, rows_in) in [(7, 5), (6, 6)] {
            let on_cpu = host(rows_out, rows_in);
            let on_gpu = gpu.upload(&values::<f32>(&on_cpu).unwrap(), rows_out).unwrap();
            let (x, dy) = (host(3, rows_in), host(3, rows_out));
            let pairs = [
                (on_gpu.forward(&x).unwrap(), x.matmul(&on_cpu.t().unwrap()).unwrap()),
                (on_gpu.backward(&dy).unwrap(), dy.matmul(&on_cpu).unwrap()),
            ];
            for (is, should_be) in pairs {
                let (is, should_be) = (values::<f32>(&is).unwrap(), values(&should_be).unwrap());
                assert_eq!(is.len(), should_be.len());
                assert!(is.iter().zip(&should_be).all(|(a, b): (&f32, &f32)| (a - b).abs() < 1e-4));
            }
        }
    }
}
