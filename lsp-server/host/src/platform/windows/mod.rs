//! Windows.

pub mod connection;
pub mod files;
pub mod process;
mod security;

use std::io;
use std::os::windows::ffi::OsStrExt;
use std::path::Path;

/// The last error of the system, if a call answered zero.
fn check(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A path as the system's calls take it.
fn wide(path: &Path) -> Vec<u16> {
    path.as_os_str().encode_wide().chain([0]).collect()
}
