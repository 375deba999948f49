//! Edit survival as a number: which share of an accepted text is still there.

use ropey::Rope;

/// A longer file is not searched for a text that was moved, in characters.
const SEARCH_CHARS: usize = 500_000;

/// Words and marks of a text that are compared with those of another text.
const COMPARED_WORDS: usize = 256;

/// The share of an accepted text that the user keeps: what stands in its place, apart from blanks,
/// which formatters change, or the text anywhere in the file, if it was moved.
pub fn kept_share(accepted: &str, stands: &str, file: &Rope) -> f32 {
    let wanted = without_blanks(accepted);
    if without_blanks(stands) == wanted || wanted.is_empty() {
        return 1.0;
    }
    if file.len_chars() <= SEARCH_CHARS && without_blanks(&file.to_string()).contains(&wanted) {
        return 1.0;
    }
    common_share(accepted, stands)
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The characters of `taken` in the longest common subsequence of words and marks, as a share of
/// all of them.
fn common_share(taken: &str, stands: &str) -> f32 {
    let (taken, stands) = (words(taken), words(stands));
    let weight = |word: &str| word.chars().count();
    let total: usize = taken.iter().map(|word| weight(word)).sum();
    let mut row = vec![0; stands.len() + 1];
    for word in &taken {
        let mut diagonal = 0;
        for (i, other) in stands.iter().enumerate() {
            let above = row[i + 1];
            row[i + 1] = if word == other { diagonal + weight(word) } else { above.max(row[i]) };
            diagonal = above;
        }
    }
    row[stands.len()] as f32 / total.max(1) as f32
}

fn words(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = vec![];
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next()
        && words.len() < COMPARED_WORDS
    {
        let length = match rest.find(|c| !is_word(c)) {
            Some(0) => first.len_utf8(),
            Some(length) => length,
            None => rest.len(),
        };
        words.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    words
}
