//! The real engine: llama.cpp, prefix KV kept between keystrokes, the adapter
//! acting from the middle token on, token healing, and the exact record of what
//! the policy did.

use super::ffi::{Context, ContextSize, DecodeError, backend_name, load_model};
use super::{Engine, EngineError, EngineInfo, Generated, Request};
use crate::prompt::FimPrompt;
use feedback::event::{AdapterVersion, Sampling, StopReason, TokenRecord};
use llama_cpp_2::model::LlamaModel;
use models::fim::{FimTemplate, FimTokens};
use models::gguf::Gguf;
use models::vocab::Vocab;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Prompts whose KV is kept: documents the user goes back and forth between.
const SEQUENCES: usize = 4;

/// Longest prompt in tokens; text in an unfamiliar script can cost three a character.
const PROMPT_TOKENS: usize = 1536;

/// Longest completion in tokens, healing included.
pub const MAX_TOKENS: usize = 128;

/// Share of [`PROMPT_TOKENS`] the suffix may take when the prompt is too long.
const SUFFIX_SHARE: usize = 4;

/// Prompt tokens decoded between two looks at the time budget.
const PROMPT_CHUNK: usize = 256;

const CELLS: usize = SEQUENCES * (PROMPT_TOKENS + MAX_TOKENS);

pub struct LlamaConfig {
    pub path: PathBuf,
    pub template: &'static FimTemplate,
    pub threads: usize,
    pub gpu_layers: u32,
}

/// One KV cell: which token, computed under which adapter (0 is the base).
type Cell = (u32, AdapterVersion);

pub struct LlamaEngine {
    context: Context,
    model: Arc<LlamaModel>,
    vocab: Vocab,
    fim: FimTokens,
    /// What each sequence's KV holds, and when it was last used.
    sequences: Vec<Sequence>,
    clock: u64,
    info: EngineInfo,
}

#[derive(Default)]
struct Sequence {
    cells: Vec<Cell>,
    used_at: u64,
}

impl LlamaEngine {
    pub fn load(config: &LlamaConfig) -> Result<LlamaEngine, EngineError> {
        let failed = |error: String| EngineError::Failed(error);
        let gguf = Gguf::open(&config.path).map_err(|error| failed(error.to_string()))?;
        let vocab = Vocab::from_gguf(&gguf).map_err(|error| failed(error.to_string()))?;
        let fim = config
            .template
            .resolve(&vocab)
            .map_err(|error| failed(format!("{}: {error}", config.path.display())))?;
        let model = load_model(&config.path, config.gpu_layers).map_err(failed)?;
        let size = ContextSize { cells: CELLS, sequences: SEQUENCES, threads: config.threads };
        let context = Context::new(model.clone(), &size).map_err(failed)?;
        Ok(LlamaEngine {
            context,
            model,
            vocab,
            fim,
            sequences: (0..SEQUENCES).map(|_| Sequence::default()).collect(),
            clock: 0,
            info: EngineInfo { backend: backend_name(config.gpu_layers) },
        })
    }

    fn tokenize(&self, text: &str) -> Vec<u32> {
        let tokens = self.model.vocab().tokenize(text.as_bytes(), false, false);
        tokens.into_iter().map(|token| token.0 as u32).collect()
    }

    /// Prompt tokens, and the index the adapter acts from.
    fn prompt_tokens(&self, prompt: &FimPrompt) -> (Vec<u32>, usize) {
        let mut prefix = self.tokenize(&prompt.prefix);
        let mut suffix = self.tokenize(&prompt.suffix);
        let mut line = self.tokenize(&prompt.line);
        let vocab = self.model.vocab();
        let bos = vocab.should_add_bos().then(|| vocab.bos().0 as u32);
        line.drain(..line.len().saturating_sub(PROMPT_TOKENS / 2));
        let room = PROMPT_TOKENS - line.len() - 4;
        if prefix.len() + suffix.len() > room {
            suffix.truncate((room / SUFFIX_SHARE).max(room.saturating_sub(prefix.len())));
            prefix.drain(..prefix.len().saturating_sub(room - suffix.len()));
        }
        let mut tokens: Vec<u32> = bos.into_iter().collect();
        let adapter_from = match self.fim.markers {
            Some(markers) => {
                tokens.push(markers.prefix);
                tokens.append(&mut prefix);
                tokens.push(markers.suffix);
                tokens.append(&mut suffix);
                tokens.push(markers.middle);
                tokens.len() - 1
            }
            // No middle token: the adapter acts from the last token above the
            // current line, so that it has a say in the line's first token.
            None => {
                tokens.append(&mut prefix);
                if tokens.is_empty() {
                    tokens.extend(self.tokenize("\n"));
                }
                tokens.len().saturating_sub(1)
            }
        };
        tokens.append(&mut line);
        (tokens, adapter_from)
    }

    /// Makes a sequence's KV equal `cells`, decoding what is missing; all but
    /// the last cell may come from before. Answers (reused, evaluated).
    fn prefill(
        &mut self,
        sequence: usize,
        cells: &[Cell],
        deadline: Instant,
        abort: &AtomicBool,
    ) -> Result<(u32, u32), EngineError> {
        let reused = common_prefix(&self.sequences[sequence].cells, cells).min(cells.len() - 1);
        self.truncate(sequence, reused);
        let mut position = reused;
        while position < cells.len() {
            if Instant::now() >= deadline {
                return Err(EngineError::OverBudget);
            }
            let adapter = cells[position].1;
            let run = cells[position..].iter().take_while(|cell| cell.1 == adapter).count();
            let end = position + run.min(PROMPT_CHUNK);
            self.decode(sequence, &cells[position..end], abort)?;
            position = end;
        }
        Ok((reused as u32, (cells.len() - reused) as u32))
    }

    /// Appends cells of one adapter to a sequence.
    fn decode(
        &mut self,
        sequence: usize,
        cells: &[Cell],
        abort: &AtomicBool,
    ) -> Result<(), EngineError> {
        let adapter = cells[0].1;
        if !self.context.activate(adapter) {
            return Err(EngineError::Failed(format!("adapter v{adapter} is not loaded")));
        }
        let position = self.sequences[sequence].cells.len();
        let tokens: Vec<u32> = cells.iter().map(|cell| cell.0).collect();
        let decoded = self.context.decode(&tokens, position, sequence, abort);
        // After an abort the finished micro-batches are in the KV: keep them.
        let kept = match decoded {
            Ok(()) => cells.len(),
            Err(_) => self.context.length(sequence).saturating_sub(position).min(cells.len()),
        };
        self.sequences[sequence].cells.extend_from_slice(&cells[..kept]);
        match decoded {
            Ok(()) => Ok(()),
            Err(DecodeError::Aborted) => {
                self.truncate(sequence, position + kept);
                Err(EngineError::Aborted)
            }
            Err(DecodeError::Code(code)) => {
                self.truncate(sequence, 0);
                Err(EngineError::Failed(format!("llama.cpp could not decode (code {code})")))
            }
        }
    }

    fn truncate(&mut self, sequence: usize, length: usize) {
        self.context.forget(sequence, length);
        self.sequences[sequence].cells.truncate(length);
    }

    /// The sequence that holds most of this prompt, or else the one used longest ago.
    fn choose_sequence(&mut self, cells: &[Cell]) -> usize {
        let shared = |s: &Sequence| common_prefix(&s.cells, cells);
        let best = (0..SEQUENCES).max_by_key(|&i| shared(&self.sequences[i])).unwrap_or(0);
        // Sharing only a header is no reason to throw another document's KV away.
        let worth_it = shared(&self.sequences[best]) * 2 >= self.sequences[best].cells.len();
        let oldest = (0..SEQUENCES).min_by_key(|&i| self.sequences[i].used_at).unwrap_or(0);
        let chosen = if worth_it { best } else { oldest };
        self.clock += 1;
        self.sequences[chosen].used_at = self.clock;
        chosen
    }
}

fn common_prefix(a: &[Cell], b: &[Cell]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Engine for LlamaEngine {
    fn info(&self) -> EngineInfo {
        self.info.clone()
    }

    fn generate(
        &mut self,
        request: &Request,
        abort: &AtomicBool,
    ) -> Result<Generated, EngineError> {
        let started = Instant::now();
        let deadline = started + request.budget;
        let (prompt, adapter_from) = self.prompt_tokens(&request.prompt);
        let cells: Vec<Cell> = prompt
            .iter()
            .enumerate()
            .map(|(i, &token)| (token, if i < adapter_from { 0 } else { request.adapter }))
            .collect();
        let sequence = self.choose_sequence(&cells);
        let (prompt_reused, prompt_evaluated) = self.prefill(sequence, &cells, deadline, abort)?;
        let prompt_time = started.elapsed();

        let mut policy = Policy::new(request.sampling);
        let mut need = request.prompt.healing.as_bytes();
        let mut tokens = Vec::new();
        let mut text = Vec::new();
        let stop = loop {
            if tokens.len() >= request.max_tokens.min(MAX_TOKENS) {
                break StopReason::MaxTokens;
            }
            let Some(next) = policy.choose(self.context.logits(), &self.vocab, need) else {
                break StopReason::HealingFailed;
            };
            let piece = self.vocab.piece(next.id);
            let spilled = piece.len() > need.len();
            if need.is_empty() && next.logprob.exp() < request.min_probability {
                break StopReason::LowConfidence;
            }
            tokens.push(next);
            text.extend_from_slice(piece);
            need = &need[piece.len().min(need.len())..];
            if piece.is_empty() || self.fim.stop.contains(&next.id) {
                break StopReason::StopToken;
            }
            if spilled && piece.contains(&b'\n') {
                break StopReason::Newline;
            }
            if Instant::now() >= deadline {
                break StopReason::Budget;
            }
            self.decode(sequence, &[(next.id, request.adapter)], abort)?;
        };
        Ok(Generated {
            prompt,
            adapter_from,
            tokens,
            text,
            stop,
            prompt_reused,
            prompt_evaluated,
            prompt_time,
            decode_time: started.elapsed().saturating_sub(prompt_time),
        })
    }

    fn load_adapter(
        &mut self,
        version: AdapterVersion,
        path: &Path,
        keep: AdapterVersion,
    ) -> Result<(), EngineError> {
        self.context.load_adapter(version, path).map_err(EngineError::Failed)?;
        self.context.retain_adapters(&[version, keep]);
        Ok(())
    }
}

/// Softmax policy over the tokens healing allows, at the request's temperature.
struct Policy {
    sampling: Sampling,
    random: StdRng,
}

impl Policy {
    fn new(sampling: Sampling) -> Policy {
        Policy { sampling, random: StdRng::seed_from_u64(sampling.seed) }
    }

    /// `None` if no token fits `need`.
    fn choose(&mut self, logits: &[f32], vocab: &Vocab, need: &[u8]) -> Option<TokenRecord> {
        let temperature = self.sampling.policy_temperature();
        let allowed = |id: u32| need.is_empty() || vocab.fits(id, need);
        let scaled = || {
            let ids = 0..logits.len().min(vocab.len()) as u32;
            ids.filter(|&id| allowed(id)).map(|id| (id, logits[id as usize] / temperature))
        };
        let (best, highest) = scaled().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let total: f64 = scaled().map(|(_, logit)| f64::from(logit - highest).exp()).sum();
        let (id, logit) = if self.sampling.temperature > 0.0 {
            let mut left = self.random.random::<f64>() * total;
            scaled()
                .find(|(_, logit)| {
                    left -= f64::from(logit - highest).exp();
                    left <= 0.0
                })
                .unwrap_or((best, highest))
        } else {
            (best, highest)
        };
        Some(TokenRecord { id, logprob: logit - highest - total.ln() as f32 })
    }
}
