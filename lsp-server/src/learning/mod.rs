//! Runs the learner, checks its candidates and conducts trials.

pub mod holdout_check;
pub mod preemption;
mod resources;
pub mod supervisor;
