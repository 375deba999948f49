//! The numbers of an adapter that an update changes: the user's own part, in one of two forms, or
//! what a team shares.

use crate::model::lora::{Lora, LoraGradient};
use crate::ppo::adam::{Adam, GradientSum};
use crate::ppo::square::Square;
use candle_core::Result;
use feedback::job::Hyper;
use models::team::frame::Frame;

pub enum TrainedPart {
    /// A and B of every map, but for the ranks that a team shares.
    Full,
    /// The square of every map in the user's own ranks.
    Square(Square),
    /// The square of every map in the ranks that a team shares.
    Shared(Square),
}

impl TrainedPart {
    /// The user's own part of an adapter, in the form that it was learned in.
    ///
    /// # Errors
    /// The tensors cannot be read.
    pub fn own(frame: &Frame, lora: &Lora) -> Result<TrainedPart> {
        Ok(Square::own(frame, lora)?.map_or(TrainedPart::Full, TrainedPart::Square))
    }

    /// The squares, if they are what is trained.
    pub fn square(&self) -> Option<&Square> {
        match self {
            TrainedPart::Full => None,
            TrainedPart::Square(square) | TrainedPart::Shared(square) => Some(square),
        }
    }

    /// Returns how many values each vector has that the optimizer steps.
    pub fn lengths(&self, lora: &Lora) -> Vec<usize> {
        match self.square() {
            None => lora.tensors().map(candle_core::Tensor::elem_count).collect(),
            Some(square) => square.lengths().collect(),
        }
    }

    /// An optimizer without momentum for this part of the adapter.
    pub fn optimizer(&self, lora: &Lora) -> Adam {
        Adam::with_lengths(self.lengths(lora).into_iter())
    }

    /// Adds the gradient of the adapter's `pair`-th pair in a microbatch to that of a minibatch.
    pub fn add(
        &self,
        sum: &mut GradientSum,
        pair: usize,
        gradient: &LoraGradient,
        lora: &Lora,
    ) -> Result<()> {
        match self {
            TrainedPart::Full => sum.add(pair, gradient),
            TrainedPart::Square(square) | TrainedPart::Shared(square) => {
                square.add(sum, pair, gradient, lora)
            }
        }
    }

    /// Leaves of the gradient of a minibatch only what belongs to the numbers that are trained.
    pub fn restrict(&self, sum: &mut GradientSum, lora: &Lora) -> Result<()> {
        if self.square().is_some() || lora.shared_rank == 0 {
            return Ok(());
        }
        for (index, (tensor, gradient)) in lora.tensors().zip(sum.vectors_mut()).enumerate() {
            let (_, width) = tensor.dims2()?;
            for (at, value) in gradient.iter_mut().enumerate() {
                if lora.is_shared(index, at, width) {
                    *value = 0.0;
                }
            }
        }
        Ok(())
    }

    /// Takes one optimizer step. Returns the learning rate of the step.
    pub fn step(
        &mut self,
        optimizer: &mut Adam,
        lora: &mut Lora,
        gradient: &GradientSum,
        hyper: &Hyper,
    ) -> Result<f32> {
        match self {
            TrainedPart::Full => optimizer.step(lora, gradient, hyper),
            TrainedPart::Square(square) | TrainedPart::Shared(square) => {
                let rate = optimizer.step_values(square.cores_mut(), gradient, hyper);
                square.write_into(lora)?;
                Ok(rate)
            }
        }
    }
}
