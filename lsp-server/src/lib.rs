//! `hone`: completions that learn from your Tab key, on your machine.

mod adapters;
mod aftermath;
mod answered;
mod asked;
mod broken;
#[cfg(test)]
mod burst;
mod changes;
pub mod cli;
mod client;
mod config;
#[cfg(test)]
mod config_properties;
mod daemon;
mod document;
#[cfg(test)]
mod document_properties;
mod engine;
mod events;
mod extent;
mod forget;
mod forward;
mod framing;
mod gate;
mod history;
mod home;
mod ignored;
mod imports;
mod incoming;
mod knowledge;
mod launch;
mod leash;
#[cfg(test)]
mod load;
mod lsp;
mod machine;
mod mirror;
mod ordinary;
#[cfg(test)]
mod overhead;
mod postprocess;
mod privacy;
mod prompt;
mod prompts;
mod reading;
#[cfg(test)]
mod reading_properties;
mod related;
mod reopening;
mod report;
mod retention;
mod rhythm;
#[cfg(test)]
mod rig;
mod serve;
mod session;
mod snapshot;
mod status;
mod supervisor;
mod syntax;
mod texts;
mod tracker;
#[cfg(test)]
mod tracker_properties;
mod trial;
mod tryout;
mod unshown;
mod wire;
