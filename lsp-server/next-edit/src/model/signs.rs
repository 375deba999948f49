//! What speaks for a hunk of an answer, or against it.

use super::answer::Hunk;
use super::changes::Changed;
use super::place::words;
use std::collections::HashSet;

/// What can be told of a hunk without knowing how others fared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signs {
    /// The mean and the least log-prob of the tokens that write it, in nats. Where something only
    /// goes, it is the token behind. None if there is no such token.
    pub logprobs: Option<(f32, f32)>,
    /// The lines that it changes.
    pub lines: usize,
    /// The share of the words that come or go which the latest changes have too. None if no word
    /// does.
    pub known_words: Option<f32>,
}

impl Hunk {
    /// `logprobs` holds for each token of the answer the byte at which its text ends, and its
    /// log-prob in nats.
    pub fn signs(&self, logprobs: &[(usize, f32)], changes: &[Changed]) -> Signs {
        Signs {
            logprobs: self.logprobs(logprobs),
            lines: self.old_lines.len().max(self.new_lines.len()),
            known_words: self.known_words(changes),
        }
    }

    fn logprobs(&self, logprobs: &[(usize, f32)]) -> Option<(f32, f32)> {
        let start = self.in_answer.start;
        let end = self.in_answer.end.max(start + 1);
        let first = logprobs.partition_point(|(token_end, _)| *token_end <= start);
        let last = logprobs.partition_point(|(token_end, _)| *token_end < end);
        let own = &logprobs[first..(last + 1).min(logprobs.len())];
        let least = own.iter().map(|(_, logprob)| *logprob).reduce(f32::min)?;
        let sum: f32 = own.iter().map(|(_, logprob)| *logprob).sum();
        Some((sum / own.len() as f32, least))
    }

    fn known_words(&self, changes: &[Changed]) -> Option<f32> {
        let (old, new) = (words_of(&self.old_lines), words_of(&self.new_lines));
        let differing: Vec<&str> = old.symmetric_difference(&new).copied().collect();
        let texts = changes.iter().flat_map(|change| [change.old(), change.new_text()]);
        let known: HashSet<&str> = texts.flat_map(words).collect();
        let count = differing.iter().filter(|word| known.contains(**word)).count();
        (!differing.is_empty()).then(|| count as f32 / differing.len() as f32)
    }
}

fn words_of(lines: &[String]) -> HashSet<&str> {
    lines.iter().flat_map(|line| words(line)).collect()
}
