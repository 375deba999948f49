//! What two texts have in common: both ends, or the longest common subsequence of their words.

use std::ops::Range;

/// Returns how many bytes both texts begin with, and how many of the rest they end with.
pub fn affixes(a: &str, b: &str) -> (usize, usize) {
    let same = |(a, b): &(char, char)| a == b;
    let bytes = |(c, _): (char, char)| c.len_utf8();
    let head = a.chars().zip(b.chars()).take_while(same).map(bytes).sum();
    let (a, b) = (a[head..].chars().rev(), b[head..].chars().rev());
    (head, a.zip(b).take_while(same).map(bytes).sum())
}

/// A stretch of both lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub is_same: bool,
    pub a: Range<usize>,
    pub b: Range<usize>,
}

/// Cuts both lists into stretches that are the same and stretches that differ, in turn.
pub(crate) fn stretches(a: &[&str], b: &[&str]) -> Vec<Stretch> {
    // common[i][j] is the length of the longest common subsequence of a[i..] and b[j..].
    let mut common = vec![vec![0u16; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = match a[i] == b[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let mut stretches: Vec<Stretch> = vec![];
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let is_same = i < a.len() && j < b.len() && a[i] == b[j];
        let takes_a =
            is_same || j == b.len() || i < a.len() && common[i + 1][j] >= common[i][j + 1];
        let takes_b = is_same || !takes_a;
        let (to_i, to_j) = (i + usize::from(takes_a), j + usize::from(takes_b));
        match stretches.last_mut().filter(|last| last.is_same == is_same) {
            Some(last) => (last.a.end, last.b.end) = (to_i, to_j),
            None => stretches.push(Stretch { is_same, a: i..to_i, b: j..to_j }),
        }
        (i, j) = (to_i, to_j);
    }
    stretches
}
