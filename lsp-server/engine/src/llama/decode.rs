//! Decoding: from a prompt in the KV to the answers behind it.

mod memory;
mod repetition;

use super::{Cell, LlamaEngine};
use crate::sampler::{Chosen, Sampler};
use crate::{Answer, EngineError, Request};
use completion::limits::TOKENS_MAX;
use feedback::event::{StopReason, TokenRecord};
use feedback::experts::ChosenExperts;
pub use memory::AnswerMemory;
use memory::Place;
use models::vocab::Vocab;
use repetition::repeats_from;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Tokens among which an alternative may part from the first answer. One that parts late
/// reads the same.
const FORK_TOKENS: usize = 8;

/// Alternatives tried for each one wanted, because some read like an answer there is.
const FORK_ATTEMPTS: usize = 2;

/// Part of a request's time budget that alternatives may add to it, because the user waits
/// for the first answer too.
const ALTERNATIVES_SHARE: u32 = 4;

/// The part that the answers to one request have in common.
pub struct Decoding<'a> {
    pub request: &'a Request,
    pub prompt: &'a [Cell],
    /// The cell from which on the adapter acts.
    pub adapter_from: usize,
    pub sequence: usize,
    pub deadline: Instant,
    pub abort: &'a AtomicBool,
}

/// The line that decoding is at.
#[derive(Default)]
struct Line {
    first_token: usize,
    first_byte: usize,
    /// ln π of what was said of it, healing aside.
    logprob: f32,
}

/// A place where another answer may part from the first.
struct Fork {
    /// Index of the token that would be another.
    at: usize,
    token: TokenRecord,
    /// ln π of the beginning with it.
    logprob: f32,
}

/// An answer in the making.
struct PartialAnswer<'a> {
    request: &'a Request,
    /// The text that healing has yet to reproduce.
    need: &'a [u8],
    /// The prompt, and what was said.
    path: Vec<Cell>,
    tokens: Vec<TokenRecord>,
    visible_logprobs: Vec<f32>,
    healed: usize,
    text: Vec<u8>,
    ends: Vec<usize>,
    /// ln π of all tokens.
    logprob: f32,
    line: Line,
    /// The index in `text` from which on the answer only repeats itself.
    given_up: Option<usize>,
}

impl<'a> PartialAnswer<'a> {
    fn new(decoding: &Decoding<'a>) -> PartialAnswer<'a> {
        PartialAnswer {
            request: decoding.request,
            need: decoding.request.prompt.healing.as_bytes(),
            path: decoding.prompt.to_vec(),
            tokens: vec![],
            visible_logprobs: vec![],
            healed: 0,
            text: vec![],
            ends: vec![],
            logprob: 0.0,
            line: Line::default(),
            given_up: None,
        }
    }

    fn is_full(&self) -> bool {
        self.tokens.len() >= (self.line.first_token + self.request.max_tokens).min(TOKENS_MAX)
    }

    /// Appends a token, and breaks if the answer ends with it.
    fn push(&mut self, next: Chosen, vocab: &Vocab, stop: &[u32]) -> ControlFlow<StopReason> {
        let Chosen { token, visible_logprob } = next;
        let piece = vocab.piece(token.id);
        let spilled = piece.len() > self.need.len();
        self.healed += usize::from(!spilled && !self.need.is_empty());
        self.tokens.push(token);
        self.visible_logprobs.push(visible_logprob);
        self.path.push((token.id, self.request.adapter));
        self.logprob += token.logprob;
        if spilled {
            self.line.logprob += visible_logprob;
        }
        self.text.extend_from_slice(piece);
        self.ends.push(self.text.len());
        self.need = &self.need[piece.len().min(self.need.len())..];
        if self.is_too_unlikely() {
            return ControlFlow::Break(StopReason::LowConfidence);
        }
        if piece.is_empty() || stop.contains(&token.id) {
            return ControlFlow::Break(StopReason::StopToken);
        }
        let said = &self.text[self.request.prompt.healing.len().min(self.text.len())..];
        if spilled && let Some(stop) = self.request.stop_rule.stop(said, piece) {
            return ControlFlow::Break(stop);
        }
        if let Some(first) = self.repetition(vocab) {
            self.given_up = Some(self.ends[first - 1]);
            return ControlFlow::Break(StopReason::Repetition);
        }
        if piece.contains(&b'\n') {
            let (first_token, first_byte) = (self.tokens.len(), self.text.len());
            self.line = Line { first_token, first_byte, logprob: 0.0 };
        }
        ControlFlow::Continue(())
    }

    fn is_too_unlikely(&self) -> bool {
        let new = self.tokens.len() - self.line.first_token.max(self.healed);
        crate::is_too_unlikely(self.line.logprob, new, self.request.min_token_probability)
    }

    /// The token from which on the answer only repeats itself.
    fn repetition(&self, vocab: &Vocab) -> Option<usize> {
        let new = &self.tokens[self.healed..];
        let has_letter = |token: &TokenRecord| {
            String::from_utf8_lossy(vocab.piece(token.id)).contains(char::is_alphabetic)
        };
        let is_blank = |token: &TokenRecord| vocab.piece(token.id).trim_ascii().is_empty();
        let first = repeats_from(new, |a, b| a.id == b.id, has_letter, is_blank)?;
        Some(self.healed + first)
    }

    fn end(
        self,
        stop: StopReason,
        decode_time: Duration,
        experts: Option<ChosenExperts>,
    ) -> Answer {
        let unlikely = (stop == StopReason::LowConfidence).then_some(self.line.first_byte);
        Answer {
            tokens: self.tokens,
            visible_logprobs: self.visible_logprobs,
            healed: self.healed,
            text: self.text,
            ends: self.ends,
            given_up: self.given_up.or(unlikely),
            stop,
            decode_time,
            experts,
        }
    }
}

impl LlamaEngine {
    /// Returns true if what follows the prompt is known from an earlier answer.
    pub fn repeats(&self, request: &Request, prompt: &[Cell]) -> bool {
        let healing = request.prompt.healing.as_str();
        let place =
            Place { path: prompt, prompt: prompt.len(), healing, is_free: healing.is_empty() };
        request.sampling.temperature == 0.0
            && request.alternatives == 0
            && self.memory.next(place).is_some()
    }

    /// The first answer behind the prompt, and the alternatives that the request wants.
    pub fn answers(&mut self, decoding: &Decoding) -> Result<Vec<Answer>, EngineError> {
        let request = decoding.request;
        let mut sampler = Sampler::new(request.sampling);
        let mut forks = vec![];
        let wanted = (request.alternatives > 0).then_some(&mut forks);
        let first = self.answer(decoding, &mut sampler, &[], wanted)?;
        forks.retain(|fork| fork.at < self.visible(&first, request));
        let mut answers = vec![first];
        let deadline = decoding.deadline.min(Instant::now() + request.budget / ALTERNATIVES_SHARE);
        let decoding = Decoding { deadline, ..*decoding };
        // The likeliest beginnings first.
        forks.sort_by(|a, b| b.logprob.total_cmp(&a.logprob));
        for fork in forks.iter().take(FORK_ATTEMPTS * request.alternatives) {
            if answers.len() > request.alternatives || Instant::now() >= decoding.deadline {
                break;
            }
            let mut beginning = answers[0].tokens[..fork.at].to_vec();
            beginning.push(fork.token);
            let other = self.answer(&decoding, &mut sampler, &beginning, None)?;
            let text = showable(&other, request);
            if other.is_whole() && answers.iter().all(|known| showable(known, request) != text) {
                answers.push(other);
            }
        }
        Ok(answers)
    }

    /// One answer behind the prompt that begins with `beginning`. Places where another answer
    /// may part from it go into `forks`.
    fn answer(
        &mut self,
        decoding: &Decoding,
        sampler: &mut Sampler,
        beginning: &[TokenRecord],
        mut forks: Option<&mut Vec<Fork>>,
    ) -> Result<Answer, EngineError> {
        let started = Instant::now();
        let mut answer = PartialAnswer::new(decoding);
        let mut given = beginning.iter();
        let stop = loop {
            if answer.is_full() {
                break StopReason::MaxTokens;
            }
            let next = if let Some(token) = given.next() {
                Chosen { token: *token, visible_logprob: token.logprob }
            } else {
                match self.next(decoding, &answer, sampler, forks.as_deref_mut())? {
                    ControlFlow::Continue(next) => next,
                    ControlFlow::Break(stop) => break stop,
                }
            };
            if let ControlFlow::Break(stop) = answer.push(next, &self.vocab, &self.fim.stop) {
                break stop;
            }
        };
        let Decoding { sequence, adapter_from, .. } = *decoding;
        let experts = self.experts_along(sequence, &answer.path, adapter_from);
        self.remember_experts(sequence, &answer.path, adapter_from);
        Ok(answer.end(stop, started.elapsed(), experts))
    }

    /// The token that follows, or why none does.
    fn next(
        &mut self,
        decoding: &Decoding,
        answer: &PartialAnswer,
        sampler: &mut Sampler,
        forks: Option<&mut Vec<Fork>>,
    ) -> Result<ControlFlow<StopReason, Chosen>, EngineError> {
        let Decoding { request, sequence, deadline, abort, .. } = *decoding;
        // To find forks, the probabilities of other tokens are needed too.
        let is_greedy = request.sampling.temperature == 0.0 && forks.is_none();
        let place = Place {
            path: &answer.path,
            prompt: decoding.prompt.len(),
            healing: request.prompt.healing.as_str(),
            is_free: answer.need.is_empty(),
        };
        if is_greedy && let Some(next) = self.memory.next(place) {
            return Ok(ControlFlow::Continue(next));
        }
        if !answer.tokens.is_empty() && Instant::now() >= deadline {
            return Ok(ControlFlow::Break(StopReason::Budget));
        }
        self.reach(sequence, &answer.path, None, abort)?;
        let logits = self.logits(sequence, answer.path.len()).unwrap_or_default();
        let Some(next) = sampler.choose(logits, &self.vocab, answer.need) else {
            return Ok(ControlFlow::Break(StopReason::HealingFailed));
        };
        if !next.token.logprob.is_finite() {
            return Err(EngineError::NotFinite(request.adapter));
        }
        let at = answer.tokens.len();
        if let Some(forks) = forks
            && at < FORK_TOKENS
        {
            let others = sampler.runners_up(logits, &self.vocab, answer.need, next.token);
            forks.extend(others.into_iter().map(|token| Fork {
                at,
                token,
                logprob: answer.logprob + token.logprob,
            }));
        }
        if is_greedy {
            self.memory.note(place, next, request.adapter);
        }
        Ok(ControlFlow::Continue(next))
    }

    /// Number of tokens at which another answer may part from this one and look different. An
    /// answer of several lines may end with tokens that were only needed to find its end.
    fn visible(&self, answer: &Answer, request: &Request) -> usize {
        if request.stop_rule.lines() == 1 {
            return usize::MAX;
        }
        let end = request.prompt.healing.len() + showable(answer, request).len();
        let mut start = 0;
        let begins_within = |token: &&TokenRecord| {
            let is_within = start <= end;
            start += self.vocab.piece(token.id).len();
            is_within
        };
        answer.tokens.iter().take_while(begins_within).count()
    }
}

/// The part of an answer that can be shown.
fn showable<'a>(answer: &'a Answer, request: &Request) -> &'a [u8] {
    let said = answer.offered().get(request.prompt.healing.len()..).unwrap_or_default();
    request.stop_rule.within(said).trim_ascii_end()
}
