//! What a model is: manifests, fill-in-the-middle templates, GGUF metadata and
//! vocabularies, adapter files, and how a model file gets here.
//!
//! Nothing here runs a model: serving is lsp-server's, training the learner's.

pub mod adapter;
pub mod delta;
mod download;
pub mod file;
pub mod fim;
pub mod gguf;
mod gguf_write;
pub mod hub;
pub mod local;
pub mod manifest;
pub mod peft;
pub mod progress;
mod pypi;
pub mod shelf;
pub mod store;
#[cfg(test)]
mod test_server;
pub mod vocab;
