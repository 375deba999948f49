//! The choice among several answers to one request.

pub mod features;
