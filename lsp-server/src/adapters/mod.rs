//! The registry of adapters and its files.

pub mod gate_prior;
pub mod history;
pub mod import;
pub mod registry;
pub mod team;
