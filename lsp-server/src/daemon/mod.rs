//! Processes: the daemon, the clients that find and start it, and the forwarder.

mod anchors;
pub mod client;
pub mod editor_state;
pub mod election;
mod ends;
pub mod forwarder;
pub mod handshake;
mod killed;
pub mod loading;
mod log_file;
pub mod server;
