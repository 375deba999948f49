//! Finds the code of a workspace that has to do with a text: the chunks that share its rare names.
//!
//! Files are cut into chunks at the borders of functions ([`chunks`]). A chunk counts as a small
//! document, whose terms are its identifiers and their parts ([`terms`]). BM25 ranks the chunks
//! ([`Index::search`]), and near copies are left out (`shingles.rs`).
//!
//! Everything here is pure: no file is read, no thread is started, and no setting is looked up. An
//! [`Index`] is cheap to clone, and a clone does not change. So one thread can keep the index, and
//! publish a clone that others search without a lock.
//!
//! ```
//! use retrieval::{Index, Limits, Query};
//!
//! let mut index = Index::new(Limits::default());
//! index.put("ledger.rs", "fn post_entry(ledger: &mut Ledger) {}\n".into()).unwrap();
//! let query = Query { text: "ledger.post_entry(", count: 3, ..Query::default() };
//! assert_eq!(index.search(&query)[0].file.as_ref(), "ledger.rs");
//! ```

pub mod chunks;
mod index;
mod search;
mod shingles;
pub mod terms;

pub use index::{Index, Limits, NotIndexed, Stats};
pub use search::{Hit, Query};

#[cfg(test)]
mod tests;
