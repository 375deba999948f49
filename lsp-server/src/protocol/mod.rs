//! LSP and JSON-RPC, and the clients of the HTTP API. No folder below this one knows any of them.

// The disk is asked by the crate `files` alone, and no task is without an owner: clippy.toml.
#![warn(clippy::disallowed_methods)]

mod copilot;
pub mod framing;
pub mod guard;
pub mod handlers;
pub mod http;
pub mod initialize;
pub mod leave;
pub mod lenient;
pub mod lost;
pub mod messages;
mod next_edit;
pub mod outline;
