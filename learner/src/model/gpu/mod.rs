//! The passes of a model on an NVIDIA GPU (feature `cuda`).
//!
//! The frozen matrices lie there as bf16, and every product with one of them takes activations that
//! are rounded to bf16 and adds up in f32. All else is f32: the residual stream, the adapter, and
//! the products of attention, whose factors are rounded to the 11 bits of TF32. Only token rows,
//! the adapter, log-probs and the adapter's gradient cross the bus. The optimizer stays on the CPU.
//!
//! [`model`] has the weights, [`passes`] goes through them, and `backward` gives the gradient.
//! [`attention`] and [`head`] are parts of a pass. Below them are [`products`], which asks cuBLAS,
//! [`kernels`], which launches ours, and [`card`], which owns the memory.
//!
//! The driver and cuBLAS are loaded when the program runs. The same binary works on a machine that
//! has neither.

pub mod attention;
mod backward;
pub mod card;
pub mod head;
pub mod kernels;
pub mod model;
pub mod passes;
pub mod products;
mod ptx;

pub use card::Gpu;
pub use model::GpuModel;
