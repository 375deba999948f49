//! Learning: runs the learner, checks its candidates and conducts trials.

// As in `lsp-server/src/lib.rs`: nothing is printed, and a module that starts a program says so.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::disallowed_types)]

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
