//! Fixtures for unit tests, and the measurements that use them.

pub mod app;
mod burst;
pub mod daemon;
pub mod fixtures;
pub mod forgettable;
mod load;
mod next_edit;
mod overhead;
