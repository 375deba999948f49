//! Linux and macOS.

pub mod connection;
pub mod files;
pub mod process;

/// The user that this process runs as.
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}
