//! The server, its daemon and its command line.

mod adapters;
mod addresses;
mod app;
pub mod cli;
pub mod config;
pub mod daemon;
mod learning;
mod paths;
mod privacy;
pub mod protocol;
mod report;
mod services;
mod session;
#[cfg(test)]
mod testing;
mod workspace;
