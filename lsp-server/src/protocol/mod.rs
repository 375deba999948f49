//! LSP and JSON-RPC. No folder below this one knows either of them.

// The disk is asked by the crate `files` alone, and no task is without an owner: clippy.toml.
#![warn(clippy::disallowed_methods)]

mod copilot;
pub mod framing;
pub mod guard;
pub mod handlers;
pub mod initialize;
pub mod leave;
pub mod lenient;
pub mod lost;
pub mod messages;
mod next_edit;
pub mod outline;
