//! The limits of a completion that several crates share.

/// The longest completion in tokens. It includes the text that healing reproduces.
pub const TOKENS_MAX: usize = 128;
