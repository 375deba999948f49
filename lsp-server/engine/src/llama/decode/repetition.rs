//! Answers that go round in circles. Small models fall into them in comments and strings, and stay
//! there up to the limit of tokens.

/// The most tokens of the part that is repeated.
const PERIOD_MAX: usize = 16;

/// A part that stands this often in a row is a repetition.
const TIMES: usize = 3;

/// The least number of tokens that repetitions of a short part have together. Two or three words
/// in a row may be meant.
const TOKENS_MIN: usize = 12;

/// The index behind the first occurrence of the part that the end of `tokens` repeats, or `None` if
/// it repeats nothing. A part of marks or numbers, such as the zeros of a table, may be repeated.
pub(super) fn repeats_from<T>(
    tokens: &[T],
    is_same: impl Fn(&T, &T) -> bool,
    has_letter: impl Fn(&T) -> bool,
    is_blank: impl Fn(&T) -> bool,
) -> Option<usize> {
    (1..=PERIOD_MAX).find_map(|period| {
        let times = TIMES.max(TOKENS_MIN.div_ceil(period));
        let start = tokens.len().checked_sub(times * period)?;
        let (repeated, first) = (&tokens[start + period..], &tokens[start..start + period]);
        let is_repeated =
            repeated.iter().zip(&tokens[start..]).all(|(later, earlier)| is_same(later, earlier));
        let counts = first.iter().any(&has_letter) || first.iter().all(&is_blank);
        (is_repeated && counts).then_some(start + period)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is left of a text in which every character is a token.
    fn left(text: &str) -> &str {
        let tokens: Vec<char> = text.chars().collect();
        let (letter, blank) = (|c: &char| c.is_alphabetic(), |c: &char| c.is_whitespace());
        let from = repeats_from(&tokens, |a, b| a == b, letter, blank);
        &text[..from.unwrap_or(text.len())]
    }

    #[test]
    fn a_part_that_stands_many_times_in_a_row_is_kept_once() {
        assert_eq!(left("// a list of of of of "), "// a list of ");
        assert_eq!(left("x, hello hello hello "), "x, hello ");
        assert_eq!(left("aaaaaaaaaaaa"), "a");
        assert_eq!(left("x            "), "x ");
    }

    #[test]
    fn few_repetitions_and_tables_of_numbers_are_meant() {
        for meant in ["very very ", "ha ha ha ", "0, 0, 0, 0, 0, 0, 0, ", "----------------"] {
            assert_eq!(left(meant), meant);
        }
        assert_eq!(left("hello hello hello x"), "hello hello hello x", "it continues");
    }
}
