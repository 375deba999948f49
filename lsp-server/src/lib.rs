//! The server, its daemon and its command line.

// `println!` panics when nobody reads. The command line prints by `cli/output.rs`, and the server
// logs.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
// Only a few files may start a program: clippy.toml.
#![warn(clippy::disallowed_types)]

mod app;
pub mod cli;
pub mod daemon;
pub mod protocol;
#[cfg(test)]
#[allow(clippy::disallowed_types, reason = "the processes are the tests' own")]
mod testing;
