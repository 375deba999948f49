//! Processes: the daemon, the clients that find and start it, and the forwarder.

pub mod client;
pub mod editor_state;
pub mod election;
pub mod forwarder;
pub mod handshake;
mod log_file;
pub mod server;
