//! What the server asks of the machine: the operating system, where files lie and the locks between
//! processes, work on other threads, and the addresses of documents.

// As in `lsp-server/src/lib.rs`: nothing is printed, and a module that starts a program says so.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::disallowed_types)]

pub mod addresses;
pub mod paths;
pub mod platform;
pub mod tasks;
