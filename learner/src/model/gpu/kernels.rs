//! Our kernels (kernels.cu), with the sizes of what they are given checked.
//!
//! `unsafe` because a kernel reads and writes wherever its arguments point. The sizes are compared
//! here, in one place.
#![allow(unsafe_code)]

use crate::kernels::activation::Activation;
use crate::model::gpu::card::{Buffer, Gpu, Rows, View};
use anyhow::{Context, ensure};
use cudarc::driver::{LaunchConfig, PushKernelArg};

/// The threads of a block, as kernels.cu has them.
const ROW_THREADS: u32 = 256;

/// Blocks of a kernel that computes value by value. Each thread may compute several.
const BLOCKS_MAX: usize = 4096;

/// An argument of a kernel.
enum Argument {
    Address(u64),
    Count(u64),
    Size(u32),
    Number(f32),
}

fn of(view: View) -> Argument {
    Argument::Address(view.address)
}

fn size(value: usize) -> anyhow::Result<Argument> {
    Ok(Argument::Size(u32::try_from(value).context("a matrix is too large for a kernel")?))
}

/// RMSNorm with its weights in GPU memory.
pub struct GpuNorm {
    pub weight: Buffer<f32>,
    pub epsilon: f32,
}

/// The rotation of the rows of a pass.
pub struct GpuAngles {
    /// sin and cos of each pair of each row.
    pub values: Buffer<f32>,
    pub head_width: usize,
    /// The pairs are the two halves of a head, and otherwise its neighbours.
    pub halves: bool,
}

/// The softmax of the policy for each row of logits.
pub struct GpuPolicy {
    pub sharpness: Buffer<f32>,
    /// The index of each row's mask, or `u32::MAX`.
    pub mask_of: Buffer<u32>,
    /// A bit for each token of the vocabulary.
    pub masks: Buffer<u32>,
    /// The place where the tokens of each row's target begin in `members`, and where the last ones
    /// end.
    pub first_member: Buffer<u32>,
    pub members: Buffer<u32>,
}

impl Gpu {
    fn launch(
        &self,
        name: &'static str,
        blocks: usize,
        arguments: &[Argument],
    ) -> anyhow::Result<()> {
        if blocks == 0 {
            return Ok(());
        }
        let mut launch = self.stream.launch_builder(&self.kernels[name]);
        for argument in arguments {
            match argument {
                Argument::Address(value) | Argument::Count(value) => launch.arg(value),
                Argument::Size(value) => launch.arg(value),
                Argument::Number(value) => launch.arg(value),
            };
        }
        let config = LaunchConfig {
            grid_dim: (u32::try_from(blocks)?, 1, 1),
            block_dim: (ROW_THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the callers below have compared the sizes of all that the kernel touches, and
        // give the arguments that kernels.cu has.
        unsafe { launch.launch(config) }.with_context(|| format!("the kernel {name} failed"))?;
        Ok(())
    }

    /// Launches a kernel that computes value by value. Its last argument is their number.
    fn launch_each(
        &self,
        name: &'static str,
        count: usize,
        mut arguments: Vec<Argument>,
    ) -> anyhow::Result<()> {
        arguments.push(Argument::Count(count as u64));
        let blocks = count.div_ceil(ROW_THREADS as usize).min(BLOCKS_MAX);
        self.launch(name, blocks, &arguments)
    }

    /// The norms of rows, or of the heads of rows, for the width of the norm's weights.
    pub(super) fn norm(&self, norm: &GpuNorm, x: View) -> anyhow::Result<Rows> {
        let y = self.rows(x.rows, x.width)?;
        let width = norm.weight.len();
        let blocks = x.count()? / width;
        ensure!(x.width.is_multiple_of(width), "rows of {} values for a norm of {width}", x.width);
        let arguments = [
            of(y.view()),
            of(x),
            Argument::Address(norm.weight.address()),
            Argument::Number(norm.epsilon),
            size(width)?,
        ];
        self.launch("rms_norm", blocks, &arguments)?;
        Ok(y)
    }

    /// The gradient of [`Gpu::norm`], which is added to `dx` if `adds`.
    pub(super) fn norm_backward(
        &self,
        norm: &GpuNorm,
        dx: View,
        dy: View,
        x: View,
        adds: bool,
    ) -> anyhow::Result<()> {
        let width = norm.weight.len();
        let count = x.count()?;
        ensure!(dx.count()? == count && dy.count()? == count, "gradients of another size");
        ensure!(x.width.is_multiple_of(width), "rows of {} values for a norm of {width}", x.width);
        let arguments = [
            of(dx),
            of(dy),
            of(x),
            Argument::Address(norm.weight.address()),
            Argument::Number(norm.epsilon),
            size(width)?,
            Argument::Size(u32::from(adds)),
        ];
        self.launch("rms_norm_backward", count / width, &arguments)
    }

    /// Rotates all heads of all rows; back if `sign` is −1.
    pub(super) fn rotate(&self, x: View, angles: &GpuAngles, sign: f32) -> anyhow::Result<()> {
        let half = angles.head_width / 2;
        let count = x.count()? / 2;
        ensure!(
            x.width.is_multiple_of(angles.head_width)
                && angles.values.len() == x.rows * angles.head_width,
            "the angles are those of other rows"
        );
        let arguments = vec![
            of(x),
            Argument::Address(angles.values.address()),
            Argument::Number(sign),
            size(x.width / angles.head_width)?,
            size(half)?,
            Argument::Size(u32::from(angles.halves)),
        ];
        self.launch_each("rotate", count, arguments)
    }

    pub(super) fn add_to_rows(&self, y: View, vector: &Buffer<f32>) -> anyhow::Result<()> {
        ensure!(vector.len() == y.width, "a vector of another width");
        let arguments = vec![of(y), Argument::Address(vector.address()), size(y.width)?];
        self.launch_each("add_to_rows", y.count()?, arguments)
    }

    /// y += scale · x.
    pub(super) fn add_scaled(&self, y: View, x: View, scale: f64) -> anyhow::Result<()> {
        let count = y.count()?;
        ensure!(x.count()? == count, "the summands have other sizes");
        let arguments = vec![of(y), of(x), Argument::Number(scale as f32)];
        self.launch_each("add_scaled", count, arguments)
    }

    /// Multiplies each row with its factor.
    pub(super) fn scale_rows(&self, x: View, factors: &Buffer<f32>) -> anyhow::Result<()> {
        ensure!(factors.len() == x.rows, "{} factors for {} rows", factors.len(), x.rows);
        let arguments = vec![of(x), Argument::Address(factors.address()), size(x.width)?];
        self.launch_each("scale_rows", x.count()?, arguments)
    }

    /// f(gate) · up.
    pub(super) fn gated(&self, kind: Activation, gate: View, up: View) -> anyhow::Result<Rows> {
        let count = gate.count()?;
        ensure!(up.count()? == count, "gate and up have different sizes");
        let h = self.rows(gate.rows, gate.width)?;
        self.launch_each("gated", count, vec![of(h.view()), of(gate), of(up), is_gelu(kind)])?;
        Ok(h)
    }

    /// (dgate, dup).
    pub(super) fn gated_backward(
        &self,
        kind: Activation,
        dh: View,
        gate: View,
        up: View,
    ) -> anyhow::Result<(Rows, Rows)> {
        let count = gate.count()?;
        ensure!(up.count()? == count && dh.count()? == count, "gate and up have different sizes");
        let d_gate = self.rows(gate.rows, gate.width)?;
        let d_up = self.rows(gate.rows, gate.width)?;
        let arguments =
            vec![of(d_gate.view()), of(d_up.view()), of(dh), of(gate), of(up), is_gelu(kind)];
        self.launch_each("gated_backward", count, arguments)?;
        Ok((d_gate, d_up))
    }

    /// softmax(scale · scores) in place: some heads of `queries` rows each, one below the other.
    /// The first query sees `past` keys and its own.
    pub(super) fn causal_softmax(
        &self,
        scores: View,
        queries: usize,
        past: usize,
        scale: f64,
    ) -> anyhow::Result<()> {
        scores.count()?;
        ensure!(past + queries <= scores.width, "a query sees a key that is not there");
        let arguments = [
            of(scores),
            size(scores.width)?,
            size(queries)?,
            size(past)?,
            Argument::Number(scale as f32),
        ];
        self.launch("causal_softmax", scores.rows, &arguments)
    }

    /// The gradient with respect to the scores, instead of `dp`.
    pub(super) fn softmax_backward(&self, dp: View, p: View, scale: f64) -> anyhow::Result<()> {
        ensure!(dp.count()? == p.count()? && dp.width == p.width, "scores of another size");
        let arguments = [of(dp), of(p), size(dp.width)?, Argument::Number(scale as f32)];
        self.launch("softmax_backward", dp.rows, &arguments)
    }

    /// Adds up the heads of `head_width` values that share a key/value head.
    pub(super) fn sum_groups(
        &self,
        y: View,
        x: View,
        group: usize,
        head_width: usize,
    ) -> anyhow::Result<()> {
        let count = y.count()?;
        ensure!(x.count()? == count * group, "heads of another number");
        let arguments = vec![of(y), of(x), size(group)?, size(head_width)?];
        self.launch_each("sum_groups", count, arguments)
    }

    /// The rows of x at `index`. The caller has checked the indices.
    pub(super) fn gather(&self, x: View, index: &Buffer<u32>) -> anyhow::Result<Rows> {
        x.count()?;
        let y = self.rows(index.len(), x.width)?;
        let index = Argument::Address(index.address());
        let arguments = vec![of(y.view()), of(x), index, size(x.width)?];
        self.launch_each("gather_rows", y.rows * y.width, arguments)?;
        Ok(y)
    }

    /// The first rows of y become those of f16 at the first entries of `index`, as many as y has.
    /// The caller has checked the indices.
    pub(super) fn gather_half(
        &self,
        y: View,
        x: &Buffer<u16>,
        index: &Buffer<u32>,
    ) -> anyhow::Result<()> {
        ensure!(y.rows <= index.len(), "{} indices for {} rows", index.len(), y.rows);
        let arguments = vec![
            of(y),
            Argument::Address(x.address()),
            Argument::Address(index.address()),
            size(y.width)?,
        ];
        self.launch_each("gather_half_rows", y.count()?, arguments)
    }

    /// The rows of y at `index` become those of x. The caller has checked the indices.
    pub(super) fn scatter(&self, y: View, x: View, index: &Buffer<u32>) -> anyhow::Result<()> {
        ensure!(y.width == x.width && x.rows == index.len(), "rows of another size");
        y.count()?;
        let index = Argument::Address(index.address());
        self.launch_each("scatter_rows", x.count()?, vec![of(y), of(x), index, size(x.width)?])
    }

    /// y = x.
    pub(super) fn copy(&self, y: View, x: View) -> anyhow::Result<()> {
        let count = x.count()?;
        ensure!(y.count()? == count, "a copy of another size");
        let bytes = count * size_of::<f32>();
        // SAFETY: both matrices lie in memory of the GPU that has this size.
        let copied = unsafe {
            cudarc::driver::result::memcpy_dtod_async(
                y.address,
                x.address,
                bytes,
                self.stream.cu_stream(),
            )
        };
        copied.context("the GPU cannot copy")
    }

    /// The values as f16, by their bits.
    pub(super) fn to_half(&self, x: View) -> anyhow::Result<Buffer<u16>> {
        self.rounded("to_half", x)
    }

    /// The values as bf16, by their bits.
    pub(super) fn to_bfloat(&self, x: View) -> anyhow::Result<Buffer<u16>> {
        self.rounded("to_bfloat", x)
    }

    fn rounded(&self, kernel: &'static str, x: View) -> anyhow::Result<Buffer<u16>> {
        let count = x.count()?;
        let y = self.space::<u16>(count)?;
        self.launch_each(kernel, count, vec![Argument::Address(y.address()), of(x)])?;
        Ok(y)
    }

    /// The log-probs of the targets of rows of logits. Each logit is replaced by what its row of
    /// the output matrix adds to the gradient. The caller has checked the tokens.
    pub(super) fn predict(&self, logits: View, policy: &GpuPolicy) -> anyhow::Result<Buffer<f32>> {
        logits.count()?;
        let rows = logits.rows;
        ensure!(
            policy.sharpness.len() == rows
                && policy.mask_of.len() == rows
                && policy.first_member.len() == rows + 1,
            "a policy for other rows"
        );
        let logprobs = self.space::<f32>(rows)?;
        let arguments = [
            of(logits),
            Argument::Address(logprobs.address()),
            Argument::Address(policy.sharpness.address()),
            Argument::Address(policy.mask_of.address()),
            Argument::Address(policy.masks.address()),
            Argument::Address(policy.first_member.address()),
            Argument::Address(policy.members.address()),
            size(logits.width)?,
        ];
        self.launch("predict", rows, &arguments)?;
        Ok(logprobs)
    }
}

fn is_gelu(kind: Activation) -> Argument {
    Argument::Size(u32::from(kind == Activation::Gelu))
}
