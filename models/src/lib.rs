//! The description of models: manifests, fill-in-the-middle templates, GGUF metadata and
//! vocabularies, adapter files, and the folder that model files are kept in.
//!
//! Nothing here runs a model or fetches one: lsp-server serves models, the learner
//! trains adapters, and the package `model-fetch` downloads.

pub mod adapter;
pub mod architecture;
pub mod checked_file;
pub mod disk_cache;
pub mod experts;
pub mod file;
pub mod fim;
pub mod fim_tokens;
pub mod gguf;
mod gguf_write;
pub mod inspect;
pub mod limits;
pub mod manifest;
pub mod peft;
mod platform;
pub mod random_model;
pub mod size;
pub mod store;
pub mod team;
pub mod vocab;
