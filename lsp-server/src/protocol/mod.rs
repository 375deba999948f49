//! LSP and JSON-RPC. Nothing below this folder knows either.

mod copilot;
pub mod framing;
mod guard;
pub mod handlers;
pub mod messages;
