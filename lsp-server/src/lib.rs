//! `hone`: completions that learn from your Tab key, on your machine.

mod learning;
mod services;
mod app;
mod privacy;
mod adapters;
mod paths;
mod aftermath;
mod answered;
mod asked;
#[cfg(test)]
mod burst;
pub mod cli;
mod client;
mod config;
#[cfg(test)]
mod config_properties;
mod events;
mod forward;
mod framing;
mod history;
mod imports;
#[cfg(test)]
mod load;
mod lsp;
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
mod session;
mod status;
mod tracker;
#[cfg(test)]
mod tracker_properties;
mod unshown;
mod wire;
