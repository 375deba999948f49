//! The machine that the learner runs on: its threads, its memory and its GPU.

#[cfg(feature = "cuda")]
pub mod gpu;
pub mod system;
pub mod threads;
