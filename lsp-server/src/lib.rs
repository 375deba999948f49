//! `hone`: completions that learn from your Tab key, on your machine.

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
mod leash;
#[cfg(test)]
mod load;
mod lsp;
mod machine;
mod mirror;
#[cfg(test)]
mod overhead;
mod prompts;
mod reading;
#[cfg(test)]
mod reading_properties;
mod reopening;
mod report;
#[cfg(test)]
mod rig;
mod serve;
mod session;
mod snapshot;
mod status;
mod supervisor;
mod tracker;
#[cfg(test)]
mod tracker_properties;
mod tryout;
mod unshown;
mod wire;
