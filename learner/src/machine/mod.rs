//! The machine that the learner runs on: its threads, its memory and its GPU.

pub mod memory;
pub mod platform;
pub mod threads;
