//! Tells near copies: how many runs of words two texts share.

use crate::terms::words;
use rustc_hash::FxHashSet;

/// The words of a shingle.
const WORDS: usize = 4;

/// Two texts are near copies, if more than this share of the shorter one's shingles is in the
/// other.
pub const NEAR_COPY_SHARE: f32 = 0.9;

/// The shingles of a text: every run of [`WORDS`] words, by its hash.
pub struct Shingles(FxHashSet<u64>);

impl Shingles {
    pub fn of(text: &str) -> Shingles {
        let words: Vec<u64> = words(text).map(postings::hash).collect();
        let shingle = |words: &[u64]| {
            words.iter().fold(0u64, |hash, word| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR))
        };
        // A text that is shorter than a shingle is one.
        let size = WORDS.min(words.len()).max(1);
        Shingles(words.windows(size).map(shingle).collect())
    }

    /// The share of these shingles that is in the other text as well.
    fn share_in(&self, other: &Shingles) -> f32 {
        let shared = self.0.iter().filter(|shingle| other.0.contains(shingle)).count();
        shared as f32 / self.0.len().max(1) as f32
    }

    /// Whether the other text has nearly everything that this one has.
    pub fn is_within(&self, other: &Shingles) -> bool {
        self.share_in(other) > NEAR_COPY_SHARE
    }

    /// Whether the shorter of the two has little that the longer one has not.
    pub fn is_near_copy(&self, other: &Shingles) -> bool {
        if self.0.len() <= other.0.len() { self.is_within(other) } else { other.is_within(self) }
    }
}

/// An odd number with well mixed bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "fn total(items: &[Item]) -> u64 { let mut sum = 0; for item in items { sum \
        += item.price * item.count; } log(sum); check(sum); round(sum, 2); finish(sum) }";

    fn are_near(a: &str, b: &str) -> bool {
        Shingles::of(a).is_near_copy(&Shingles::of(b))
    }

    #[test]
    fn copies_are_told_by_their_words() {
        assert!(are_near(CODE, &CODE.replace(' ', "\n  ")), "blanks do not count");
        assert!(are_near(CODE, &format!("{CODE} fn more(a: A) {{ other(things, too) }}")));
        assert!(!are_near(CODE, &CODE.replace("item", "entry")));
        assert!(are_near("a b", "a b") && !are_near("a b", "a c"));
        assert!(!are_near("", CODE) && !are_near(CODE, "+"));
    }
}
