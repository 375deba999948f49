//! Cuts a document into pieces, and finds the names that a piece holds.

use ropey::Rope;
use std::collections::BTreeSet;
use std::ops::Range;

/// Lines after which a piece ends at the next blank line.
const PIECE_LINES: usize = 6;

/// Lines and characters after which a piece ends in any case.
pub(super) const PIECE_MAX_LINES: usize = 20;
const PIECE_MAX_CHARS: usize = 800;

/// Characters before and behind the cursor that are searched for names.
const NEAR_BEFORE: usize = 1_000;
const NEAR_BEHIND: usize = 300;

/// The shortest name that counts, in characters.
const NAME_MIN_CHARS: usize = 3;

pub(super) struct Piece {
    /// The lines of the document.
    pub(super) lines: Range<usize>,
    pub(super) text: String,
    /// The names in order, so that worths are always added in the same order.
    pub(super) names: BTreeSet<String>,
}

pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = vec![];
    let (mut start, mut piece) = (0, String::new());
    let mut end = |lines: Range<usize>, piece: &mut String| {
        let text = std::mem::take(piece);
        let names = names(&text);
        // A piece with such a long line comes from a minified file, which nobody reads.
        if text.chars().count() <= 2 * PIECE_MAX_CHARS && !names.is_empty() {
            pieces.push(Piece { lines, text, names });
        }
    };
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let lines = number - start;
        let is_border = line.trim().is_empty() && lines >= PIECE_LINES;
        if is_border || lines >= PIECE_MAX_LINES || piece.len() >= PIECE_MAX_CHARS {
            end(start..number, &mut piece);
            start = number;
        }
        piece.push_str(line);
    }
    let all = start + piece.split_inclusive('\n').count();
    if !piece.ends_with('\n') {
        piece.push('\n');
    }
    end(start..all, &mut piece);
    pieces
}

/// The names in a text: identifiers and keywords. Keywords are in so many pieces that they count
/// for little.
pub(super) fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let telling = |word: &&str| {
        word.chars().count() >= NAME_MIN_CHARS && !word.starts_with(|c: char| c.is_ascii_digit())
    };
    words.filter(telling).map(str::to_owned).collect()
}

pub(super) fn names_near(text: &Rope, cursor: usize) -> BTreeSet<String> {
    let from = cursor.saturating_sub(NEAR_BEFORE);
    let to = (cursor + NEAR_BEHIND).min(text.len_chars());
    names(&text.slice(from..to).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_in_one_piece() {
        let text: String = (0..500)
            .map(|i| if i % 9 == 8 { "\n".into() } else { format!("name_{i};\n") })
            .collect();
        let pieces = pieces(&text);
        assert_eq!(pieces.iter().map(|piece| piece.text.as_str()).collect::<String>(), text);
        let mut next = 0;
        for piece in &pieces {
            assert_eq!(piece.lines.start, next);
            assert_eq!(piece.text.lines().count(), piece.lines.len());
            next = piece.lines.end;
        }
        assert_eq!(next, 500);
    }
}
