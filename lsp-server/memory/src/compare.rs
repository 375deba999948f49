//! Compares two texts, where the number of blanks does not count.
//!
//! Between two tokens there may be nothing, blanks, or a line break. A line break counts as one,
//! with whatever blanks and empty lines around it. Blanks count as nothing, unless they stand
//! between two words, which would be one word without them.

/// What stands between two tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    None,
    Blanks,
    LineBreak,
}

pub fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn gap(blanks: &[u8]) -> Gap {
    match blanks {
        [] => Gap::None,
        blanks if blanks.contains(&b'\n') => Gap::LineBreak,
        _ => Gap::Blanks,
    }
}

/// The gap that begins at `at`, and where it ends.
pub fn gap_behind(text: &[u8], at: usize) -> (Gap, usize) {
    let length = text[at..].iter().take_while(|byte| is_blank(**byte)).count();
    (gap(&text[at..at + length]), at + length)
}

/// The gap that ends at `at`, and where it begins.
fn gap_before(text: &[u8], at: usize) -> (Gap, usize) {
    let length = text[..at].iter().rev().take_while(|byte| is_blank(**byte)).count();
    (gap(&text[at - length..at]), at - length)
}

/// Whether two gaps count as the same. `between_words`: there is a word on either side.
fn are_alike(a: Gap, b: Gap, between_words: bool) -> bool {
    a == b || (a != Gap::LineBreak && b != Gap::LineBreak && !between_words)
}

/// Follows both texts from the beginning of a token to the end of `query`. Answers where `text`
/// stands then; `None` if they differ before.
pub fn follow(query: &[u8], mut at: usize, text: &[u8], mut there: usize) -> Option<usize> {
    while at < query.len() {
        let (gap_here, next) = gap_behind(query, at);
        let (gap_there, next_there) = gap_behind(text, there);
        let is_behind_word = at > 0 && is_word_byte(query[at - 1]);
        let joins = |byte: Option<&u8>| is_behind_word && byte.is_some_and(|b| is_word_byte(*b));
        if next == query.len() {
            // The cursor stands behind these blanks.
            let fits = are_alike(gap_here, gap_there, joins(text.get(next_there)));
            return fits.then_some(next_there);
        }
        let alike = are_alike(gap_here, gap_there, joins(query.get(next)));
        if !alike || text.get(next_there) != query.get(next) {
            return None;
        }
        (at, there) = (next + 1, next_there + 1);
    }
    Some(there)
}

/// How many bytes before `at` are the same in both texts, blanks not counted, up to `limit`.
pub fn same_before(
    query: &[u8],
    mut at: usize,
    text: &[u8],
    mut there: usize,
    limit: usize,
) -> usize {
    let mut same = 0;
    while same < limit {
        let (gap_here, end) = gap_before(query, at);
        let (gap_there, end_there) = gap_before(text, there);
        if end == 0 || end_there == 0 || query[end - 1] != text[end_there - 1] {
            break;
        }
        let is_before_word = query.get(at).is_some_and(|byte| is_word_byte(*byte));
        if !are_alike(gap_here, gap_there, is_before_word && is_word_byte(query[end - 1])) {
            break;
        }
        same += 1;
        (at, there) = (end - 1, end_there - 1);
    }
    same
}

/// How many bytes at the ends are exactly the same, up to `limit`.
pub fn exactly_same(query: &[u8], text: &[u8], limit: usize) -> usize {
    let pairs = query.iter().rev().zip(text.iter().rev());
    pairs.take(limit).take_while(|(a, b)| a == b).count()
}

/// The bytes of a text that are no blanks.
pub fn solid_bytes(text: &[u8]) -> usize {
    text.iter().filter(|byte| !is_blank(**byte)).count()
}
