//! The experts that the tokens of a KV cache went through, for the record of an answer.
//!
//! They are read while a token's keys and values are computed and kept with these, so that a
//! prompt whose beginning is reused has them for all of its tokens. An answer that is given again
//! computes nothing, and its cells may be gone: its experts are kept with it.

use super::{Cell, LlamaEngine, common_prefix};
use feedback::experts::ChosenExperts;
use std::collections::VecDeque;

/// Answers whose experts are kept: somewhat more than those that can be given again.
const ANSWERS: usize = 8;

/// The experts of the latest answers.
#[derive(Default)]
pub(super) struct AnswerExperts {
    /// The latest last.
    answers: VecDeque<Known>,
}

struct Known {
    /// The cells of prompt and answer that were computed.
    path: Vec<Cell>,
    /// The cell from which on `choices` are known.
    from: usize,
    choices: Vec<u8>,
}

impl AnswerExperts {
    fn note(&mut self, known: Known) {
        self.answers.retain(|other| other.path != known.path);
        if self.answers.len() == ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back(known);
    }

    /// The choices of `path[from..]`, if an answer went along it.
    fn find(&self, path: &[Cell], from: usize, token_bytes: usize) -> Option<&[u8]> {
        let goes_along = |known: &&Known| known.from <= from && known.path.starts_with(path);
        let known = self.answers.iter().rev().find(goes_along)?;
        known
            .choices
            .get((from - known.from) * token_bytes..(path.len() - known.from) * token_bytes)
    }

    pub fn forget(&mut self) {
        self.answers.clear();
    }
}

impl LlamaEngine {
    /// The bytes of a cell's experts; 0 if the model has none.
    pub(super) fn expert_bytes(&self) -> usize {
        self.experts.map_or(0, |layout| layout.token_bytes())
    }

    /// The experts of a sequence's cells from `from` to `to`.
    pub(super) fn experts_of(&self, sequence: usize, from: usize, to: usize) -> &[u8] {
        let bytes = self.expert_bytes();
        self.sequences[sequence].experts.get(from * bytes..to * bytes).unwrap_or_default()
    }

    /// The record of the experts that prompt and answer went through from the cell `from` on. The
    /// last cell of `path` is the answer's last token, which nobody computes.
    pub(super) fn experts_along(
        &self,
        sequence: usize,
        path: &[Cell],
        from: usize,
    ) -> Option<ChosenExperts> {
        let (layout, (_, fed)) = (self.experts?, path.split_last()?);
        let held = common_prefix(&self.sequences[sequence].cells, fed);
        let remembered = || self.answer_experts.find(fed, from, layout.token_bytes());
        let choices = match (held < fed.len()).then(remembered).flatten() {
            Some(choices) => choices,
            None => self.experts_of(sequence, from, held.max(from)),
        };
        ChosenExperts::new(layout, choices)
    }

    /// Keeps the experts of an answer with it, if the sequence has them all.
    pub(super) fn remember_experts(&mut self, sequence: usize, path: &[Cell], from: usize) {
        let Some((_, fed)) = path.split_last().filter(|_| self.experts.is_some()) else { return };
        if self.sequences[sequence].cells.starts_with(fed) && from < fed.len() {
            let choices = self.experts_of(sequence, from, fed.len()).to_vec();
            self.answer_experts.note(Known { path: fed.to_vec(), from, choices });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(path: &[u32], from: usize) -> Known {
        let choices = (from..path.len()).map(|cell| cell as u8).collect();
        Known { path: path.iter().map(|token| (*token, 1)).collect(), from, choices }
    }

    fn find(experts: &AnswerExperts, path: &[u32], from: usize) -> Option<Vec<u8>> {
        let path: Vec<Cell> = path.iter().map(|token| (*token, 1)).collect();
        experts.find(&path, from, 1).map(<[u8]>::to_vec)
    }

    #[test]
    fn an_answer_that_is_told_again_has_its_experts() {
        let mut experts = AnswerExperts::default();
        experts.note(known(&[7, 8, 9, 4, 5], 2));
        assert_eq!(find(&experts, &[7, 8, 9, 4, 5], 2), Some(vec![2, 3, 4]));
        assert_eq!(find(&experts, &[7, 8, 9, 4], 3), Some(vec![3]), "typed along");
        assert_eq!(find(&experts, &[7, 8, 9, 4], 1), None, "its beginning is not known");
        assert_eq!(find(&experts, &[7, 8, 9, 6], 2), None, "another answer");
        assert!(experts.find(&[(7, 0), (8, 0)], 2, 1).is_none(), "another adapter");
        for answer in 0..ANSWERS as u32 {
            experts.note(known(&[answer, answer], 1));
        }
        assert_eq!(find(&experts, &[7, 8, 9, 4, 5], 2), None, "the oldest gives way");
        experts.forget();
        assert_eq!(find(&experts, &[1, 1], 1), None);
    }
}
