//! The differences between operating systems: how a file is made durable and private. Each system
//! has a file here with the same functions, and no other module asks which system this is.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::*;
