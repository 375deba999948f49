//! An app for unit tests, and the measurements that use it.

pub mod app;
mod burst;
pub mod daemon;
mod load;
mod overhead;
