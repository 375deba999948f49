//! The GPU itself: its memory, and what lies in it.
//!
//! `unsafe` because new memory holds anything. All that is allocated here is written as a whole
//! before it is read.
#![allow(unsafe_code)]

use crate::model::gpu::ptx::{Kernels, load_kernels};
use anyhow::{Context, bail, ensure};
use cudarc::cublas::CudaBlas;
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, DevicePtr, DeviceRepr, HostSlice, ValidAsZeroBits,
};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that are held at a time by [`Gpu::hold_all_but`].
const HELD_BYTES: usize = 256 << 20;

/// The driver hands out memory in pages of this size.
const PAGE_BYTES: usize = 2 << 20;

/// The first generation of NVIDIA's GPUs that multiplies bf16 (Ampere).
const FIRST_WITH_BF16: (i32, i32) = (8, 0);

/// The first GPU of the machine.
pub struct Gpu {
    pub(super) stream: Arc<CudaStream>,
    pub(super) blas: CudaBlas,
    pub(super) kernels: Kernels,
}

/// Values in GPU memory.
pub struct Buffer<T> {
    values: CudaSlice<T>,
    address: u64,
}

/// A `rows × width` matrix of f32 in GPU memory.
pub struct Rows {
    buffer: Buffer<f32>,
    pub rows: usize,
    pub width: usize,
}

/// A matrix that lies in a buffer: the whole one, some of its rows, or some of its columns. What
/// the GPU does with it happens in the order of the calls.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub(super) address: u64,
    pub(super) rows: usize,
    pub(super) width: usize,
    /// The values between the beginnings of two rows.
    pub(super) leading: usize,
    buffer: PhantomData<&'a ()>,
}

impl Gpu {
    pub fn open() -> anyhow::Result<Gpu> {
        if !libraries_present() {
            bail!("no CUDA driver or no cuBLAS on this machine");
        }
        let context = CudaContext::new(0).context("cannot open the first GPU")?;
        let capability = context.compute_capability().context("cannot ask what the GPU can")?;
        ensure!(
            capability >= FIRST_WITH_BF16,
            "the GPU has compute capability {}.{}, and bf16 needs 8.0",
            capability.0,
            capability.1
        );
        // SAFETY: all work goes through the one stream below, which keeps its order.
        unsafe { context.disable_event_tracking() };
        let stream = context.default_stream();
        let blas = CudaBlas::new(stream.clone()).context("cannot start cuBLAS")?;
        let kernels = load_kernels(&context)?;
        Ok(Gpu { stream, blas, kernels })
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
            if bytes < PAGE_BYTES {
                return Ok(held);
            }
            held.push(self.stream.alloc_zeros::<u8>(bytes).context("cannot fill the GPU")?);
        }
    }

    /// Makes the GPU the one of this thread, which may be any of the pool.
    pub fn enter(&self) -> anyhow::Result<()> {
        self.stream.context().bind_to_thread().context("the GPU cannot be reached")
    }

    /// Memory for `count` values, whose content is not defined.
    pub(super) fn space<T: DeviceRepr>(&self, count: usize) -> anyhow::Result<Buffer<T>> {
        // SAFETY: the callers, all of this folder, write the values before they read them.
        let values = unsafe { self.stream.alloc::<T>(count.max(1)) };
        self.buffer(values.with_context(|| full::<T>(count))?)
    }

    pub(super) fn zeros<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        count: usize,
    ) -> anyhow::Result<Buffer<T>> {
        let values = self.stream.alloc_zeros::<T>(count.max(1));
        self.buffer(values.with_context(|| full::<T>(count))?)
    }

    /// Copies values to the GPU.
    pub(super) fn upload<T: DeviceRepr>(
        &self,
        values: &(impl HostSlice<T> + ?Sized),
    ) -> anyhow::Result<Buffer<T>> {
        let count = values.len();
        self.buffer(self.stream.clone_htod(values).with_context(|| full::<T>(count))?)
    }

    /// Copies values from the GPU, and waits for all that was asked for before.
    pub(super) fn download<T: DeviceRepr>(&self, buffer: &Buffer<T>) -> anyhow::Result<Vec<T>> {
        self.stream.clone_dtoh(&buffer.values).context("cannot read from the GPU")
    }

    /// Waits for all that was asked for before.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        self.stream.synchronize().context("the GPU failed")
    }

    fn buffer<T>(&self, values: CudaSlice<T>) -> anyhow::Result<Buffer<T>> {
        let address = values.device_ptr(&self.stream).0;
        Ok(Buffer { values, address })
    }

    pub(super) fn rows(&self, rows: usize, width: usize) -> anyhow::Result<Rows> {
        Ok(Rows { buffer: self.space(rows * width)?, rows, width })
    }

    pub(super) fn zero_rows(&self, rows: usize, width: usize) -> anyhow::Result<Rows> {
        Ok(Rows { buffer: self.zeros(rows * width)?, rows, width })
    }

    pub(super) fn upload_rows(&self, values: &[f32], width: usize) -> anyhow::Result<Rows> {
        Ok(Rows { buffer: self.upload(values)?, rows: values.len() / width, width })
    }

    pub(super) fn copy_of(&self, rows: &Rows) -> anyhow::Result<Rows> {
        let copy = self.rows(rows.rows, rows.width)?;
        self.copy(copy.view(), rows.view())?;
        Ok(copy)
    }
}

/// Returns what went wrong when memory for values cannot be had.
fn full<T>(count: usize) -> String {
    format!("the GPU has no {} MiB free", (count * size_of::<T>()) >> 20)
}

fn libraries_present() -> bool {
    // SAFETY: both only try to open a shared library by its usual name.
    unsafe { cudarc::driver::sys::is_culib_present() && cudarc::cublas::sys::is_culib_present() }
}

impl<T> Buffer<T> {
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// `rows × width` values from the value `from` on.
    pub(super) fn matrix(&self, from: usize, rows: usize, width: usize) -> View<'_> {
        debug_assert!(from + rows * width <= self.values.len());
        let address = self.address + (from * size_of::<T>()) as u64;
        View { address, rows, width, leading: width, buffer: PhantomData }
    }
}

impl Rows {
    pub(super) fn view(&self) -> View<'_> {
        self.buffer.matrix(0, self.rows, self.width)
    }

    /// Some of the rows.
    pub(super) fn part(&self, rows: Range<usize>) -> View<'_> {
        self.buffer.matrix(rows.start * self.width, rows.len(), self.width)
    }
}

impl View<'_> {
    /// Some of the columns of a matrix of f32.
    pub(super) fn columns(self, columns: Range<usize>) -> Self {
        debug_assert!(columns.end <= self.width);
        let address = self.address + (columns.start * size_of::<f32>()) as u64;
        View { address, width: columns.len(), ..self }
    }

    /// Some of the rows of a matrix of f32.
    pub(super) fn rows(self, rows: Range<usize>) -> Self {
        debug_assert!(rows.end <= self.rows);
        let address = self.address + (rows.start * self.leading * size_of::<f32>()) as u64;
        View { address, rows: rows.len(), ..self }
    }

    /// The number of values, if they lie one after the other.
    pub(super) fn count(self) -> anyhow::Result<usize> {
        ensure!(self.leading == self.width, "columns of a matrix where a whole one was expected");
        Ok(self.rows * self.width)
    }
}
