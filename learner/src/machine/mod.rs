//! The machine that the learner runs on: its threads, its memory and its GPU.

pub mod system;
pub mod threads;
