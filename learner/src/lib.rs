//! hone-learner: labelled episodes in, a LoRA adapter out.
//!
//! From the border inwards: [`job`] (its lines, and one job from its line to its files),
//! [`ppo`] (the algorithm, its batch, its optimizer), [`model`] (forward and backward through
//! the base model), [`kernels`] (the products and row-wise functions below it) and
//! [`machine`] (what of the machine is taken).
//!
//! Only this crate knows candle.

pub mod job;
pub mod kernels;
pub mod limits;
pub mod machine;
pub mod model;
pub mod ppo;
#[cfg(test)]
mod testing;
