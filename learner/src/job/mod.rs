//! Jobs: how they arrive and are answered ([`lines`]), and how one is run ([`trainer`]).

pub mod lines;
pub mod trainer;
