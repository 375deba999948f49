//! Remembers the tokens of the pieces of a prompt. From key to key only the line that is typed
//! changes, and tokenizing the other pieces again would take over a millisecond.

use parking_lot::Mutex;
use std::collections::VecDeque;

/// A shorter piece is tokenized in microseconds, and is not worth a place among the others.
const BYTES_MIN: usize = 64;

/// The pieces that are remembered: those of the prompts of a few documents, with the excerpts of
/// other code in them.
const PIECES_MAX: usize = 32;

/// A piece of text and its tokens.
type Piece = (String, Vec<u32>);

/// The last pieces, the newest first.
#[derive(Default)]
pub(super) struct Pieces(Mutex<VecDeque<Piece>>);

impl Pieces {
    /// The tokens of a piece, from `tokenize` if they are not known.
    pub(super) fn tokens(&self, text: &str, tokenize: impl FnOnce(&str) -> Vec<u32>) -> Vec<u32> {
        if text.len() < BYTES_MIN {
            return tokenize(text);
        }
        let mut pieces = self.0.lock();
        let known = pieces.iter().position(|(known, _)| known == text);
        let piece = match known.and_then(|index| pieces.remove(index)) {
            Some(piece) => piece,
            None => (text.to_owned(), tokenize(text)),
        };
        let tokens = piece.1.clone();
        pieces.push_front(piece);
        pieces.truncate(PIECES_MAX);
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn only_pieces_that_changed_are_tokenized_again() {
        let (pieces, tokenized) = (Pieces::default(), Cell::new(0));
        let tokens = |text: &str| {
            pieces.tokens(text, |text| {
                tokenized.set(tokenized.get() + 1);
                text.bytes().map(u32::from).collect()
            })
        };
        let piece = |letter: &str| letter.repeat(BYTES_MIN);
        for (text, times) in [
            (piece("a"), 1),
            (piece("b"), 2),
            (piece("a"), 2),
            (piece("a") + "a", 3),
            (piece("b"), 3),
            ("short".into(), 4),
            ("short".into(), 5),
        ] {
            let expected: Vec<u32> = text.bytes().map(u32::from).collect();
            assert_eq!(tokens(&text), expected);
            assert_eq!(tokenized.get(), times, "{text}");
        }
    }

    #[test]
    fn the_pieces_that_were_used_last_are_kept() {
        let pieces = Pieces::default();
        let is_known = |text: &str| {
            let mut known = true;
            pieces.tokens(text, |_| {
                known = false;
                vec![]
            });
            known
        };
        let piece = |number: usize| format!("{number}").repeat(BYTES_MIN);
        for number in 0..PIECES_MAX {
            assert!(!is_known(&piece(number)));
        }
        assert!(is_known(&piece(0)), "as many fit");
        assert!(!is_known(&piece(PIECES_MAX)));
        assert!(is_known(&piece(0)), "it was used last but one");
        assert!(!is_known(&piece(1)), "it was used longest ago");
    }
}
