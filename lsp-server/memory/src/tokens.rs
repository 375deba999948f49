//! The tokens of a text: words, and all other characters one by one. Blanks are between tokens.

use crate::compare::{is_blank, is_word_byte};

/// A token by its place and its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub start: u32,
    pub end: u32,
    pub hash: u64,
}

pub fn tokens(text: &[u8]) -> Vec<Token> {
    let mut tokens = vec![];
    let mut at = 0;
    while at < text.len() {
        let start = at;
        at += 1;
        if is_blank(text[start]) {
            continue;
        }
        if is_word_byte(text[start]) {
            while at < text.len() && is_word_byte(text[at]) {
                at += 1;
            }
        }
        let hash = postings::hash(&text[start..at]);
        tokens.push(Token { start: start as u32, end: at as u32, hash });
    }
    tokens
}
