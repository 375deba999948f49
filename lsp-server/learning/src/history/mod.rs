//! Learning from the history of a repository, outside the daemon. What its authors wrote is learned
//! by imitation ([`rounds`]), and what was learned is held against newer texts ([`check`]).

pub mod check;
pub mod draw;
pub mod rounds;
pub mod texts;
