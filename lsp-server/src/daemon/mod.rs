//! Processes: the daemon, who finds it and starts it, and what carries messages to it.

pub mod client;
pub mod editor_state;
pub mod forwarder;
pub mod handshake;
pub mod server;
