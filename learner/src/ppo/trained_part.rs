//! Which numbers of an adapter an update changes: the private part, or what a team shares.
//!
//! The shared part of a map is `GAIN`·B·C·A with fixed A and B (`models::team`). In the adapter
//! its rows of A are `GAIN`/scale·C·A, so the gradient of C is `GAIN`/scale·dA·Aᵀ.

use crate::kernels::{dot, matrix, values, with_values};
use crate::model::lora::Lora;
use crate::ppo::adamw::{AdamW, GradientSum};
use candle_core::Result;
use feedback::job::Hyper;
use models::team::compose::{GAIN, shared_a};
use models::team::core::Core;
use models::team::frame::{CORE_NUMBERS, Frame, RANK};

pub enum TrainedPart {
    /// Everything but the ranks that a team shares, if there are any.
    Private,
    /// C of every map, and nothing else.
    Shared(SharedPart),
}

/// C of every map, and the fixed matrix that it is multiplied with.
pub struct SharedPart {
    /// A of each map, `RANK` × in.
    fixed_a: Vec<Vec<f32>>,
    /// C of each map.
    cores: Vec<Vec<f32>>,
}

impl SharedPart {
    /// The shared part of `lora`, which must have been composed with this `core`.
    pub fn of(frame: &Frame, core: &Core, lora: &Lora) -> anyhow::Result<SharedPart> {
        let maps = 0..frame.maps.len();
        let part = SharedPart {
            fixed_a: frame.maps.iter().map(|map| map.a()).collect(),
            cores: maps.map(|map| core.values(map)).collect(),
        };
        let mut pairs = lora.layers.iter().flatten();
        let is_composed = lora.shared_rank == RANK
            && part.cores.len() == lora.layers.iter().map(Vec::len).sum::<usize>()
            && (0..part.cores.len()).all(|map| {
                let own = pairs.next().map(|pair| values::<f32>(&pair.a));
                own.is_some_and(|own| own.is_ok_and(|own| own.starts_with(&part.rows(map, lora))))
            });
        anyhow::ensure!(is_composed, "the parent adapter was not made with this shared part");
        Ok(part)
    }

    /// An optimizer without momentum for all C.
    pub fn optimizer(&self) -> AdamW {
        AdamW::with_lengths(self.cores.iter().map(Vec::len))
    }

    /// The values of all C, one map after the other.
    pub fn values(&self) -> Vec<f32> {
        self.cores.concat()
    }

    /// The rows of A that the shared part has in this adapter.
    fn rows(&self, map: usize, lora: &Lora) -> Vec<f32> {
        let rows_in = self.fixed_a[map].len() / RANK;
        shared_a(&self.fixed_a[map], &self.cores[map], rows_in, lora.scale() as f32)
    }

    /// Turns the gradient of the adapter's tensors into that of every C.
    fn project(&self, gradient: &mut GradientSum, lora: &Lora) {
        let factor = GAIN / lora.scale() as f32;
        let of_a = gradient.tensors_mut().iter().step_by(2);
        let of_cores = of_a.zip(&self.fixed_a).map(|(d_a, a)| {
            let rows_in = a.len() / RANK;
            let mut d_core = Vec::with_capacity(CORE_NUMBERS);
            for d_row in d_a.chunks(rows_in).take(RANK) {
                d_core.extend(a.chunks(rows_in).map(|row| factor * dot(d_row, row)));
            }
            d_core
        });
        let of_cores: Vec<Vec<f32>> = of_cores.collect();
        *gradient.tensors_mut() = of_cores;
    }

    fn write_into(&self, lora: &mut Lora) -> Result<()> {
        let rows: Vec<Vec<f32>> = (0..self.cores.len()).map(|map| self.rows(map, lora)).collect();
        for (pair, rows) in lora.layers.iter_mut().flatten().zip(rows) {
            let (rank, rows_in) = pair.a.dims2()?;
            let mut a = values::<f32>(&pair.a)?;
            a[..rows.len()].copy_from_slice(&rows);
            pair.a = matrix(a, rank, rows_in)?;
        }
        Ok(())
    }
}

impl TrainedPart {
    /// Leaves of the gradient only what belongs to the numbers that are trained.
    pub fn restrict(&self, gradient: &mut GradientSum, lora: &Lora) -> Result<()> {
        match self {
            TrainedPart::Private if lora.shared_rank == 0 => {}
            TrainedPart::Private => {
                let tensors = lora.tensors().zip(gradient.tensors_mut());
                for (index, (tensor, gradient)) in tensors.enumerate() {
                    let (_, width) = tensor.dims2()?;
                    for (at, value) in gradient.iter_mut().enumerate() {
                        if lora.is_shared(index, at, width) {
                            *value = 0.0;
                        }
                    }
                }
            }
            TrainedPart::Shared(part) => part.project(gradient, lora),
        }
        Ok(())
    }

    /// Takes one optimizer step. Returns the learning rate of the step.
    pub fn step(
        &mut self,
        optimizer: &mut AdamW,
        lora: &mut Lora,
        gradient: &GradientSum,
        hyper: &Hyper,
    ) -> Result<f32> {
        match self {
            TrainedPart::Private if lora.shared_rank == 0 => optimizer.step(lora, gradient, hyper),
            TrainedPart::Private => {
                let before = lora.clone();
                let rate = optimizer.step(lora, gradient, hyper)?;
                keep_shared(lora, &before)?;
                Ok(rate)
            }
            TrainedPart::Shared(part) => {
                let rate = optimizer.step_values(&mut part.cores, gradient, hyper);
                part.write_into(lora)?;
                Ok(rate)
            }
        }
    }
}

/// Gives the shared ranks the values of `before`. Weight decay changes values without a gradient.
fn keep_shared(lora: &mut Lora, before: &Lora) -> Result<()> {
    let mut kept = Vec::with_capacity(lora.tensors().count());
    for (index, (tensor, before)) in lora.tensors().zip(before.tensors()).enumerate() {
        let (rows, width) = tensor.dims2()?;
        let mut now = values::<f32>(tensor)?;
        with_values(before, |before: &[f32]| {
            for (at, (now, before)) in now.iter_mut().zip(before).enumerate() {
                if lora.is_shared(index, at, width) {
                    *now = *before;
                }
            }
        })?;
        kept.push(matrix(now, rows, width)?);
    }
    lora.replace(kept);
    Ok(())
}
