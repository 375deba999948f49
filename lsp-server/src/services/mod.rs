//! One owner for each piece of state that the rooms above share.

pub mod checkpoint;
pub mod derived_state;
pub mod log_recovery;
