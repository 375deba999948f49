//! The answers to the latest requests. The user may ask again what was computed ahead of time, and
//! then nothing is computed twice.

use super::super::Cell;
use crate::sampler::Chosen;
use feedback::event::TokenRecord;
use std::collections::VecDeque;

/// Answers that are kept: the one on screen, the one behind it, and the one on the next line, each
/// with an older one.
const ANSWERS: usize = 6;

#[derive(Default)]
pub struct AnswerMemory {
    /// The latest last.
    answers: VecDeque<Known>,
}

/// What the model says greedily after a prompt, the text that healing reproduces included.
struct Known {
    prompt: Vec<Cell>,
    healing: String,
    tokens: Vec<Chosen>,
}

impl AnswerMemory {
    /// Whether the beginning of the answer to this request is known.
    pub fn knows(&self, prompt: &[Cell], healing: &str) -> bool {
        self.find(prompt, healing).is_some_and(|known| !known.tokens.is_empty())
    }

    /// The token that follows `said` in the answer to this request.
    pub fn next(&self, prompt: &[Cell], healing: &str, said: &[TokenRecord]) -> Option<Chosen> {
        let known = self.find(prompt, healing)?;
        let next = known.tokens.get(said.len())?;
        goes_on(known, said).then_some(*next)
    }

    /// Remembers the token that follows `said`.
    pub fn note(&mut self, prompt: &[Cell], healing: &str, said: &[TokenRecord], next: Chosen) {
        let at = self.answers.iter().position(|known| is_of(known, prompt, healing));
        let mut known = match at.and_then(|at| self.answers.remove(at)) {
            Some(known) if known.tokens.len() >= said.len() && goes_on(&known, said) => known,
            _ if said.is_empty() => {
                Known { prompt: prompt.to_vec(), healing: healing.to_owned(), tokens: vec![] }
            }
            // Its beginning is not known, so it cannot be told.
            _ => return,
        };
        known.tokens.truncate(said.len());
        known.tokens.push(next);
        if self.answers.len() == ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back(known);
    }

    pub fn forget(&mut self) {
        self.answers.clear();
    }

    fn find(&self, prompt: &[Cell], healing: &str) -> Option<&Known> {
        self.answers.iter().rev().find(|known| is_of(known, prompt, healing))
    }
}

fn is_of(known: &Known, prompt: &[Cell], healing: &str) -> bool {
    known.healing == healing && known.prompt == prompt
}

/// Whether the answer begins with what was said.
fn goes_on(known: &Known, said: &[TokenRecord]) -> bool {
    known.tokens.iter().zip(said).all(|(known, said)| known.token.id == said.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(id: u32) -> Chosen {
        Chosen { token: TokenRecord { id, logprob: -0.1 }, visible_logprob: -0.1 }
    }

    fn said(ids: &[u32]) -> Vec<TokenRecord> {
        ids.iter().map(|&id| chosen(id).token).collect()
    }

    fn next(memory: &AnswerMemory, prompt: u32, ids: &[u32]) -> Option<u32> {
        memory.next(&[(prompt, 0)], " ", &said(ids)).map(|chosen| chosen.token.id)
    }

    #[test]
    fn an_answer_is_told_again_to_the_same_request_only() {
        let mut memory = AnswerMemory::default();
        memory.note(&[(1, 0)], " ", &[], chosen(7));
        memory.note(&[(1, 0)], " ", &said(&[7]), chosen(8));
        assert_eq!((next(&memory, 1, &[]), next(&memory, 1, &[7])), (Some(7), Some(8)));
        assert_eq!(next(&memory, 1, &[7, 8]), None, "its end");
        assert_eq!(next(&memory, 1, &[9]), None, "another beginning");
        assert_eq!(next(&memory, 2, &[]), None, "another prompt");
        assert!(memory.knows(&[(1, 0)], " ") && !memory.knows(&[(1, 0)], ""));
        assert!(!memory.knows(&[(1, 3)], " "), "another adapter");
        memory.forget();
        assert!(!memory.knows(&[(1, 0)], " "));
    }

    #[test]
    fn the_oldest_answer_gives_way_and_a_part_without_a_beginning_is_not_kept() {
        let mut memory = AnswerMemory::default();
        memory.note(&[(99, 0)], " ", &said(&[1]), chosen(2));
        assert_eq!(next(&memory, 99, &[1]), None);
        for prompt in 0..=ANSWERS as u32 {
            memory.note(&[(prompt, 0)], " ", &[], chosen(7));
        }
        assert_eq!((next(&memory, 0, &[]), next(&memory, 1, &[])), (None, Some(7)));
    }
}
