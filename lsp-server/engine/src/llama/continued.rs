//! Continues files with the likeliest text.

use super::kv_cache::base_cells;
use super::layout::Layout;
use super::{Cell, LlamaEngine};
use crate::EngineError;
use crate::continuation::{Continuation, Continued};
use crate::sampler::Sampler;
use feedback::event::Sampling;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

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
        let mut sampler = Sampler::new(Sampling::GREEDY);
        let (mut path, mut text, mut is_whole) = (cells, vec![], false);
        let mut logprobs = vec![];
        let prompt = path.len();
        while path.len() - prompt < request.max_tokens && Instant::now() < deadline {
            self.reach(sequence, &path, None, abort)?;
            let logits = self.logits(sequence, path.len()).unwrap_or_default();
            let Some(next) = sampler.choose(logits, &self.vocab, &[]) else { break };
            if !next.token.logprob.is_finite() {
                return Err(EngineError::NotFinite(0));
            }
            if self.fim.stop.contains(&next.token.id) {
                is_whole = true;
                break;
            }
            text.extend_from_slice(self.vocab.piece(next.token.id));
            logprobs.push((text.len(), next.token.logprob));
            path.push((next.token.id, 0));
        }
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
