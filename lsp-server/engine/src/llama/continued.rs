//! Continues files with the likeliest text.
//!
//! Most of an answer is a copy of what the prompt has. So what followed the last tokens before is
//! guessed to follow again, and one pass computes all guesses (prompt lookup decoding). Those that
//! the model chooses too are kept: the answer is the one that it would give token by token.

use super::kv_cache::base_cells;
use super::layout::Layout;
use super::{Cell, LlamaEngine};
use crate::EngineError;
use crate::continuation::{Continuation, Continued};
use crate::sampler::{Chosen, Sampler};
use feedback::event::Sampling;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The tokens that must have stood together before for what followed them to be guessed.
const KNOWN_TOKENS: usize = 3;

/// The most tokens that are guessed at once. On a processor each costs nearly half a pass more, so
/// that more of them gain little where they are right, and cost much where they are wrong.
const GUESSES_MAX: usize = 8;

impl LlamaEngine {
    pub(super) fn continued(
        &mut self,
        request: &Continuation,
        abort: &AtomicBool,
    ) -> Result<Continued, EngineError> {
        let started = Instant::now();
        let deadline = started + request.budget;
        self.context.set_threads(self.threads.now());
        let cells = self.files_cells(request)?;
        let layout = Layout {
            prompt: vec![],
            adapter_from: cells.len(),
            cells: cells.clone(),
            shows_code_to: None,
        };
        let sequence = self.use_sequence(&layout);
        let (prompt_reused, prompt_evaluated) =
            self.reach(sequence, &cells, Some(deadline), abort)?;
        self.speed.note(prompt_evaluated, started.elapsed());
        let (mut path, mut text, mut is_whole) = (cells, vec![], false);
        let mut logprobs = vec![];
        let prompt = path.len();
        let mut guesses = VecDeque::new();
        // The logits after the path are those after this last token of a pass, counted from 1.
        let mut back = 1;
        while path.len() - prompt < request.max_tokens && Instant::now() < deadline {
            let Some(next) = self.likeliest(back)? else { break };
            let id = next.token.id;
            if self.fim.stop.contains(&id) {
                is_whole = true;
                break;
            }
            let piece = self.vocab.piece(id);
            text.extend_from_slice(piece);
            logprobs.push((text.len(), next.token.logprob));
            path.push((id, 0));
            if piece.contains(&b'\n') && request.enough.is(&String::from_utf8_lossy(&text)) {
                break;
            }
            if guesses.pop_front() == Some(id) {
                back -= 1;
                continue;
            }
            self.truncate(sequence, path.len() - 1);
            guesses = guessed(&path).into();
            let cells: Vec<Cell> = [id].iter().chain(&guesses).map(|id| (*id, 0)).collect();
            self.decode(sequence, &cells, 0, abort)?;
            back = cells.len();
        }
        self.truncate(sequence, path.len());
        Ok(Continued {
            text: String::from_utf8_lossy(&text).into_owned(),
            logprobs,
            is_whole,
            prompt_reused,
            prompt_evaluated,
            tokens: (path.len() - prompt) as u32,
            took: started.elapsed(),
        })
    }

    /// The token that the model chooses after the `back`th last one of the last pass.
    fn likeliest(&self, back: usize) -> Result<Option<Chosen>, EngineError> {
        let logits = self.context.logits_at(back).unwrap_or_default();
        let next = Sampler::new(Sampling::GREEDY).choose(logits, &self.vocab, &[]);
        match next {
            Some(next) if !next.token.logprob.is_finite() => Err(EngineError::NotFinite(0)),
            next => Ok(next),
        }
    }

    /// The tokens of the files, each behind the token for one. The first files are left out if
    /// there is no room for all.
    fn files_cells(&self, request: &Continuation) -> Result<Vec<Cell>, EngineError> {
        let unfit = |what: &str| EngineError::Failed(format!("the model {what}"));
        let marker = self.fim.files.ok_or_else(|| unfit("reads no files"))?.file;
        let mut files: VecDeque<Vec<u32>> =
            request.files.iter().map(|file| [vec![marker], self.tokenize(file)].concat()).collect();
        let room = self.prompt_tokens.saturating_sub(request.max_tokens);
        while files.iter().map(Vec::len).sum::<usize>() > room {
            files.pop_front();
        }
        match files.is_empty() {
            true => Err(unfit("cannot read a text of this length")),
            false => Ok(base_cells(&files.into_iter().flatten().collect::<Vec<u32>>())),
        }
    }
}

/// What followed the last tokens of a text when they stood there before, the last time.
fn guessed(path: &[Cell]) -> Vec<u32> {
    let Some(start) = path.len().checked_sub(KNOWN_TOKENS) else { return vec![] };
    let known = &path[start..];
    let before = path[..path.len() - 1].windows(KNOWN_TOKENS).rposition(|cells| cells == known);
    let follow = before.map_or(&[][..], |at| &path[at + KNOWN_TOKENS..]);
    follow.iter().take(GUESSES_MAX).map(|cell| cell.0).collect()
}
