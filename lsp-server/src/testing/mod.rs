//! A daemon for unit tests, and the measurements that use it.

mod burst;
pub mod daemon;
mod load;
mod overhead;
