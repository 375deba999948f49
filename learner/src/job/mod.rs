//! One job: the lines it comes in ([`lines`]) and what is done with it ([`trainer`]).

pub mod lines;
pub mod trainer;
