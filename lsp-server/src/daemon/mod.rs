//! Processes: the daemon, the clients that find and start it, and the forwarder.

mod anchors;
pub mod client;
pub mod editor_state;
pub mod election;
pub mod ends;
pub mod forwarder;
pub mod handshake;
pub mod http;
pub mod http_token;
mod killed;
pub mod loading;
mod log_file;
pub mod server;
