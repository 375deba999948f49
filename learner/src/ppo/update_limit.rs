//! The limit on how much one job changes the adapter.

use crate::kernels::{matrix, values, with_values};
use crate::model::lora::Lora;
use crate::ppo::trained_part::TrainedPart;

/// Keeps ‖θ − θ_parent‖ ≤ `max_ratio` · ‖θ_parent‖ during the whole job. The norm is that of the
/// private part, or of the whole adapter while the shared part is trained.
pub(super) struct UpdateLimit {
    parent: Vec<Vec<f32>>,
    /// The squares of the parent, if they are what is trained.
    cores: Vec<Vec<f32>>,
    norm: f64,
    max_ratio: f64,
}

impl UpdateLimit {
    pub(super) fn new(
        lora: &Lora,
        part: &TrainedPart,
        max_ratio: f32,
    ) -> candle_core::Result<UpdateLimit> {
        let parent: Vec<Vec<f32>> =
            lora.tensors().map(values).collect::<candle_core::Result<_>>()?;
        let mut squares = 0.0;
        for (index, (values, tensor)) in parent.iter().zip(lora.tensors()).enumerate() {
            let (_, width) = tensor.dims2()?;
            let own = values.iter().enumerate().filter(|(at, _)| {
                matches!(part, TrainedPart::Shared(_)) || !lora.is_shared(index, *at, width)
            });
            squares += own.map(|(_, value)| f64::from(*value).powi(2)).sum::<f64>();
        }
        let cores = match part {
            TrainedPart::Full => Vec::new(),
            TrainedPart::Square(square) | TrainedPart::Shared(square) => square.cores().to_vec(),
        };
        Ok(UpdateLimit { parent, cores, norm: squares.sqrt(), max_ratio: f64::from(max_ratio) })
    }

    /// ‖θ − θ_parent‖ / ‖θ_parent‖.
    pub(super) fn ratio(&self, lora: &Lora) -> candle_core::Result<f32> {
        let mut squares = 0.0;
        for (tensor, parent) in lora.tensors().zip(&self.parent) {
            squares += with_values(tensor, |values: &[f32]| {
                let moved = |(new, old): (&f32, &f32)| (f64::from(*new) - f64::from(*old)).powi(2);
                values.iter().zip(parent).map(moved).sum::<f64>()
            })?;
        }
        Ok((squares.sqrt() / self.norm.max(f64::MIN_POSITIVE)) as f32)
    }

    /// Scales the change back to the limit if a step went past it.
    pub(super) fn apply(&self, lora: &mut Lora, part: &mut TrainedPart) -> candle_core::Result<()> {
        let ratio = f64::from(self.ratio(lora)?);
        if ratio <= self.max_ratio {
            return Ok(());
        }
        let keep = (self.max_ratio / ratio) as f32;
        if let TrainedPart::Square(square) | TrainedPart::Shared(square) = part {
            // The rows of A are linear in the squares.
            for (core, parent) in square.cores_mut().iter_mut().zip(&self.cores) {
                scale_back(core, parent, keep);
            }
            return square.write_into(lora);
        }
        let mut scaled = Vec::with_capacity(self.parent.len());
        for (tensor, parent) in lora.tensors().zip(&self.parent) {
            let (rows, width) = tensor.dims2()?;
            let mut changed = values::<f32>(tensor)?;
            scale_back(&mut changed, parent, keep);
            scaled.push(matrix(changed, rows, width)?);
        }
        lora.replace(scaled);
        Ok(())
    }
}

fn scale_back(changed: &mut [f32], parent: &[f32], keep: f32) {
    for (value, parent) in changed.iter_mut().zip(parent) {
        *value = parent + (*value - parent) * keep;
    }
}
