//! Drafts: a text that may follow the prompt goes through the model together with it. Where the
//! model would have said the same, its tokens need no pass of their own.
//!
//! Every token is still chosen from the model's own logits at its place, as without a draft. The
//! first that differs from the draft ends its use, and what was computed behind is dropped.

use super::{Cell, LlamaEngine};
use crate::sampler::Softmax;
use crate::{Answer, Draft, Generated, Request};
use feedback::event::{AdapterVersion, StopReason, TokenRecord};
use std::time::Duration;

/// The tokens of a draft that go through the model in one pass.
const DRAFT_TOKENS_MAX: usize = 16;

/// The longest draft that is scored, in tokens: all of it goes through in one pass.
const SCORED_DRAFT_TOKENS_MAX: usize = 48;

/// The places of a sequence after which the context has logits: after its first `first` cells and
/// after each further one up to `last`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub sequence: usize,
    pub first: usize,
    pub last: usize,
}

/// A draft as the model would read it, with the text that healing cut before it.
#[derive(Debug, Default)]
pub struct DraftTokens {
    tokens: Vec<u32>,
    is_scored: bool,
}

impl DraftTokens {
    pub fn is_scored(&self) -> bool {
        self.is_scored
    }

    /// The cells to compute ahead behind an answer that begins with `said`. There are none once the
    /// answer differs from the draft.
    pub(super) fn behind(&self, said: &[TokenRecord], adapter: AdapterVersion) -> Vec<Cell> {
        let said: Vec<u32> = said.iter().map(|token| token.id).collect();
        let Some(left) = self.tokens.strip_prefix(&said[..]) else { return vec![] };
        // Nothing is asked of the place behind the last token.
        let Some((_, fed)) = left.split_last() else { return vec![] };
        let whole = self.is_scored && said.is_empty();
        let most = if whole { SCORED_DRAFT_TOKENS_MAX } else { DRAFT_TOKENS_MAX };
        fed.iter().take(most).map(|token| (*token, adapter)).collect()
    }
}

/// The answer to a request whose draft can be offered before the prompt is computed.
pub(super) fn without_model(
    prompt: Vec<u32>,
    adapter_from: usize,
    without_context: bool,
) -> Generated {
    Generated {
        prompt,
        adapter_from,
        prompt_reused: 0,
        prompt_evaluated: 0,
        prompt_time: Duration::ZERO,
        without_context,
        answers: vec![],
        draft: None,
    }
}

impl LlamaEngine {
    pub(super) fn draft_tokens(&self, request: &Request) -> DraftTokens {
        let Some(Draft { text, is_scored, .. }) = &request.draft else {
            return DraftTokens::default();
        };
        let tokens = self.tokenize(&format!("{}{text}\n", request.prompt.healing));
        let is_scored = *is_scored && tokens.len() <= SCORED_DRAFT_TOKENS_MAX;
        DraftTokens { tokens, is_scored }
    }

    /// Whether the request's draft can be offered before the prompt is computed.
    pub(super) fn takes_too_long(&self, request: &Request, cells: &[Cell]) -> bool {
        let takes = || self.speed.time_of(self.missing(cells));
        request.draft.as_ref().is_some_and(|draft| draft.wait < takes())
    }

    /// The logits after the first `cells` cells of a sequence, if the context has them.
    pub(super) fn row(&self, sequence: usize, cells: usize) -> Option<&[f32]> {
        let rows = self.rows.filter(|rows| rows.sequence == sequence)?;
        let is_there = (rows.first..=rows.last).contains(&cells);
        is_there.then(|| self.context.logits_at(rows.last - cells + 1)).flatten()
    }

    /// Whether the context has the logits after exactly these cells.
    pub(super) fn has_row(&self, sequence: usize, cells: &[Cell]) -> bool {
        let held = &self.sequences[sequence].cells;
        held.starts_with(cells) && self.row(sequence, cells.len()).is_some()
    }

    /// The draft as an answer, if it is to be scored and the model could say it, and whether greedy
    /// decoding says the same. The prompt and the draft have just been computed.
    pub(super) fn scored_draft(
        &self,
        request: &Request,
        (prompt, adapter_from): (&[Cell], usize),
        sequence: usize,
        draft: &DraftTokens,
    ) -> Option<(Answer, bool)> {
        let mut need = request.prompt.healing.as_bytes();
        let mut is_greedy = true;
        let mut answer = Answer {
            tokens: vec![],
            visible_logprobs: vec![],
            healed: 0,
            text: vec![],
            ends: vec![],
            given_up: None,
            stop: StopReason::Newline,
            decode_time: Duration::ZERO,
            experts: None,
        };
        for (index, id) in draft.tokens.iter().enumerate().filter(|_| draft.is_scored) {
            let logits = self.row(sequence, prompt.len() + index)?;
            let temperature = request.sampling.policy_temperature();
            let softmax = Softmax::new(logits, &self.vocab, need, temperature)?;
            // Healing may allow other tokens only.
            softmax.logprob_of(&[*id])?;
            is_greedy &= softmax.best == *id;
            let chosen = softmax.choice(*id, softmax.logit(*id));
            if !chosen.token.logprob.is_finite() {
                return None;
            }
            let piece = self.vocab.piece(*id);
            answer.healed += usize::from(!need.is_empty() && piece.len() <= need.len());
            need = &need[piece.len().min(need.len())..];
            answer.tokens.push(chosen.token);
            answer.visible_logprobs.push(chosen.visible_logprob);
            answer.text.extend_from_slice(piece);
            answer.ends.push(answer.text.len());
        }
        let said = draft.tokens.iter().map(|token| (*token, request.adapter));
        let path: Vec<Cell> = prompt.iter().copied().chain(said).collect();
        answer.experts = self.experts_along(sequence, &path, adapter_from);
        (!answer.tokens.is_empty()).then_some((answer, is_greedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(ids: &[u32]) -> Vec<TokenRecord> {
        ids.iter().map(|&id| TokenRecord { id, logprob: 0.0 }).collect()
    }

    fn ahead(draft: &DraftTokens, ids: &[u32]) -> Vec<u32> {
        draft.behind(&said(ids), 3).iter().map(|cell| cell.0).collect()
    }

    #[test]
    fn a_draft_goes_on_where_the_answer_agrees_with_it() {
        let draft = DraftTokens { tokens: vec![1, 2, 3, 4], is_scored: false };
        assert_eq!(draft.behind(&[], 3), [(1, 3), (2, 3), (3, 3)], "under the adapter");
        assert_eq!(ahead(&draft, &[1, 2]), [3]);
        assert!(ahead(&draft, &[1, 2, 3]).is_empty(), "the last token needs no look ahead");
        assert!(ahead(&draft, &[1, 9]).is_empty() && ahead(&draft, &[1, 2, 3, 4, 5]).is_empty());
        assert!(ahead(&DraftTokens::default(), &[]).is_empty());
    }

    #[test]
    fn a_long_draft_goes_piece_by_piece_unless_it_is_scored() {
        let tokens: Vec<u32> = (0..40).collect();
        let mut draft = DraftTokens { tokens, is_scored: false };
        assert_eq!(ahead(&draft, &[]).len(), DRAFT_TOKENS_MAX);
        draft.is_scored = true;
        assert_eq!(ahead(&draft, &[]).len(), 39);
        assert_eq!(ahead(&draft, &[0]).len(), DRAFT_TOKENS_MAX);
    }
}
