//! The registry of adapters and its files.

// As in `lsp-server/src/lib.rs`: nothing is printed, and a module that starts a program says so.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::disallowed_types)]

pub mod gate_prior;
pub mod history;
pub mod import;
pub mod registry;
pub mod team;
pub mod testing;
