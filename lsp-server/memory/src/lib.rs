//! Finds where the text before a cursor was written before, and how it went on there.
//!
//! It looks at the document itself as it stands, at what the user typed lately, and at the files of
//! the workspace. Blanks may differ between the two places (`compare.rs`). Every place is answered
//! with the length of its match, where it lies, and how many other places go on in the same way
//! ([`Match`]).
//!
//! A suffix array would find any match, but takes 4 bytes for each byte of text. Here only some
//! runs of three tokens are indexed, chosen so that every match of [`TOKENS_FOUND`] tokens has one
//! (`grams.rs`). Each takes 8 bytes, which is less than the text.
//!
//! Everything here is pure: no file is read, no thread is started, and no setting is looked up. A
//! [`Memory`] is cheap to clone, and a clone does not change.
//!
//! ```
//! use memory::{Limits, Memory, Query};
//!
//! let mut memory = Memory::new(Limits::default());
//! memory.put("a.rs", "let total = ledger.total(now);\n".into()).unwrap();
//! let query = Query { before: "let total = ledger.to", ..Query::default() };
//! assert_eq!(memory.find(&query)[0].line(), "tal(now);");
//! ```

mod compare;
mod continuation;
mod find;
mod grams;
mod index;
mod tokens;

pub use find::{Match, Query, Source};
pub use grams::TOKENS_FOUND;
pub use index::{Limits, Memory, NotIndexed, Stats};

#[cfg(test)]
mod tests;
