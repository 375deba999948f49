//! The sequences of the KV cache: which one a prompt continues from, and how a prompt's keys and
//! values leave and come back.

use super::layout::{FileName, Layout};
use super::{Cell, LlamaEngine};
use crate::EngineError;
use crate::caching_engine::{KvAccess, KvSlot};
use completion::prompt::FimPrompt;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Prompts whose KV is kept: documents the user goes back and forth between.
pub(super) const SEQUENCES: usize = 4;

/// The sequence in which texts are scored, so that no document loses its KV.
pub(super) const SCORING: usize = SEQUENCES;

#[derive(Default)]
pub(super) struct Sequence {
    pub(super) cells: Vec<Cell>,
    /// The experts that each cell went through. Empty if the model has none.
    pub(super) experts: Vec<u8>,
    pub(super) used_at: u64,
    /// The file in whose prompt it shows other code.
    pub(super) shows_code_to: Option<FileName>,
}

impl LlamaEngine {
    /// Lends the scoring sequence what a document's has of this prompt. A text is scored soon
    /// after a completion at the same place, and most of that prompt is still there.
    pub(super) fn lend(&mut self, prompt: &[Cell]) {
        let shared = |sequence: &Sequence| common_prefix(&sequence.cells, prompt);
        let best = (0..SEQUENCES).max_by_key(|&i| shared(&self.sequences[i])).unwrap_or(0);
        let held = shared(&self.sequences[best]);
        if held > shared(&self.sequences[SCORING]) {
            self.truncate(SCORING, 0);
            self.context.copy(best, SCORING, held);
            self.sequences[SCORING].cells.extend_from_slice(&prompt[..held]);
            let experts = self.experts_of(best, 0, held).to_vec();
            self.sequences[SCORING].experts = experts;
        }
    }

    pub(super) fn truncate(&mut self, sequence: usize, length: usize) {
        self.context.forget(sequence, length);
        self.sequences[sequence].cells.truncate(length);
        let experts = length * self.expert_bytes();
        self.sequences[sequence].experts.truncate(experts);
    }

    /// The sequence that holds most of this prompt, or else the one that shows the same file other
    /// code, or else the one used longest ago.
    pub(super) fn choose_sequence(
        &self,
        cells: &[Cell],
        shows_code_to: Option<&FileName>,
    ) -> usize {
        let shared = |s: &Sequence| common_prefix(&s.cells, cells);
        let best = (0..SEQUENCES).max_by_key(|&i| shared(&self.sequences[i])).unwrap_or(0);
        // Sharing only a header is no reason to throw another document's KV away.
        if shared(&self.sequences[best]) * 2 >= self.sequences[best].cells.len() {
            return best;
        }
        // Once other code is chosen, nobody asks for what was shown before.
        let is_before = |&i: &usize| {
            shows_code_to.is_some() && self.sequences[i].shows_code_to.as_ref() == shows_code_to
        };
        let oldest = || (0..SEQUENCES).min_by_key(|&i| self.sequences[i].used_at);
        (0..SEQUENCES).find(is_before).or_else(oldest).unwrap_or(0)
    }

    /// Chooses a sequence for this prompt, and remembers that it was used last.
    pub(super) fn use_sequence(&mut self, layout: &Layout) -> usize {
        let Layout { cells, shows_code_to, .. } = layout;
        let chosen = self.choose_sequence(cells, shows_code_to.as_ref());
        self.clock += 1;
        let sequence = &mut self.sequences[chosen];
        sequence.used_at = self.clock;
        sequence.shows_code_to.clone_from(shows_code_to);
        chosen
    }

    /// The sequence of a slot for a prompt. The scoring sequence is lent what a document's has.
    pub(super) fn sequence_of(&mut self, slot: KvSlot, cells: &[Cell]) -> usize {
        match slot {
            KvSlot::Document => self.choose_sequence(cells, None),
            KvSlot::Scoring => {
                self.lend(cells);
                SCORING
            }
        }
    }
}

/// Cells that the base computes.
pub(super) fn base_cells(tokens: &[u32]) -> Vec<Cell> {
    tokens.iter().map(|&token| (token, 0)).collect()
}

pub(super) fn common_prefix(a: &[Cell], b: &[Cell]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl KvAccess for LlamaEngine {
    fn prompt_tokens(&self, prompt: &FimPrompt) -> (Vec<u32>, usize) {
        LlamaEngine::prompt_tokens(self, prompt)
    }

    fn missing_tokens(&mut self, slot: KvSlot, prompt: &[u32]) -> usize {
        let cells = base_cells(prompt);
        let sequence = self.sequence_of(slot, &cells);
        cells.len() - common_prefix(&self.sequences[sequence].cells, &cells)
    }

    fn compute_kv(
        &mut self,
        slot: KvSlot,
        prompt: &[u32],
        deadline: Option<Instant>,
        abort: &AtomicBool,
    ) -> Result<Vec<u8>, EngineError> {
        let cells = base_cells(prompt);
        let sequence = self.sequence_of(slot, &cells);
        self.context.set_threads(self.threads.now());
        self.reach(sequence, &cells, deadline, abort)?;
        Ok(self.context.state(sequence))
    }

    fn restore_kv(&mut self, slot: KvSlot, prompt: &[u32], state: &[u8]) -> bool {
        let cells = base_cells(prompt);
        let sequence = self.sequence_of(slot, &cells);
        self.logits_after = None;
        self.truncate(sequence, 0);
        let is_restored =
            self.context.restore(sequence, state) && self.context.length(sequence) == cells.len();
        if is_restored {
            let experts = self.experts.map(|layout| layout.unknown(cells.len()));
            self.sequences[sequence].experts = experts.unwrap_or_default();
            self.sequences[sequence].cells = cells;
        } else {
            self.context.forget(sequence, 0);
        }
        is_restored
    }
}
