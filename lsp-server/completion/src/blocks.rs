//! Offers of several lines that nobody asked for: how many of the lines are worth showing.

/// The mean log-prob of a line's tokens, in nats, under which the line and those below it are cut.
/// A line of eight such tokens is right once in four times, which is what an offer is worth.
pub const LINE_LOGPROB_MIN: f32 = -0.17;

/// The generated text of an answer, token by token.
#[derive(Clone, Copy)]
pub struct Tokens<'a> {
    /// The byte of the generated text at which each token ends.
    pub ends: &'a [usize],
    /// The log-probs of the tokens.
    pub logprobs: &'a [f32],
}

impl Tokens<'_> {
    /// The log-probs of the tokens that begin in this part of the generated text.
    fn within(&self, start: usize, end: usize) -> impl Iterator<Item = f32> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let begin = starts.zip(self.logprobs).filter(move |(at, _)| (start..end).contains(at));
        begin.map(|(_, logprob)| *logprob)
    }
}

/// The lines of `shown` above the first one, behind the first line, that is too unlikely. `shown`
/// begins at the byte `from` of the generated text.
pub fn likely_lines<'a>(shown: &'a str, from: usize, tokens: Tokens) -> &'a str {
    let mut at = 0;
    for line in shown.split_inclusive('\n') {
        let end = at + line.len();
        let (sum, count) = tokens
            .within(from + at, from + end)
            .fold((0.0, 0.0), |(sum, count), logprob| (sum + logprob, count + 1.0));
        if at > 0 && count > 0.0 && sum / count < LINE_LOGPROB_MIN {
            return shown[..at].trim_end();
        }
        at = end;
    }
    shown
}

/// The first line with text of an offer, and what stands before it.
pub fn first_line(shown: &str) -> &str {
    let blank = shown.len() - shown.trim_start().len();
    let end = shown[blank..].find('\n').map_or(shown.len(), |at| blank + at);
    &shown[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that are shown of these pieces with their log-probs, where `cut` bytes at the
    /// start only reproduce what was typed.
    fn likely(pieces: &[(&str, f32)], cut: usize) -> String {
        let text: String = pieces.iter().map(|(piece, _)| *piece).collect();
        let ends: Vec<usize> = pieces
            .iter()
            .scan(0, |end, (piece, _)| {
                *end += piece.len();
                Some(*end)
            })
            .collect();
        let logprobs: Vec<f32> = pieces.iter().map(|(_, logprob)| *logprob).collect();
        let tokens = Tokens { ends: &ends, logprobs: &logprobs };
        likely_lines(&text[cut..], cut, tokens).to_owned()
    }

    #[test]
    fn a_block_ends_before_the_first_unlikely_line() {
        let sure = [("a(", -0.01), (");\n", -0.1), ("b(", -0.01), (")", -0.2)];
        assert_eq!(likely(&sure, 0), "a();\nb()");
        let unsure = [("a", -0.1), (";\n", 0.0), ("b", -0.9), (";\n", 0.0), ("c", 0.0)];
        assert_eq!(likely(&unsure, 0), "a;", "what follows an unlikely line is not shown either");
        assert_eq!(likely(&[("a", -5.0), (";\n", 0.0), ("b", 0.0)], 0), "a;\nb", "the gate's part");
        assert_eq!(likely(&[("  ", 0.0), ("a\n", 0.0), ("  b", -0.5)], 2), "a");
    }

    #[test]
    fn the_first_line_is_the_first_with_text() {
        assert_eq!(first_line("a;\nb"), "a;");
        assert_eq!(first_line("\n    a;\n    b"), "\n    a;");
        assert_eq!(first_line("a"), "a");
    }
}
