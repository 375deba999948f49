//! Matrix products, which cuBLAS computes.
//!
//! Matrices lie in memory row by row, and cuBLAS reads them column by column: what it gets is the
//! transpose of each matrix, and what it writes is the transpose of the result. So it is asked for
//! yᵀ = op(W)·xᵀ where y = x·op(W)ᵀ is meant.
//!
//! `unsafe` because cuBLAS reads and writes wherever its arguments point. The sizes are compared
//! here, in one place.
#![allow(unsafe_code)]

use crate::model::gpu::card::{Gpu, View};
use anyhow::{Context, ensure};
use cudarc::cublas::result::gemm_strided_batched_ex;
use cudarc::cublas::sys::cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
use cudarc::cublas::sys::cublasGemmAlgo_t::CUBLAS_GEMM_DFALT;
use cudarc::cublas::sys::cublasOperation_t::{self, CUBLAS_OP_N, CUBLAS_OP_T};
use cudarc::cublas::sys::cudaDataType_t::{CUDA_R_16BF, CUDA_R_32F};
use std::ffi::c_void;

/// How exactly a product is computed. The result is always f32, and so are the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Factors of f32.
    Single,
    /// Factors of f32, which are rounded to TF32.
    Tf32,
    /// Factors of bf16.
    Bfloat,
}

/// y = scale · product + keep · y.
#[derive(Debug, Clone, Copy)]
pub struct Sum {
    pub scale: f32,
    pub keep: f32,
}

impl Sum {
    pub const REPLACED: Sum = Sum { scale: 1.0, keep: 0.0 };
    pub const ADDED: Sum = Sum { scale: 1.0, keep: 1.0 };

    pub fn scaled(scale: f64) -> Sum {
        Sum { scale: scale as f32, keep: 0.0 }
    }

    pub fn adding(adds: bool) -> Sum {
        if adds { Sum::ADDED } else { Sum::REPLACED }
    }
}

/// Several products of the same size. The matrices of the next one begin so many values behind
/// those of the last.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    pub count: usize,
    pub y: usize,
    pub x: usize,
    pub w: usize,
}

impl Batch {
    pub const ONE: Batch = Batch { count: 1, y: 0, x: 0, w: 0 };
}

/// What cuBLAS is asked for, in its own terms.
struct Asked<'a> {
    transposed: [cublasOperation_t; 2],
    sizes: [usize; 3],
    a: (View<'a>, usize),
    b: (View<'a>, usize),
    y: (View<'a>, usize),
    count: usize,
}

impl Gpu {
    /// y = x · Wᵀ: `rows × in` and `out × in` to `rows × out`.
    pub(super) fn times_transposed(
        &self,
        precision: Precision,
        y: View,
        x: View,
        w: View,
        sum: Sum,
        batch: Batch,
    ) -> anyhow::Result<()> {
        ensure!(
            x.width == w.width && y.rows == x.rows && y.width == w.rows,
            "a product of {}×{} and ({}×{})ᵀ to {}×{}",
            x.rows,
            x.width,
            w.rows,
            w.width,
            y.rows,
            y.width
        );
        let asked = Asked {
            transposed: [CUBLAS_OP_T, CUBLAS_OP_N],
            sizes: [y.width, y.rows, x.width],
            a: (w, batch.w),
            b: (x, batch.x),
            y: (y, batch.y),
            count: batch.count,
        };
        self.multiply(precision, asked, sum)
    }

    /// y = x · W: `rows × out` and `out × in` to `rows × in`.
    pub(super) fn times(
        &self,
        precision: Precision,
        y: View,
        x: View,
        w: View,
        sum: Sum,
        batch: Batch,
    ) -> anyhow::Result<()> {
        ensure!(
            x.width == w.rows && y.rows == x.rows && y.width == w.width,
            "a product of {}×{} and {}×{} to {}×{}",
            x.rows,
            x.width,
            w.rows,
            w.width,
            y.rows,
            y.width
        );
        let asked = Asked {
            transposed: [CUBLAS_OP_N, CUBLAS_OP_N],
            sizes: [y.width, y.rows, x.width],
            a: (w, batch.w),
            b: (x, batch.x),
            y: (y, batch.y),
            count: batch.count,
        };
        self.multiply(precision, asked, sum)
    }

    /// y = xᵀ · W: `rows × p` and `rows × q` to `p × q`.
    pub(super) fn transposed_times(
        &self,
        precision: Precision,
        y: View,
        x: View,
        w: View,
        sum: Sum,
        batch: Batch,
    ) -> anyhow::Result<()> {
        ensure!(
            x.rows == w.rows && y.rows == x.width && y.width == w.width,
            "a product of ({}×{})ᵀ and {}×{} to {}×{}",
            x.rows,
            x.width,
            w.rows,
            w.width,
            y.rows,
            y.width
        );
        let asked = Asked {
            transposed: [CUBLAS_OP_N, CUBLAS_OP_T],
            sizes: [y.width, y.rows, x.rows],
            a: (w, batch.w),
            b: (x, batch.x),
            y: (y, batch.y),
            count: batch.count,
        };
        self.multiply(precision, asked, sum)
    }

    fn multiply(&self, precision: Precision, asked: Asked, sum: Sum) -> anyhow::Result<()> {
        let Asked { transposed, sizes, a, b, y, count } = asked;
        if sizes.contains(&0) || count == 0 {
            return Ok(());
        }
        let (factors, compute) = match precision {
            Precision::Single => (CUDA_R_32F, CUBLAS_COMPUTE_32F),
            Precision::Tf32 => (CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32),
            Precision::Bfloat => (CUDA_R_16BF, CUBLAS_COMPUTE_32F),
        };
        let number = |size: usize| i32::try_from(size).context("a matrix is too large for cuBLAS");
        let far = |size: usize| i64::try_from(size).context("a matrix is too large for cuBLAS");
        let [m, n, k] = [number(sizes[0])?, number(sizes[1])?, number(sizes[2])?];
        // SAFETY: the sizes fit to those of the three matrices, which the callers have compared,
        // and the leading dimensions are theirs. Those of a batch lie in the buffers of the views,
        // which attention.rs sees to.
        let done = unsafe {
            gemm_strided_batched_ex(
                *self.blas.handle(),
                transposed[0],
                transposed[1],
                m,
                n,
                k,
                (&raw const sum.scale).cast(),
                a.0.address as *const c_void,
                factors,
                number(a.0.leading)?,
                far(a.1)?,
                b.0.address as *const c_void,
                factors,
                number(b.0.leading)?,
                far(b.1)?,
                (&raw const sum.keep).cast(),
                y.0.address as *mut c_void,
                CUDA_R_32F,
                number(y.0.leading)?,
                far(y.1)?,
                number(count)?,
                compute,
                CUBLAS_GEMM_DFALT,
            )
        };
        done.context("cuBLAS failed")
    }
}
