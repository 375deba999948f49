//! The real engine: llama.cpp, prefix KV kept between keystrokes, the adapter
//! acting from the current line on, token healing, and the exact record of what
//! the policy did.

use super::answer_cache::{Answers, Key};
use super::ffi::{Context, ContextSize, DecodeError, free_gpu, load_model};
use super::gpu_layers::GpuLayers;
use super::line_end::LineEndVariants;
use super::sampler::{Chosen, Sampler};
use super::threads::Threads;
use super::{
    Answer, Engine, EngineError, EngineInfo, Generated, Request, Score, ScorePrompt, ScoreRequest,
    Tokenizer,
};
use completion::limits::TOKENS_MAX;
use completion::prompt::{FimPrompt, PromptContext};
use feedback::event::{AdapterVersion, StopReason, TokenRecord};
use llama_cpp_2::model::LlamaModel;
use models::disk_cache::DiskCache;
use models::fim::FimTemplate;
use models::fim_tokens::{FileMarkers, FimTokens};
use models::gguf::Gguf;
use models::vocab::Vocab;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Prompts whose KV is kept: documents the user goes back and forth between.
const SEQUENCES: usize = 4;

/// Longest prompt in tokens; text in an unfamiliar script can cost three a character.
const PROMPT_TOKENS: usize = 1536;

/// Share of [`PROMPT_TOKENS`] the suffix may take when the prompt is too long.
const SUFFIX_SHARE: usize = 4;

/// Prompt tokens decoded between two looks at the time budget.
const PROMPT_CHUNK: usize = 256;

/// Tokens among which an alternative may part from the first answer: one that
/// parts late reads the same.
const FORK_TOKENS: usize = 8;

/// Alternatives tried for each one wanted: some read like an answer there is.
const FORK_ATTEMPTS: usize = 2;

/// Share of a request's time budget that alternatives may add to it: the user
/// waits for the first answer too.
const ALTERNATIVES_SHARE: u32 = 4;

/// The sequence in which texts are scored, so that no document loses its KV.
const SCORING: usize = SEQUENCES;

/// Longest text that is scored, in tokens: each keeps a row of logits.
const SCORED_TOKENS: usize = 48;

/// Longest line before it: it goes through in one batch with the text.
const SCORED_TAIL: usize = 256;

const CELLS: usize = (SEQUENCES + 1) * (PROMPT_TOKENS + TOKENS_MAX);

pub struct LlamaConfig {
    pub path: PathBuf,
    pub template: &'static FimTemplate,
    /// Threads on a machine that does nothing else.
    pub threads: usize,
    /// Whether fewer are used where other processes hold cores.
    pub adapts_threads: bool,
    /// `None`: as many as fit.
    pub gpu_layers: Option<u32>,
    /// A folder that prompts, and the base's answers, are shared through, and the
    /// model's name there.
    pub shelf: Option<(PathBuf, String)>,
}

/// One KV cell: which token, computed under which adapter (0 is the base).
type Cell = (u32, AdapterVersion);

pub struct LlamaEngine {
    context: Context,
    threads: Threads,
    model: Arc<LlamaModel>,
    vocab: Vocab,
    fim: FimTokens,
    /// What each sequence's KV holds, and when it was last used.
    sequences: Vec<Sequence>,
    clock: u64,
    /// After which sequence's how manieth cell the context's logits are.
    logits: Option<(usize, usize)>,
    shelf: Option<DiskCache>,
    /// What the base said in other arms of a rehearsal; there where `shelf` is.
    said: Option<Answers>,
    info: EngineInfo,
}

#[derive(Default)]
struct Sequence {
    cells: Vec<Cell>,
    used_at: u64,
    answered: Answered,
}

/// What the model last said after a prompt. Decoded greedily, it says the same
/// once a part of that has been typed, and nothing needs to be computed again.
#[derive(Default)]
struct Answered {
    /// The prompt, and what was said.
    path: Vec<Cell>,
    /// Index in `path` of the first token chosen freely, and those from there on.
    from: usize,
    tokens: Vec<Chosen>,
}

impl Answered {
    /// The token after `path`, if that is what was said before.
    fn after(&self, path: &[Cell]) -> Option<Chosen> {
        let next = path.len().checked_sub(self.from)?;
        let token = self.tokens.get(next)?;
        self.path.starts_with(path).then_some(*token)
    }

    /// What the model says after `path`, now that it was computed.
    fn goes_on(&mut self, path: &[Cell], next: Chosen, adapter: AdapterVersion) {
        if self.path != path {
            *self = Answered { path: path.to_vec(), from: path.len(), tokens: vec![] };
        }
        self.path.push((next.token.id, adapter));
        self.tokens.push(next);
    }
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
        let gpu = free_gpu().map_err(failed)?;
        let gpu_layers = GpuLayers::choose(&gguf, gpu, config.gpu_layers, CELLS);
        let model = load_model(&config.path, gpu_layers.gpu_layers).map_err(failed)?;
        let shelf = config.shelf.as_ref().map(|(folder, model)| DiskCache::new(folder, model));
        let said = config.shelf.as_ref().map(|(folder, model)| Answers::new(folder, model));
        let size = ContextSize { cells: CELLS, sequences: SEQUENCES + 1, threads: config.threads };
        let context = Context::new(model.clone(), &size).map_err(failed)?;
        let info = EngineInfo { backend: gpu_layers.to_string(), reads_files: fim.files.is_some() };
        Ok(LlamaEngine {
            context,
            threads: Threads::new(config.threads, config.adapts_threads),
            model,
            vocab,
            fim,
            sequences: (0..=SCORING).map(|_| Sequence::default()).collect(),
            clock: 0,
            logits: None,
            shelf: shelf.transpose().map_err(failed)?,
            said: said.transpose().map_err(failed)?,
            info,
        })
    }

    fn tokenize(&self, text: &str) -> Vec<u32> {
        tokenize(&self.model, text)
    }

    /// Prompt tokens, and the index the adapter acts from.
    fn prompt_tokens(&self, prompt: &FimPrompt) -> (Vec<u32>, usize) {
        let mut prefix = self.tokenize(&prompt.prefix);
        let mut suffix = self.tokenize(&prompt.suffix);
        let mut typed = self.tokenize(&prompt.typed);
        let mut line = self.tokenize(&prompt.line);
        let vocab = self.model.vocab();
        let bos = vocab.should_add_bos().then(|| vocab.bos().0 as u32);
        line.drain(..line.len().saturating_sub(PROMPT_TOKENS / 2));
        typed.drain(..typed.len().saturating_sub(PROMPT_TOKENS / 4));
        let room = PROMPT_TOKENS - line.len() - typed.len() - 4;
        if prefix.len() + suffix.len() > room {
            suffix.truncate((room / SUFFIX_SHARE).max(room.saturating_sub(prefix.len())));
            prefix.drain(..prefix.len().saturating_sub(room - suffix.len()));
        }
        let room = room - prefix.len() - suffix.len();
        let mut tokens: Vec<u32> = bos.into_iter().collect();
        if let (Some(code), Some(markers)) = (&prompt.context, self.fim.files) {
            tokens.extend(self.context_tokens(code, markers, room));
        }
        match self.fim.markers {
            Some(markers) => tokens.extend(markers.around(&prefix, &suffix)),
            None => {
                tokens.append(&mut prefix);
                if tokens.is_empty() && typed.is_empty() {
                    tokens.extend(self.tokenize("\n"));
                }
            }
        }
        tokens.append(&mut typed);
        // The last token above the current line, so that the adapter has a say
        // in the line's first token.
        let adapter_from = tokens.len() - 1;
        tokens.append(&mut line);
        (tokens, adapter_from)
    }

    /// The excerpts of other code that find room, each behind its file's name;
    /// nothing if none does.
    fn context_tokens(&self, code: &PromptContext, markers: FileMarkers, room: usize) -> Vec<u32> {
        let named = |marker: u32, name: &str, text: &str| {
            let mut tokens = vec![marker];
            tokens.extend(self.tokenize(&format!("{name}\n{text}")));
            tokens
        };
        let head = markers.repo.map_or_else(Vec::new, |repo| named(repo, &code.repository, ""));
        let last = named(markers.file, &code.path, "");
        let Some(mut room) = room.checked_sub(head.len() + last.len()) else { return vec![] };
        let mut excerpts = vec![];
        for excerpt in code.shown() {
            let tokens = named(markers.file, &excerpt.path, &excerpt.text);
            if tokens.len() <= room {
                room -= tokens.len();
                excerpts.extend(tokens);
            }
        }
        if excerpts.is_empty() { vec![] } else { [head, excerpts, last].concat() }
    }

    /// Makes a sequence's KV equal `cells`, decoding what is missing, so that the
    /// logits are those after the last. Answers (reused, evaluated).
    fn reach(
        &mut self,
        sequence: usize,
        cells: &[Cell],
        deadline: Option<Instant>,
        abort: &AtomicBool,
    ) -> Result<(u32, u32), EngineError> {
        if self.logits == Some((sequence, cells.len())) && self.sequences[sequence].cells == cells {
            return Ok((cells.len() as u32, 0));
        }
        let reused = common_prefix(&self.sequences[sequence].cells, cells).min(cells.len() - 1);
        self.complete(sequence, cells, reused, deadline, abort)?;
        Ok((reused as u32, (cells.len() - reused) as u32))
    }

    /// Has a sequence hold `cells`, the first `kept` of which it has.
    fn complete(
        &mut self,
        sequence: usize,
        cells: &[Cell],
        kept: usize,
        deadline: Option<Instant>,
        abort: &AtomicBool,
    ) -> Result<(), EngineError> {
        self.truncate(sequence, kept);
        let mut position = kept;
        while position < cells.len() {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(EngineError::OverBudget);
            }
            let adapter = cells[position].1;
            let run = cells[position..].iter().take_while(|cell| cell.1 == adapter).count();
            let end = position + run.min(PROMPT_CHUNK);
            self.decode(sequence, &cells[position..end], abort)?;
            position = end;
        }
        Ok(())
    }

    /// Has a prompt, as the base computes it, taken from the shelf or put there.
    fn share(
        &mut self,
        sequence: usize,
        prompt: &[Cell],
        deadline: Option<Instant>,
        abort: &AtomicBool,
    ) -> Result<(), EngineError> {
        let known = common_prefix(&self.sequences[sequence].cells, prompt);
        let worth = |shelf: &DiskCache| shelf.is_worth(prompt.len() - known);
        if !self.shelf.as_ref().is_some_and(worth) {
            return Ok(());
        }
        let tokens: Vec<u32> = prompt.iter().map(|cell| cell.0).collect();
        if let Some(state) = self.shelf.as_ref().and_then(|shelf| shelf.get(&tokens)) {
            self.truncate(sequence, 0);
            if self.context.restore(sequence, &state)
                && self.context.length(sequence) == prompt.len()
            {
                self.sequences[sequence].cells = prompt.to_vec();
                return Ok(());
            }
            self.context.forget(sequence, 0);
        }
        self.reach(sequence, prompt, deadline, abort)?;
        let state = self.context.state(sequence);
        if let Some(Err(error)) = self.shelf.as_mut().map(|shelf| shelf.put(&tokens, &state)) {
            tracing::warn!("a prompt could not be kept: {error}");
        }
        Ok(())
    }

    /// Lends the scoring sequence what a document's has of this prompt: a text is
    /// asked about soon after its place was, and most of that prompt is still there.
    fn lend(&mut self, prompt: &[Cell]) {
        let shared = |sequence: &Sequence| common_prefix(&sequence.cells, prompt);
        let best = (0..SEQUENCES).max_by_key(|&i| shared(&self.sequences[i])).unwrap_or(0);
        let held = shared(&self.sequences[best]);
        if held > shared(&self.sequences[SCORING]) {
            self.truncate(SCORING, 0);
            self.context.copy(best, SCORING, held);
            self.sequences[SCORING].cells.extend_from_slice(&prompt[..held]);
        }
    }

    /// A text in the eyes of one adapter; the scoring sequence holds the prompt up to
    /// `from`, and nothing more afterwards.
    fn see(
        &mut self,
        prompt: &[u32],
        from: usize,
        text: &LineEndVariants,
        healing: &str,
        adapter: AdapterVersion,
        abort: &AtomicBool,
    ) -> Result<Score, EngineError> {
        let fed: Vec<u32> = prompt[from..].iter().copied().chain(text.fed()).collect();
        if !self.context.activate(adapter) {
            return Err(EngineError::Failed(format!("adapter v{adapter} is not loaded")));
        }
        self.logits = None;
        let decoded = self.context.decode_from(&fed, from, SCORING, prompt.len() - from - 1, abort);
        let row = |index| self.context.logits_at(text.rows() - index);
        let score = decoded.map(|()| text.score(row, healing.as_bytes(), &self.vocab));
        self.context.forget(SCORING, from);
        match score {
            Ok(score) => score
                .ok_or_else(|| EngineError::Failed("the text is none the policy could say".into())),
            Err(DecodeError::Aborted) => Err(EngineError::Aborted),
            Err(DecodeError::Code(code)) => {
                self.truncate(SCORING, 0);
                Err(EngineError::Failed(format!("llama.cpp could not decode (code {code})")))
            }
        }
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
        self.logits = None;
        let decoded = self.context.decode(&tokens, position, sequence, abort);
        // After an abort the finished micro-batches are in the KV: keep them.
        let kept = match decoded {
            Ok(()) => cells.len(),
            Err(_) => self.context.length(sequence).saturating_sub(position).min(cells.len()),
        };
        self.sequences[sequence].cells.extend_from_slice(&cells[..kept]);
        match decoded {
            Ok(()) => {
                self.logits = Some((sequence, position + kept));
                Ok(())
            }
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

    /// One answer behind the prompt, `beginning` given. Where it may be left for
    /// another goes into `forks`, if the request wants any.
    fn answer(
        &mut self,
        decoding: &Decoding,
        sampler: &mut Sampler,
        beginning: &[TokenRecord],
        forks: &mut Vec<Fork>,
    ) -> Result<Answer, EngineError> {
        let Decoding { request, prompt, sequence, deadline, abort } = *decoding;
        let started = Instant::now();
        let looks_for_forks = beginning.is_empty() && request.alternatives > 0;
        let may_repeat = request.sampling.temperature == 0.0 && !looks_for_forks;
        let mut need = request.prompt.healing.as_bytes();
        let mut given = beginning.iter();
        let mut path = prompt.to_vec();
        let mut tokens: Vec<TokenRecord> = Vec::new();
        let mut visible_logprobs = Vec::new();
        let mut text = Vec::new();
        let mut ends = Vec::new();
        let mut joint = 0.0;
        let mut healed = 0;
        let mut line = Line::default();
        let stop = loop {
            if tokens.len() >= (line.first_token + request.max_tokens).min(TOKENS_MAX) {
                break StopReason::MaxTokens;
            }
            let said_before = || self.sequences[sequence].answered.after(&path);
            let next = if let Some(token) = given.next() {
                Chosen { token: *token, visible_logprob: token.logprob }
            } else if let (true, Some(token)) = (may_repeat && need.is_empty(), said_before()) {
                token
            } else {
                if !tokens.is_empty() && Instant::now() >= deadline {
                    break StopReason::Budget;
                }
                self.reach(sequence, &path, None, abort)?;
                let logits = self.context.logits();
                let Some(next) = sampler.choose(logits, &self.vocab, need) else {
                    break StopReason::HealingFailed;
                };
                if looks_for_forks && tokens.len() < FORK_TOKENS {
                    let others = sampler.runners_up(logits, &self.vocab, need, next.token);
                    forks.extend(others.into_iter().map(|token| Fork {
                        at: tokens.len(),
                        token,
                        logprob: joint + token.logprob,
                    }));
                }
                if may_repeat && need.is_empty() {
                    let answered = &mut self.sequences[sequence].answered;
                    answered.goes_on(&path, next, request.adapter);
                }
                next
            };
            let Chosen { token, visible_logprob } = next;
            let piece = self.vocab.piece(token.id);
            let spilled = piece.len() > need.len();
            healed += usize::from(!spilled && !need.is_empty());
            tokens.push(token);
            visible_logprobs.push(visible_logprob);
            path.push((token.id, request.adapter));
            joint += token.logprob;
            if spilled {
                line.logprob += visible_logprob;
            }
            text.extend_from_slice(piece);
            ends.push(text.len());
            need = &need[piece.len().min(need.len())..];
            if line.logprob.exp() < request.min_probability {
                break StopReason::LowConfidence;
            }
            if piece.is_empty() || self.fim.stop.contains(&token.id) {
                break StopReason::StopToken;
            }
            let said = &text[request.prompt.healing.len().min(text.len())..];
            if spilled && let Some(stop) = request.stop_rule.stop(said, piece) {
                break stop;
            }
            if piece.contains(&b'\n') {
                line = Line { first_token: tokens.len(), first_byte: text.len(), logprob: 0.0 };
            }
        };
        let given_up = (stop == StopReason::LowConfidence).then_some(line.first_byte);
        let decode_time = started.elapsed();
        Ok(Answer { tokens, visible_logprobs, healed, text, ends, given_up, stop, decode_time })
    }

    /// Tokens at which another answer may part from this one and be seen to: of
    /// several lines, some behind the last may have been needed to know it.
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

fn tokenize(model: &LlamaModel, text: &str) -> Vec<u32> {
    let tokens = model.vocab().tokenize(text.as_bytes(), false, false);
    tokens.into_iter().map(|token| token.0 as u32).collect()
}

/// What the answers to one request have in common.
struct Decoding<'a> {
    request: &'a Request,
    prompt: &'a [Cell],
    sequence: usize,
    deadline: Instant,
    abort: &'a AtomicBool,
}

/// The line that decoding is at.
#[derive(Default)]
struct Line {
    first_token: usize,
    first_byte: usize,
    /// ln π of what was said of it, healing aside.
    logprob: f32,
}

/// Where another answer may part from the first.
struct Fork {
    /// Index of the token that would be another.
    at: usize,
    token: TokenRecord,
    /// ln π of the beginning with it.
    logprob: f32,
}

/// What of an answer can be shown.
fn showable<'a>(answer: &'a Answer, request: &Request) -> &'a [u8] {
    let said = answer.offered().get(request.prompt.healing.len()..).unwrap_or_default();
    request.stop_rule.within(said).trim_ascii_end()
}

fn common_prefix(a: &[Cell], b: &[Cell]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl Engine for LlamaEngine {
    fn info(&self) -> EngineInfo {
        self.info.clone()
    }

    fn tokenizer(&self) -> Tokenizer {
        let model = self.model.clone();
        Arc::new(move |text| tokenize(&model, text))
    }

    fn generate(
        &mut self,
        request: &Request,
        abort: &AtomicBool,
    ) -> Result<Generated, EngineError> {
        let started = Instant::now();
        let deadline = started + request.budget;
        self.context.set_threads(self.threads.now());
        let (prompt, adapter_from) = self.prompt_tokens(&request.prompt);
        let is_shared = self.said.is_some();
        let key = is_shared.then(|| Key::of_answer(request, &prompt, adapter_from)).flatten();
        if let (Some(said), Some(key)) = (&self.said, &key)
            && let Some(answer) = said.take(key)
        {
            return Ok(Generated {
                prompt_reused: prompt.len() as u32,
                prompt_evaluated: 0,
                prompt_time: started.elapsed(),
                prompt,
                adapter_from,
                answers: vec![answer],
            });
        }
        let cells: Vec<Cell> = prompt
            .iter()
            .enumerate()
            .map(|(i, &token)| (token, if i < adapter_from { 0 } else { request.adapter }))
            .collect();
        let sequence = self.choose_sequence(&cells);
        let is_repeated = request.sampling.temperature == 0.0
            && request.alternatives == 0
            && request.prompt.healing.is_empty()
            && self.sequences[sequence].answered.after(&cells).is_some();
        let (prompt_reused, prompt_evaluated) = if is_repeated {
            (cells.len() as u32, 0)
        } else {
            self.share(sequence, &cells[..adapter_from], Some(deadline), abort)?;
            self.reach(sequence, &cells, Some(deadline), abort)?
        };
        let prompt_time = started.elapsed();

        let mut decoding = Decoding { request, prompt: &cells, sequence, deadline, abort };
        let mut sampler = Sampler::new(request.sampling);
        let mut forks = vec![];
        let first = self.answer(&decoding, &mut sampler, &[], &mut forks)?;
        forks.retain(|fork| fork.at < self.visible(&first, request));
        if let (Some(said), Some(key)) = (&mut self.said, &key)
            && first.is_whole()
        {
            said.put(key, &first);
        }
        let mut answers = vec![first];
        decoding.deadline = deadline.min(Instant::now() + request.budget / ALTERNATIVES_SHARE);
        // The likeliest beginnings first.
        forks.sort_by(|a, b| b.logprob.total_cmp(&a.logprob));
        for fork in forks.iter().take(FORK_ATTEMPTS * request.alternatives) {
            if answers.len() > request.alternatives || Instant::now() >= decoding.deadline {
                break;
            }
            let mut beginning = answers[0].tokens[..fork.at].to_vec();
            beginning.push(fork.token);
            let other = self.answer(&decoding, &mut sampler, &beginning, &mut vec![])?;
            let text = showable(&other, request);
            if other.is_whole() && answers.iter().all(|known| showable(known, request) != text) {
                answers.push(other);
            }
        }
        Ok(Generated {
            prompt,
            adapter_from,
            prompt_reused,
            prompt_evaluated,
            prompt_time,
            answers,
        })
    }

    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError> {
        let (prompt, adapter_from) = self.prompt_tokens(prompt);
        let cells: Vec<Cell> = prompt[..adapter_from].iter().map(|&token| (token, 0)).collect();
        let sequence = self.choose_sequence(&cells);
        if common_prefix(&self.sequences[sequence].cells, &cells) < cells.len() {
            self.reach(sequence, &cells, None, abort)?;
        }
        Ok(())
    }

    fn score(
        &mut self,
        request: &ScoreRequest,
        abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError> {
        let (prompt, from) = match &request.prompt {
            ScorePrompt::Fim(prompt) => self.prompt_tokens(prompt),
            ScorePrompt::Tokens { prompt, adapter_from } => (prompt.clone(), *adapter_from),
        };
        let count = request.tokens.len();
        if count == 0 || count > SCORED_TOKENS || prompt.len() - from > SCORED_TAIL {
            return Err(EngineError::Failed("the text is empty or too long to be scored".into()));
        }
        let cells: Vec<Cell> = prompt[..from].iter().map(|&token| (token, 0)).collect();
        self.lend(&cells);
        self.share(SCORING, &cells, None, abort)?;
        let held = common_prefix(&self.sequences[SCORING].cells, &cells);
        self.complete(SCORING, &cells, held, None, abort)?;
        let text = LineEndVariants::new(&request.tokens, &self.vocab);
        let key = self.said.is_some().then(|| Key::of_score(request, &prompt, from));
        let mut scores = Vec::with_capacity(request.adapters.len());
        for &adapter in &request.adapters {
            let key = key.as_ref().filter(|_| adapter == 0);
            if let (Some(said), Some(key)) = (&self.said, key)
                && let Some(score) = said.take(key)
            {
                scores.push(score);
                continue;
            }
            let score = self.see(&prompt, from, &text, &request.healing, adapter, abort)?;
            if let (Some(said), Some(key)) = (&mut self.said, key) {
                said.put(key, &score);
            }
            scores.push(score);
        }
        Ok(scores)
    }

    fn load_adapter(
        &mut self,
        version: AdapterVersion,
        path: &Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError> {
        self.context.load_adapter(version, path).map_err(EngineError::Failed)?;
        self.sequences.iter_mut().for_each(|sequence| sequence.answered = Answered::default());
        let kept: Vec<AdapterVersion> = keep.iter().copied().chain([version]).collect();
        self.context.retain_adapters(&kept);
        Ok(())
    }
}
