//! Fixtures for unit tests, and the measurements that use them.

pub mod app;
mod burst;
pub mod daemon;
mod load;
mod overhead;
