//! Which places of a text are indexed: minimizers, a sample that two texts choose alike.
//!
//! A gram is a run of [`GRAM_TOKENS`] tokens. Of each [`WINDOW_GRAMS`] grams in a row, the one with
//! the smallest hash is chosen. The choice depends on the window's text alone. So wherever
//! [`TOKENS_FOUND`] tokens stand twice, the same gram of them is chosen in both places. About one
//! of two grams is chosen (Schleimer, Wilkerson and Aiken, "Winnowing", 2003).

use crate::tokens::Token;

/// The tokens of a gram.
pub const GRAM_TOKENS: usize = 3;

/// The grams in a row of which one is chosen.
pub const WINDOW_GRAMS: usize = 3;

/// A match of this many whole tokens before the cursor is found. A shorter one may be found.
pub const TOKENS_FOUND: usize = GRAM_TOKENS + WINDOW_GRAMS - 1;

/// The bits of a gram's hash.
pub const HASH_BITS: u32 = 24;

/// The hash of a gram that begins with the first of these tokens.
pub fn gram(tokens: &[Token]) -> u32 {
    let factors = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9u64];
    let mixed = tokens.iter().zip(factors).fold(0u64, |hash, (token, factor)| {
        (hash.rotate_left(23) ^ token.hash).wrapping_mul(factor)
    });
    (mixed >> (u64::BITS - HASH_BITS)) as u32
}

/// The hashes of all grams of a text, by the number of their first token.
pub fn grams(tokens: &[Token]) -> Vec<u32> {
    tokens.windows(GRAM_TOKENS).map(gram).collect()
}

/// The index of the chosen gram of a window. Among equal ones it is the last.
pub fn chosen(window: &[u32]) -> usize {
    let smallest = window.iter().enumerate().min_by_key(|(at, hash)| (**hash, usize::MAX - at));
    smallest.map_or(0, |(at, _)| at)
}

/// The chosen grams of a text: the number of the first token, and the hash.
pub fn minimizers(tokens: &[Token]) -> Vec<(usize, u32)> {
    let grams = grams(tokens);
    let mut all: Vec<(usize, u32)> = vec![];
    for (start, window) in grams.windows(WINDOW_GRAMS).enumerate() {
        let at = start + chosen(window);
        if all.last().is_none_or(|(last, _)| *last != at) {
            all.push((at, grams[at]));
        }
    }
    all
}
