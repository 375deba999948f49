//! The limit on how much one job changes the adapter.

use crate::kernels::{matrix, values, with_values};
use crate::model::lora::Lora;
use crate::ppo::square::Square;
use crate::ppo::trained_part::TrainedPart;
use candle_core::{Result, Tensor};

/// Keeps ‖θ − θ_parent‖ ≤ `max_ratio` · ‖θ_parent‖ during the whole job. The norm is that of the
/// private part, or of the whole adapter while the shared part is trained.
pub(super) struct UpdateLimit {
    /// The parent's tensors, which share memory with the adapter until its first step; none if
    /// squares are trained.
    tensors: Vec<Tensor>,
    /// The parent's squares, if they are what is trained.
    cores: Vec<Vec<f32>>,
    norm: f64,
    max_ratio: f64,
}

impl UpdateLimit {
    pub(super) fn new(lora: &Lora, part: &TrainedPart, max_ratio: f32) -> Result<UpdateLimit> {
        let mut squares = 0.0;
        for (index, tensor) in lora.tensors().enumerate() {
            let (_, width) = tensor.dims2()?;
            squares += with_values(tensor, |values: &[f32]| {
                let own = values.iter().enumerate().filter(|(at, _)| {
                    matches!(part, TrainedPart::Shared(_)) || !lora.is_shared(index, *at, width)
                });
                own.map(|(_, value)| f64::from(*value).powi(2)).sum::<f64>()
            })?;
        }
        let (tensors, cores) = match part.square() {
            Some(square) => (Vec::new(), square.cores().to_vec()),
            None => (lora.tensors().cloned().collect(), Vec::new()),
        };
        Ok(UpdateLimit { tensors, cores, norm: squares.sqrt(), max_ratio: f64::from(max_ratio) })
    }

    /// ‖θ − θ_parent‖ / ‖θ_parent‖.
    pub(super) fn ratio(&self, lora: &Lora, part: &TrainedPart) -> Result<f32> {
        let change = match part.square() {
            Some(square) => square.change_of_rows(&self.cores, lora),
            None => self.change(lora)?,
        };
        Ok((change / self.norm.max(f64::MIN_POSITIVE)) as f32)
    }

    /// The L2 norm of the change of all tensors.
    fn change(&self, lora: &Lora) -> Result<f64> {
        let mut squares = 0.0;
        for (tensor, parent) in lora.tensors().zip(&self.tensors) {
            squares += with_values(tensor, |values: &[f32]| {
                with_values(parent, |parent: &[f32]| {
                    let moved =
                        |(new, old): (&f32, &f32)| (f64::from(*new) - f64::from(*old)).powi(2);
                    values.iter().zip(parent).map(moved).sum::<f64>()
                })
            })??;
        }
        Ok(squares.sqrt())
    }

    /// Scales the change back to the limit if a step went past it.
    pub(super) fn apply(&self, lora: &mut Lora, part: &mut TrainedPart) -> Result<()> {
        let ratio = f64::from(self.ratio(lora, part)?);
        if ratio <= self.max_ratio {
            return Ok(());
        }
        let keep = (self.max_ratio / ratio) as f32;
        match part {
            TrainedPart::Full => self.scale_back_tensors(lora, keep),
            TrainedPart::Square(square) | TrainedPart::Shared(square) => {
                self.scale_back_squares(square, lora, keep)
            }
        }
    }

    fn scale_back_tensors(&self, lora: &mut Lora, keep: f32) -> Result<()> {
        for (tensor, parent) in lora.tensors_mut().zip(&self.tensors) {
            let (rows, width) = tensor.dims2()?;
            let mut changed = values::<f32>(tensor)?;
            with_values(parent, |parent: &[f32]| scale_back(&mut changed, parent, keep))?;
            *tensor = matrix(changed, rows, width)?;
        }
        Ok(())
    }

    fn scale_back_squares(&self, square: &mut Square, lora: &mut Lora, keep: f32) -> Result<()> {
        for (core, parent) in square.cores_mut().iter_mut().zip(&self.cores) {
            scale_back(core, parent, keep);
        }
        square.write_into(lora)
    }
}

fn scale_back(changed: &mut [f32], parent: &[f32], keep: f32) {
    for (value, parent) in changed.iter_mut().zip(parent) {
        *value = parent + (*value - parent) * keep;
    }
}
