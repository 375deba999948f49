//! Learning: runs the learner, checks its candidates and conducts trials.

pub mod contribution;
pub mod history;
pub mod holdout_check;
mod install;
mod job;
pub mod preemption;
mod process;
pub mod resources;
pub mod supervisor;
pub mod trial_runner;

pub use process::LearnerProgram;

/// Asks the supervisor for an update now.
pub type LearnNow = tokio::sync::mpsc::Sender<()>;
