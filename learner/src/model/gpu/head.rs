//! The output layer on the GPU, for those rows only that predict a target. What is computed is what
//! [`lm_head`](crate::model::lm_head) says; here the logits of some rows are in memory as a whole.

use crate::model::gpu::card::{Rows, View};
use crate::model::gpu::kernels::GpuPolicy;
use crate::model::gpu::model::GpuModel;
use crate::model::gpu::products::{Batch, Precision, Sum};
use crate::model::lm_head::Target;
use anyhow::ensure;
use std::collections::HashMap;

/// Bytes of the logits that are in memory at a time.
const LOGITS_BYTES_MAX: usize = 64 << 20;

/// The index of the mask of a row without one, as kernels.cu has it.
const NO_MASK: u32 = u32::MAX;

/// The log-probs of the targets, and how they depend on the rows.
pub(super) struct GpuPrediction {
    pub logprobs: Vec<f32>,
    /// ∂ logprob / ∂ row, if it was asked for.
    pub gradient: Option<Rows>,
}

impl GpuModel {
    /// The log-probs of the targets for normed rows.
    pub(super) fn predict(
        &self,
        x: View,
        targets: &[Target],
        want_gradient: bool,
    ) -> anyhow::Result<GpuPrediction> {
        ensure!(x.rows == targets.len(), "{} rows predict {} targets", x.rows, targets.len());
        let gpu = &self.gpu;
        let vocabulary = self.head.rows;
        let head = self.head.bits.matrix(0, vocabulary, self.head.width);
        let gradient = if want_gradient { Some(gpu.rows(x.rows, x.width)?) } else { None };
        let mut logprobs = Vec::with_capacity(targets.len());
        let at_once = (LOGITS_BYTES_MAX / (vocabulary * size_of::<f32>())).max(1);
        for first in (0..x.rows).step_by(at_once) {
            let rows = first..(first + at_once).min(x.rows);
            let policy = self.policy(&targets[rows.clone()])?;
            let rounded = gpu.to_bfloat(x.rows(rows.clone()))?;
            let logits = gpu.rows(rows.len(), vocabulary)?;
            let normed = rounded.matrix(0, rows.len(), x.width);
            let (y, sum) = (logits.view(), Sum::REPLACED);
            gpu.times_transposed(Precision::Bfloat, y, normed, head, sum, Batch::ONE)?;
            let found = gpu.predict(y, &policy)?;
            if let Some(gradient) = &gradient {
                let rounded = gpu.to_bfloat(y)?;
                let shares = rounded.matrix(0, rows.len(), vocabulary);
                let to = gradient.part(rows);
                gpu.times(Precision::Bfloat, to, shares, head, sum, Batch::ONE)?;
            }
            logprobs.extend(gpu.download(&found)?);
        }
        Ok(GpuPrediction { logprobs, gradient })
    }

    /// The softmax that each target was drawn from, in the form of the kernel.
    fn policy(&self, targets: &[Target]) -> anyhow::Result<GpuPolicy> {
        let vocabulary = self.head.rows;
        let words = vocabulary.div_ceil(u32::BITS as usize);
        let (mut masks, mut mask_of) = (vec![], vec![]);
        // Rows share their lists of tokens.
        let mut known: HashMap<*const u32, u32> = HashMap::new();
        let (mut members, mut first_member) = (vec![], vec![0]);
        for target in targets {
            mask_of.push(match &target.allowed {
                Some(allowed) => *known.entry(allowed.as_ptr()).or_insert_with(|| {
                    let first = masks.len();
                    masks.resize(first + words, 0u32);
                    for token in allowed.iter().filter(|token| (**token as usize) < vocabulary) {
                        masks[first + *token as usize / 32] |= 1 << (token % 32);
                    }
                    (first / words) as u32
                }),
                None => NO_MASK,
            });
            members.extend(target.ids(0, vocabulary).map(|id| id as u32));
            ensure!(
                members.len() > *first_member.last().unwrap_or(&0) as usize,
                "a target is outside the vocabulary"
            );
            first_member.push(members.len() as u32);
        }
        if masks.is_empty() {
            masks.push(0);
        }
        let sharpness: Vec<f32> =
            targets.iter().map(|target| (1.0 / target.temperature) as f32).collect();
        Ok(GpuPolicy {
            sharpness: self.gpu.upload(&sharpness)?,
            mask_of: self.gpu.upload(&mask_of)?,
            masks: self.gpu.upload(&masks)?,
            first_member: self.gpu.upload(&first_member)?,
            members: self.gpu.upload(&members)?,
        })
    }
}
