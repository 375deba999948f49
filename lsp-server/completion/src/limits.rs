//! The limits of a completion that several crates go by.

/// Longest completion, in tokens, the text that healing reproduces included.
pub const TOKENS_MAX: usize = 128;
