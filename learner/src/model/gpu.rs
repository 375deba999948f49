//! Matrix products on an NVIDIA GPU (feature `cuda`).
//!
//! A frozen matrix stays in GPU memory as f32; only activations are copied, and of a feed-forward
//! layer without an adapter only its input and output. cuBLAS computes in full f32 (not TF32), so
//! that the log-probs stay within the tolerances of the tests.
//!
//! The driver and cuBLAS are loaded when the program runs. The same binary works on a
//! machine that has neither.
//!
//! `unsafe` because cudarc cannot check the sizes that cuBLAS and our kernel are given. They are
//! checked here, in one place.
#![allow(unsafe_code)]

use crate::kernels::{matrix, with_values};
use anyhow::{Context, bail, ensure};
use candle_core::Tensor;
use cudarc::cublas::sys::cublasOperation_t::{self, CUBLAS_OP_N, CUBLAS_OP_T};
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use parking_lot::Mutex;
use std::sync::Arc;

/// swiglu.cu, compiled.
const SWIGLU: &str = include_str!("gpu/swiglu.ptx");

/// Bytes that are held at a time by [`Gpu::hold_all_but`].
const HELD_BYTES: usize = 256 << 20;

/// The first GPU of the machine.
pub struct Gpu {
    stream: Arc<CudaStream>,
    /// Several threads of the pool multiply at the same time.
    blas: Mutex<CudaBlas>,
    swiglu: CudaFunction,
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
        let module = context.load_module(Ptx::from_src(SWIGLU));
        let module = module.context("the driver cannot compile a kernel for the GPU")?;
        let swiglu = module.load_function("swiglu").context("a kernel is missing")?;
        Ok(Gpu { stream, blas: Mutex::new(blas), swiglu })
    }

    /// The name of the GPU.
    pub fn name(&self) -> anyhow::Result<String> {
        self.stream.context().name().context("cannot ask for the GPU's name")
    }

    pub fn free_bytes(&self) -> anyhow::Result<usize> {
        let memory = self.stream.context().mem_get_info();
        Ok(memory.context("cannot ask for the GPU's free memory")?.0)
    }

    /// Takes all free memory but `rest` bytes, until the answer is dropped. Tests fill a GPU so.
    pub fn hold_all_but(&self, rest: usize) -> anyhow::Result<Vec<CudaSlice<u8>>> {
        let mut held = vec![];
        loop {
            let bytes = self.free_bytes()?.saturating_sub(rest).min(HELD_BYTES);
            // The driver hands out memory in pages of 2 MiB.
            if bytes < 2 << 20 {
                return Ok(held);
            }
            held.push(self.stream.alloc_zeros::<u8>(bytes).context("cannot fill the GPU")?);
        }
    }

    /// Copies rows of values to the GPU.
    fn to_gpu(&self, rows: &[f32]) -> anyhow::Result<CudaSlice<f32>> {
        // The caller may be any thread of the pool.
        self.stream.context().bind_to_thread()?;
        Ok(self.stream.clone_htod(rows)?)
    }

    /// down(silu(gate · x) · (up · x)) for the rows of x. Only x and the result are copied.
    pub fn feed_forward(maps: [&GpuMatrix; 3], x: &[f32]) -> anyhow::Result<Vec<f32>> {
        let [gate, up, down] = maps;
        ensure!(
            gate.rows_in == up.rows_in && gate.rows_out == up.rows_out,
            "gate and up have different shapes"
        );
        ensure!(down.rows_in == gate.rows_out, "down does not fit behind gate and up");
        let rows = x.len() / gate.rows_in;
        let gpu = &gate.gpu;
        let x = gpu.to_gpu(x)?;
        let mut middle = gate.multiply(&x, rows, CUBLAS_OP_T)?;
        let up = up.multiply(&x, rows, CUBLAS_OP_T)?;
        let count = u32::try_from(rows * gate.rows_out)?;
        let mut launch = gpu.stream.launch_builder(&gpu.swiglu);
        launch.arg(&mut middle).arg(&up).arg(&count);
        // SAFETY: both arrays have `count` values (the shapes are compared above), and the kernel
        // touches no index from `count` on.
        unsafe { launch.launch(LaunchConfig::for_num_elems(count))? };
        Ok(gpu.stream.clone_dtoh(&down.multiply(&middle, rows, CUBLAS_OP_T)?)?)
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

    /// The product of `multiply`, from and to the memory of the CPU.
    fn product(&self, x: &Tensor, op: cublasOperation_t) -> anyhow::Result<Tensor> {
        let (from, to) = self.widths(op);
        let (rows, width) = x.dims2()?;
        ensure!(width == from, "a row of {width} values, {from} were expected");
        let x = with_values(&x.contiguous()?, |x: &[f32]| self.gpu.to_gpu(x))??;
        let y = self.multiply(&x, rows, op)?;
        Ok(matrix(self.gpu.stream.clone_dtoh(&y)?, rows, to)?)
    }

    /// The widths of a row of x and of y.
    fn widths(&self, op: cublasOperation_t) -> (usize, usize) {
        match op {
            CUBLAS_OP_T => (self.rows_in, self.rows_out),
            _ => (self.rows_out, self.rows_in),
        }
    }

    /// y = x · Wᵀ with `CUBLAS_OP_T`, and y = x · W with `CUBLAS_OP_N`.
    ///
    /// cuBLAS reads matrices column by column. A matrix that lies in memory row by row is
    /// its own transpose to cuBLAS, which therefore computes yᵀ = op(W) · xᵀ.
    fn multiply(
        &self,
        x: &CudaSlice<f32>,
        rows: usize,
        op: cublasOperation_t,
    ) -> anyhow::Result<CudaSlice<f32>> {
        let (from, to) = self.widths(op);
        ensure!(x.len() == rows * from, "{} values are not {rows} rows of {from}", x.len());
        let mut y = self.gpu.stream.alloc_zeros::<f32>(rows * to)?;
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
        // SAFETY: W has out × in values, x has rows × from (checked above) and y has
        // rows × to. The leading dimensions are those of these matrices.
        unsafe { self.gpu.blas.lock().gemm(config, &self.values, x, &mut y)? };
        Ok(y)
    }
}

fn libraries_present() -> bool {
    // SAFETY: both only try to open a shared library by its usual name.
    unsafe { cudarc::driver::sys::is_culib_present() && cudarc::cublas::sys::is_culib_present() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::activation::Activation;
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
        let [gate, up, down] = [(7, 5), (7, 5), (5, 7)].map(|(rows, width)| host(rows, width));
        let on_gpu =
            [&gate, &up, &down].map(|m| gpu.upload(&values::<f32>(m).unwrap(), m.dims()[0]));
        let on_gpu = on_gpu.map(Result::unwrap);
        let x = host(3, 5);
        let is = Gpu::feed_forward(on_gpu.each_ref(), &values::<f32>(&x).unwrap()).unwrap();
        let gated = x.matmul(&gate.t().unwrap()).unwrap();
        let raised = x.matmul(&up.t().unwrap()).unwrap();
        let middle = Activation::Silu.gated::<f32>(&gated, &raised).unwrap();
        let should_be = values::<f32>(&middle.matmul(&down.t().unwrap()).unwrap()).unwrap();
        assert_eq!(is.len(), should_be.len());
        assert!(is.iter().zip(&should_be).all(|(a, b)| (a - b).abs() < 1e-4));
    }
}
