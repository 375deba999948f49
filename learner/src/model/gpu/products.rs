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

/// The precision of a product. The result is always f32, and so are the sums.
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

/// A factor of a product.
#[derive(Clone, Copy)]
struct Factor<'a> {
    matrix: View<'a>,
    is_transposed: bool,
    /// The values to the matrix of the next product of a batch.
    stride: usize,
}

impl Factor<'_> {
    /// The rows and the columns that it has in the product.
    fn size(self) -> [usize; 2] {
        let View { rows, width, .. } = self.matrix;
        if self.is_transposed { [width, rows] } else { [rows, width] }
    }

    fn operation(self) -> cublasOperation_t {
        if self.is_transposed { CUBLAS_OP_T } else { CUBLAS_OP_N }
    }
}

fn plain(matrix: View, stride: usize) -> Factor {
    Factor { matrix, is_transposed: false, stride }
}

fn transposed(matrix: View, stride: usize) -> Factor {
    Factor { matrix, is_transposed: true, stride }
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
        self.multiply(precision, y, [plain(x, batch.x), transposed(w, batch.w)], sum, batch)
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
        self.multiply(precision, y, [plain(x, batch.x), plain(w, batch.w)], sum, batch)
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
        self.multiply(precision, y, [transposed(x, batch.x), plain(w, batch.w)], sum, batch)
    }

    fn multiply(
        &self,
        precision: Precision,
        y: View,
        [x, w]: [Factor; 2],
        sum: Sum,
        batch: Batch,
    ) -> anyhow::Result<()> {
        let ([rows, depth], [same_depth, width]) = (x.size(), w.size());
        ensure!(
            depth == same_depth && [y.rows, y.width] == [rows, width],
            "a product of {rows}×{depth} and {same_depth}×{width} to {}×{}",
            y.rows,
            y.width
        );
        if [rows, depth, width, batch.count].contains(&0) {
            return Ok(());
        }
        let (factors, compute) = match precision {
            Precision::Single => (CUDA_R_32F, CUBLAS_COMPUTE_32F),
            Precision::Tf32 => (CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32),
            Precision::Bfloat => (CUDA_R_16BF, CUBLAS_COMPUTE_32F),
        };
        let number = |size: usize| i32::try_from(size).context("a matrix is too large for cuBLAS");
        let far = |size: usize| i64::try_from(size).context("a matrix is too large for cuBLAS");
        // SAFETY: the sizes are those of the three matrices, which were compared above, and the
        // leading dimensions are theirs. Those of a batch lie in the buffers of the views,
        // which attention.rs sees to.
        let done = unsafe {
            gemm_strided_batched_ex(
                *self.blas.handle(),
                w.operation(),
                x.operation(),
                number(width)?,
                number(rows)?,
                number(depth)?,
                (&raw const sum.scale).cast(),
                w.matrix.address as *const c_void,
                factors,
                number(w.matrix.leading)?,
                far(w.stride)?,
                x.matrix.address as *const c_void,
                factors,
                number(x.matrix.leading)?,
                far(x.stride)?,
                (&raw const sum.keep).cast(),
                y.address as *mut c_void,
                CUDA_R_32F,
                number(y.leading)?,
                far(batch.y)?,
                number(batch.count)?,
                compute,
                CUBLAS_GEMM_DFALT,
            )
        };
        done.context("cuBLAS failed")
    }
}
