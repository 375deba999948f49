//! The log-probability of a text under one adapter, summed over all tokens that may end its last
//! line.
//!
//! Byte-pair encoding merges `)` and the line break behind it into one token. The model may also
//! generate `)` alone and then the break, or stop there. The reader sees the same text in each
//! case.

use super::Score;
use super::sampler::Softmax;
use models::vocab::Vocab;
use std::ops::ControlFlow;

/// A text to be scored, with all tokens that may end its last line.
pub struct LineEndVariants<'a> {
    head: &'a [u32],
    /// The text may end with any of these tokens behind the head.
    last: Vec<u32>,
    /// Or it ends with this token and then any end of the line.
    open: Option<u32>,
}

impl<'a> LineEndVariants<'a> {
    /// # Panics
    /// If there are no tokens.
    pub fn new(tokens: &'a [u32], vocab: &Vocab) -> LineEndVariants<'a> {
        let (last, head) = tokens.split_last().expect("a text has tokens");
        if let Some((before, head)) = head.split_last()
            && vocab.bare_ends().contains(last)
            && let merged @ [_, ..] = vocab.ended(*before)
        {
            return LineEndVariants { head, last: merged.to_vec(), open: Some(*before) };
        }
        let ends = match vocab.line_ends(*last) {
            [] => std::slice::from_ref(last),
            ends => ends,
        };
        LineEndVariants { head, last: ends.to_vec(), open: vocab.left_open(*last) }
    }

    /// The tokens to feed behind the prompt. Each gives a row of logits, and the prompt itself
    /// gives the first row.
    pub fn fed(&self) -> impl Iterator<Item = u32> {
        self.head.iter().copied().chain(self.open)
    }

    /// Reads the next row of logits. Breaks with the score once no further row is needed, and with
    /// `None` if the text does not reproduce the text that healing cut.
    pub fn read(
        &self,
        partial: &mut PartialScore,
        row: &[f32],
        healing: &[u8],
        vocab: &Vocab,
    ) -> ControlFlow<Option<Score>> {
        self.place(partial, row, healing, vocab).unwrap_or(ControlFlow::Break(None))
    }

    fn place(
        &self,
        partial: &mut PartialScore,
        row: &[f32],
        healing: &[u8],
        vocab: &Vocab,
    ) -> Option<ControlFlow<Option<Score>>> {
        let at = partial.rows;
        partial.rows += 1;
        if let Some((open, is_best)) = partial.open {
            let behind = Softmax::new(row, vocab, &[], 1.0)?;
            let breaks = vocab.bare_ends();
            partial.ends |= is_best && breaks.contains(&behind.best);
            let ended_behind = behind.logprob_of(breaks).map(|logprob| open + logprob);
            partial.ended = match (partial.ended, ended_behind) {
                (Some(a), Some(b)) => Some(a.max(b) + (-(a - b).abs()).exp().ln_1p()),
                (one, other) => one.or(other),
            };
            return partial.whole();
        }
        let need = &healing[partial.healed..];
        let softmax = Softmax::new(row, vocab, need, 1.0)?;
        if let Some(&token) = self.head.get(at) {
            partial.logprob += softmax.logprob_of(&[token])?;
            partial.parts |= softmax.best != token;
            partial.healed = (partial.healed + vocab.piece(token).len()).min(healing.len());
            return Some(ControlFlow::Continue(()));
        }
        partial.ended = softmax.logprob_of(&self.last);
        partial.ends = self.last.contains(&softmax.best);
        if let Some(open) = self.open
            && let Some(logprob) = softmax.logprob_of(&[open])
            && need.len() <= vocab.piece(open).len()
        {
            partial.open = Some((logprob, softmax.best == open));
            return Some(ControlFlow::Continue(()));
        }
        partial.whole()
    }
}

/// What the rows read so far say of a text.
#[derive(Debug, Clone, Default)]
pub struct PartialScore {
    rows: usize,
    /// The bytes of the healed text that the tokens so far reproduce.
    healed: usize,
    logprob: f32,
    /// Whether another token was likelier at one of the places.
    parts: bool,
    /// ln π of ending the line behind the head.
    ended: Option<f32>,
    /// Whether the likeliest token there ends the line.
    ends: bool,
    /// ln π of the token that leaves the line open, and whether it is the likeliest.
    open: Option<(f32, bool)>,
}

impl PartialScore {
    /// The rows that were read.
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn whole(&self) -> Option<ControlFlow<Option<Score>>> {
        let logprob = self.logprob + self.ended?;
        let is_greedy = !self.parts && self.ends;
        Some(ControlFlow::Break(Some(Score { logprob, is_greedy })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: u32 = 0;
    const CLOSE: u32 = 1;
    const CLOSE_BREAK: u32 = 2;
    const BREAK: u32 = 3;
    const STOP: u32 = 4;

    fn vocab() -> Vocab {
        Vocab::new([("go(", 1), (")", 1), (")Ċ", 1), ("Ċ", 1), ("<|endoftext|>", 3)])
    }

    /// The probability of a text, and whether it is greedy, for a model that gives these
    /// probabilities place by place.
    fn score(tokens: &[u32], rows: &[[f32; 5]]) -> (f32, bool) {
        let vocab = vocab();
        let text = LineEndVariants::new(tokens, &vocab);
        let rows: Vec<_> = rows.iter().take(text.fed().count() + 1).copied().collect();
        let score = read(&text, &rows, b"", &vocab).expect("rows for it");
        (score.logprob.exp(), score.is_greedy)
    }

    /// The score of a text after rows with these probabilities.
    fn read(
        text: &LineEndVariants,
        rows: &[[f32; 5]],
        healing: &[u8],
        vocab: &Vocab,
    ) -> Option<Score> {
        let mut partial = PartialScore::default();
        for row in rows {
            let row = row.map(f32::ln);
            if let ControlFlow::Break(score) = text.read(&mut partial, &row, healing, vocab) {
                return score;
            }
        }
        panic!("a row is missing behind {partial:?}");
    }

    #[test]
    fn a_line_ends_with_a_merged_token_a_break_or_a_stop() {
        // The rows are: `go(`, then `)` with its break or `)` alone, and behind that a break or a
        // stop.
        let rows =
            [[0.8, 0.05, 0.05, 0.05, 0.05], [0.1, 0.5, 0.3, 0.05, 0.05], [0.1, 0.1, 0.1, 0.2, 0.5]];
        let expected = 0.8 * (0.3 + 0.5 * (0.2 + 0.5));
        for tokens in [&[CALL, CLOSE_BREAK][..], &[CALL, CLOSE, BREAK], &[CALL, CLOSE, STOP]] {
            let (probability, is_greedy) = score(tokens, &rows);
            assert!((probability - expected).abs() < 1e-5, "{tokens:?} {probability}");
            assert!(is_greedy, "{tokens:?}: greedily it is `)` and a stop");
        }
    }

    #[test]
    fn a_line_that_continues_is_another_text() {
        let rows =
            [[0.8, 0.05, 0.05, 0.05, 0.05], [0.1, 0.5, 0.3, 0.05, 0.05], [0.6, 0.1, 0.1, 0.1, 0.1]];
        assert!(!score(&[CALL, CLOSE_BREAK], &rows).1, "greedily it is `)` and then `go(`");
        assert!(score(&[CALL, CLOSE], &rows).1, "of a text without an end, that is nothing");
    }

    #[test]
    fn a_break_at_the_start_of_a_text_may_be_a_stop() {
        let (probability, is_greedy) = score(&[BREAK], &[[0.1, 0.1, 0.1, 0.3, 0.4]]);
        assert!((probability - 0.7).abs() < 1e-5 && is_greedy, "{probability}");
    }

    #[test]
    fn healing_forbids_a_stop_and_other_tokens() {
        let vocab = vocab();
        let rows = [[0.1, 0.2, 0.3, 0.1, 0.3]; 3];
        let score = |tokens: &[u32], healing: &[u8]| {
            read(&LineEndVariants::new(tokens, &vocab), &rows, healing, &vocab)
        };
        // Healing demands `)`: alone and ended behind it, or with its break.
        let closed = score(&[CLOSE_BREAK], b")").unwrap().logprob.exp();
        assert!((closed - (0.6 + 0.4 * 0.4)).abs() < 1e-5, "{closed}");
        assert_eq!(score(&[CALL], b")"), None);
        assert_eq!(score(&[STOP], b")"), None);
    }
}
