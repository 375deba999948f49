//! `hone`: completions that learn from your Tab key, on your machine.

mod daemon;
mod protocol;
mod session;
mod learning;
mod services;
mod app;
mod privacy;
mod adapters;
mod paths;
pub mod cli;
mod config;
#[cfg(test)]
mod config_properties;
mod prompts;
#[cfg(test)]
mod reading_properties;
mod report;
#[cfg(test)]
mod tracker_properties;
#[cfg(test)]
mod testing;
