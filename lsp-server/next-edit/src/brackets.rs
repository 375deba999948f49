//! Whether a new text leaves the brackets around it as the old one did.

use crate::language::Language;
use crate::tokens::{Class, Inside, Token, tokens};

/// Returns how much deeper brackets are nested behind this token than before it.
pub(crate) fn depth_change(word: &str, token: &Token) -> i32 {
    match (token.class, word) {
        (Class::Code, "(" | "[" | "{") => 1,
        (Class::Code, ")" | "]" | "}") => -1,
        _ => 0,
    }
}

/// Returns true if both texts leave the same brackets open, and close the same ones.
pub(crate) fn balance_alike(old: &str, new: &str, language: &Language) -> bool {
    unmatched(old, language) == unmatched(new, language)
}

/// The brackets that have no partner in the text, in their order. A closing bracket of another kind
/// than the one that is open has none.
fn unmatched(text: &str, language: &Language) -> Vec<u8> {
    let mut open: Vec<u8> = vec![];
    for token in tokens(text, language, Inside::Code) {
        let word = &text[token.start as usize..token.end as usize];
        if depth_change(word, &token) == 0 {
            continue;
        }
        let bracket = word.as_bytes()[0];
        let partner = match bracket {
            b')' => Some(b'('),
            b']' => Some(b'['),
            b'}' => Some(b'{'),
            _ => None,
        };
        if partner.is_some() && partner == open.last().copied() {
            open.pop();
        } else {
            open.push(bracket);
        }
    }
    open
}
