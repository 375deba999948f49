//! The calls to the operating system that the standard library lacks. Each system has a file here
//! with the same functions, and no other module asks which system this is.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::*;
