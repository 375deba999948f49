//! Jobs: how they arrive and are answered ([`lines`]), and how one is run ([`trainer`]).

pub mod lines;
mod loaded_base;
mod starting_adapter;
pub mod trainer;
