//! What differs between operating systems: the connection to the daemon, files, and processes. Each
//! system has a folder here with the same names, and no other module asks which system this is.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::{connection, files, process};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::{connection, files, process};
