//! What it costs to match a pattern. The matcher tries each `**/` at each slash of a text, and for
//! each of these trials the next `**/` at each slash behind it.

use bstr::ByteSlice;

/// Returns the number of `**` in a pattern that may stand for any number of folders.
pub fn doubles(pattern: &[u8]) -> u32 {
    let count = |mark: &[u8]| pattern.find_iter(mark).count();
    // The slash may be written with a backslash.
    (count(b"**/") + count(b"**\\")) as u32
}

/// Returns the most trials of a pattern with so many `**` on a text with so many slashes.
pub fn steps(doubles: u32, slashes: usize) -> u64 {
    (slashes as u64 + 1).saturating_pow(doubles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_double_star_before_a_slash_multiplies_the_steps() {
        for (pattern, expected) in [
            (&b"*/a*.py"[..], 1),
            (b"a/**", 1),
            (b"**/a/**", 21),
            (b"a/**\\/b", 21),
            (b"a/**/**/b", 441),
            (b"****/****/b", 441),
        ] {
            assert_eq!(steps(doubles(pattern), 20), expected, "{:?}", pattern.as_bstr());
        }
        assert_eq!(steps(70, 70), u64::MAX);
    }
}
