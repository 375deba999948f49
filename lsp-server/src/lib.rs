//! `hone`: completions that learn from your Tab key, on your machine.

mod protocol;
mod session;
mod learning;
mod services;
mod app;
mod privacy;
mod adapters;
mod paths;
#[cfg(test)]
mod burst;
pub mod cli;
mod client;
mod config;
#[cfg(test)]
mod config_properties;
mod forward;
#[cfg(test)]
mod load;
mod mirror;
#[cfg(test)]
mod overhead;
mod prompts;
#[cfg(test)]
mod reading_properties;
mod report;
#[cfg(test)]
mod rig;
mod serve;
#[cfg(test)]
mod tracker_properties;
mod wire;
