//! What differs between operating systems: how a file is opened without waiting and without leaving
//! a folder.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::*;
