//! The learner turns labelled episodes into a LoRA adapter.
//!
//! From the outside to the inside:
//!
//! - [`job`] reads job lines and runs one job from its line to its files and its report;
//! - [`ppo`] is the algorithm: the batch, the loss, the optimizer;
//! - [`model`] computes log-probs and gradients of the base model with an adapter;
//! - [`kernels`] has the matrix products and row-wise functions that the model consists of;
//! - [`machine`] knows the threads, the memory and the GPU;
//! - [`limits`] has all limits, with assertions on how they relate.
//!
//! No other crate of the workspace depends on candle.

pub mod job;
pub mod kernels;
pub mod limits;
pub mod machine;
pub mod model;
pub mod ppo;
#[cfg(test)]
mod testing;
