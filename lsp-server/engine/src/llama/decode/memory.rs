//! The latest answers. The user may ask again what was computed ahead of time, or type a part of an
//! answer, and then nothing is computed twice: when the model decodes greedily, it says the same.

use super::super::Cell;
use crate::sampler::Chosen;
use feedback::event::AdapterVersion;
use std::collections::VecDeque;

/// Answers that are kept: the one on screen, the one behind it, and the one on the next line, each
/// with an older one.
const ANSWERS: usize = 6;

#[derive(Default)]
pub struct AnswerMemory {
    /// The latest last.
    answers: VecDeque<Known>,
}

/// A place in an answer: a request's prompt, and what was said behind it.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The prompt, and what was said.
    pub path: &'a [Cell],
    /// The length of the prompt.
    pub prompt: usize,
    /// The text that the answer has to reproduce.
    pub healing: &'a str,
    /// True if all of that text is reproduced, so that the next token is chosen freely.
    pub is_free: bool,
}

/// The greedy answer of the model after a prompt, the text that healing reproduces included.
struct Known {
    /// The prompt, and what was said.
    path: Vec<Cell>,
    /// The length of the prompt.
    prompt: usize,
    healing: String,
    /// The index in `path` of the first token that was chosen freely, once there is one.
    free_from: Option<usize>,
    /// The tokens of the answer.
    tokens: Vec<Chosen>,
}

impl AnswerMemory {
    /// The token that follows in the answer to this request, or in an answer of which a part has
    /// been typed since.
    pub fn next(&self, place: Place) -> Option<Chosen> {
        self.answers.iter().rev().find_map(|known| known.next(place))
    }

    /// Remembers the token that follows.
    pub fn note(&mut self, place: Place, next: Chosen, adapter: AdapterVersion) {
        let continues = |known: &Known| known.path == place.path && known.fits(place);
        let at = self.answers.iter().rposition(continues);
        let mut known = match at.and_then(|at| self.answers.remove(at)) {
            Some(known) => known,
            None if place.path.len() == place.prompt => Known {
                path: place.path.to_vec(),
                prompt: place.prompt,
                healing: place.healing.to_owned(),
                free_from: None,
                tokens: vec![],
            },
            // Its beginning is not known, so it cannot be given again.
            None => return,
        };
        if place.is_free {
            known.free_from.get_or_insert(place.path.len());
        }
        known.path.push((next.token.id, adapter));
        known.tokens.push(next);
        if self.answers.len() == ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back(known);
    }

    pub fn forget(&mut self) {
        self.answers.clear();
    }
}

impl Known {
    fn next(&self, place: Place) -> Option<Chosen> {
        let said = place.path.len().checked_sub(self.prompt)?;
        let token = self.tokens.get(said)?;
        (self.fits(place) && self.path.starts_with(place.path)).then_some(*token)
    }

    /// Returns true if this is an answer to the same request, or its text is chosen freely at a
    /// place that has nothing to reproduce either.
    fn fits(&self, place: Place) -> bool {
        let is_same = place.prompt == self.prompt && place.healing == self.healing;
        let is_free = self.free_from.is_some_and(|from| from <= place.path.len());
        is_same || place.is_free && is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::event::TokenRecord;

    const ADAPTER: AdapterVersion = 1;

    fn chosen(id: u32) -> Chosen {
        let token = TokenRecord { id, logprob: -0.1 };
        Chosen { token, visible_logprob: -0.1 }
    }

    /// A prompt of one token of the base, and what was said behind it.
    fn path(prompt: u32, said: &[u32]) -> Vec<Cell> {
        let said = said.iter().map(|&id| (id, ADAPTER));
        std::iter::once((prompt, 0)).chain(said).collect()
    }

    /// A place behind a prompt of so many tokens.
    fn place<'a>(path: &'a [Cell], prompt: usize, healing: &'a str) -> Place<'a> {
        Place { path, prompt, healing, is_free: healing.is_empty() || path.len() > prompt }
    }

    fn note(memory: &mut AnswerMemory, prompt: u32, said: &[u32], next: u32) {
        memory.note(place(&path(prompt, said), 1, " "), chosen(next), ADAPTER);
    }

    fn next(memory: &AnswerMemory, prompt: u32, said: &[u32]) -> Option<u32> {
        memory.next(place(&path(prompt, said), 1, " ")).map(|chosen| chosen.token.id)
    }

    #[test]
    fn an_answer_is_told_again_to_the_same_request() {
        let mut memory = AnswerMemory::default();
        note(&mut memory, 1, &[], 7);
        note(&mut memory, 1, &[7], 8);
        assert_eq!((next(&memory, 1, &[]), next(&memory, 1, &[7])), (Some(7), Some(8)));
        assert_eq!(next(&memory, 1, &[7, 8]), None, "its end");
        assert_eq!(next(&memory, 1, &[9]), None, "another beginning");
        assert_eq!(next(&memory, 2, &[]), None, "another prompt");
        assert!(memory.next(place(&path(1, &[]), 1, "")).is_none(), "nothing to reproduce");
        assert!(memory.next(place(&[(1, 3)], 1, " ")).is_none(), "another adapter");
        memory.forget();
        assert_eq!(next(&memory, 1, &[]), None);
    }

    #[test]
    fn the_rest_of_an_answer_is_given_once_a_part_of_it_is_typed_and_can_continue() {
        let mut memory = AnswerMemory::default();
        for (said, token) in [(&[][..], 7), (&[7], 8), (&[7, 8], 9)] {
            note(&mut memory, 1, said, token);
        }
        let typed = path(1, &[7, 8]);
        let rest = |memory: &AnswerMemory, path: &[Cell], healing: &str| {
            memory.next(place(path, 3, healing)).map(|chosen| chosen.token.id)
        };
        assert_eq!(rest(&memory, &typed, ""), Some(9));
        assert_eq!(rest(&memory, &typed, "x"), None, "the typed text has to be reproduced");
        let whole = path(1, &[7, 8, 9]);
        assert_eq!(rest(&memory, &whole, ""), None);
        memory.note(place(&whole, 3, ""), chosen(10), ADAPTER);
        assert_eq!(rest(&memory, &whole, ""), Some(10));
        assert_eq!(next(&memory, 1, &[7, 8, 9]), Some(10), "the first request's answer is longer");
    }

    /// The token that healing has forced may not be what the model would say freely.
    #[test]
    fn what_healing_has_forced_is_told_to_the_same_request_alone() {
        let mut memory = AnswerMemory::default();
        note(&mut memory, 1, &[], 7);
        note(&mut memory, 1, &[7], 8);
        assert!(memory.next(place(&path(1, &[]), 1, "")).is_none());
        let typed = path(1, &[7]);
        assert!(memory.next(place(&typed, 2, "")).is_some());
    }

    #[test]
    fn the_oldest_answer_gives_way_and_a_part_without_a_beginning_is_not_kept() {
        let mut memory = AnswerMemory::default();
        note(&mut memory, 99, &[1], 2);
        assert_eq!(next(&memory, 99, &[1]), None);
        for prompt in 0..=ANSWERS as u32 {
            note(&mut memory, prompt, &[], 7);
        }
        assert_eq!((next(&memory, 0, &[]), next(&memory, 1, &[])), (None, Some(7)));
    }
}
