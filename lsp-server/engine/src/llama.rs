//! The real engine: it runs llama.cpp, keeps the KV of prompts between keystrokes, has the
//! adapter act from the current line on, heals tokens, and records exactly what the sampler did.

mod continued;
mod decode;
mod experts;
mod handed;
mod kv_cache;
mod layout;
mod loaded;
mod pieces;

use super::ffi::{Context, ContextSize, DecodeError, free_gpu, load_model};
use super::gpu_layers::GpuLayers;
use super::line_end::{LineEndVariants, PartialScore};
use super::own_memory::{Loading, OwnMemory};
use super::speed::PromptSpeed;
use super::threads::{Threads, Work};
use super::{
    Engine, EngineError, EngineInfo, Generated, Request, Score, ScorePrompt, ScoreRequest,
    Tokenizer,
};
use crate::continuation::{Continuation, Continued};
use completion::limits::TOKENS_MAX;
use completion::prompt::FimPrompt;
use decode::{AnswerMemory, Decoding};
use experts::AnswerExperts;
use feedback::event::AdapterVersion;
use feedback::experts::ExpertLayout;
use kv_cache::{SCORING, SEQUENCES, Sequence, base_cells, common_prefix};
use layout::{Layout, without_other_code};
use llama_cpp_2::model::LlamaModel;
pub use loaded::LoadedModel;
use models::experts::Experts;
use models::fim::FimTemplate;
use models::fim_tokens::FimTokens;
use models::gguf::Gguf;
use models::vocab::Vocab;
use pieces::Pieces;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The fewest prompt tokens that are decoded between two looks at the time budget.
const PROMPT_CHUNK_MIN: usize = 256;

/// The number of tokens of a prompt that may be missing before it is computed next to the one in
/// use.
const LAG_TOKENS: usize = 32;

/// Longest text that is scored, in tokens. Each adapter computes it.
const SCORED_TOKENS: usize = 48;

/// Longest line before it, in tokens. Each adapter computes it too.
const SCORED_TAIL: usize = 256;

/// Prompt tokens that are computed at once where a text is scored in the background. The abort
/// callback is called between graph nodes, so that fewer tokens make an abort sooner.
const SCORED_AT_ONCE: usize = 16;

/// A place in the KV: behind the first `cells` cells of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogitsPlace {
    sequence: usize,
    cells: usize,
}

/// The size of the KV cache, which holds this longest prompt once for each sequence.
fn cells(prompt_tokens: usize) -> usize {
    (SEQUENCES + 1) * (prompt_tokens + TOKENS_MAX)
}

pub struct LlamaConfig {
    pub path: PathBuf,
    pub template: &'static FimTemplate,
    /// Threads on a machine that does nothing else.
    pub threads: usize,
    /// True if fewer are used where other processes hold cores.
    pub adapts_threads: bool,
    /// True if texts are scored on one thread and in small pieces, because somebody types into this
    /// process. Several threads would wait for each other wherever other processes hold cores, and
    /// nobody waits for a score.
    pub scores_in_background: bool,
    /// `None`: as many as fit.
    pub gpu_layers: Option<u32>,
    /// The longest prompt in tokens. Text in an unfamiliar script can cost three a character.
    pub prompt_tokens: usize,
    /// Tokens that are computed at once. `None`: as the device needs.
    pub micro_batch: Option<usize>,
    /// True if the choices of a mixture of experts are recorded, as the learner needs them.
    pub records_experts: bool,
    /// The model while it is loaded. Tokenizers outlive the engine and find the model here.
    pub loaded: LoadedModel,
    /// The speed at which prompts are computed. It outlives the engine too.
    pub speed: PromptSpeed,
}

impl LlamaConfig {
    /// An engine that computes on so many threads of the CPU, whatever else the machine does.
    pub fn on_cpu(
        path: &Path,
        template: &'static FimTemplate,
        threads: usize,
        prompt_tokens: usize,
    ) -> LlamaConfig {
        LlamaConfig {
            path: path.to_owned(),
            template,
            threads,
            adapts_threads: false,
            scores_in_background: false,
            gpu_layers: Some(0),
            prompt_tokens,
            micro_batch: None,
            records_experts: true,
            loaded: LoadedModel::default(),
            speed: PromptSpeed::default(),
        }
    }

    /// Returns true if layers of the model are put on a GPU.
    pub fn may_use_gpu(&self) -> bool {
        self.gpu_layers != Some(0) && free_gpu().is_ok_and(|gpu| gpu.is_some())
    }
}

/// Returns where a model would be computed, for the user to read. Nothing of it is loaded.
///
/// # Errors
/// The file is no model, or the engine cannot start.
pub fn placement(
    path: &Path,
    gpu_layers: Option<u32>,
    prompt_tokens: usize,
) -> Result<String, String> {
    let gguf = Gguf::open(path).map_err(|error| error.to_string())?;
    Ok(GpuLayers::choose(&gguf, free_gpu()?, gpu_layers, cells(prompt_tokens)).to_string())
}

/// Returns how the choices of a model's experts are laid out; `None` if it has none.
///
/// # Errors
/// The numbers of experts are impossible, and llama.cpp would end the process on them.
fn expert_layout(gguf: &Gguf) -> Result<Option<ExpertLayout>, String> {
    let Some(Experts { count, used }) = Experts::of(gguf)? else { return Ok(None) };
    let key = format!("{}.block_count", gguf.architecture().unwrap_or_default());
    let layers = gguf.u32(&key).and_then(|layers| u16::try_from(layers).ok());
    let layers = layers.ok_or_else(|| format!("{key} is missing or too large"))?;
    let short = |number: usize| u16::try_from(number).map_err(|error| error.to_string());
    Ok(Some(ExpertLayout { experts: short(count)?, used: short(used)?, layers }))
}

/// Loads the model where `layers` says.
fn start(
    config: &LlamaConfig,
    experts: Option<ExpertLayout>,
    layers: &GpuLayers,
) -> Result<(Arc<LlamaModel>, Context), String> {
    let model = load_model(&config.path, layers)?;
    let size = ContextSize {
        cells: cells(config.prompt_tokens),
        sequences: SEQUENCES + 1,
        threads: config.threads,
        micro_batch: config.micro_batch.unwrap_or(layers.micro_batch),
        experts,
    };
    Context::new(model.clone(), &size).map(|context| (model, context))
}

/// A text that is being scored.
struct Scoring {
    request: ScoreRequest,
    /// Of the first adapters.
    scores: Vec<Score>,
    /// Of the next adapter.
    partial: PartialScore,
}

impl Scoring {
    fn of(request: &ScoreRequest) -> Scoring {
        let (request, partial) = (request.clone(), PartialScore::default());
        Scoring { request, scores: vec![], partial }
    }
}

/// The place of a text that is scored.
struct ScoredPlace<'a> {
    prompt: &'a [u32],
    /// The index in `prompt` from which on the adapter acts.
    from: usize,
    healing: &'a [u8],
}

/// One KV cell: which token, computed under which adapter (0 is the base).
type Cell = (u32, AdapterVersion);

pub struct LlamaEngine {
    context: Context,
    threads: Threads,
    scores_in_background: bool,
    model: Arc<LlamaModel>,
    vocab: Vocab,
    fim: FimTokens,
    pieces: Pieces,
    /// The contents of each sequence's KV, and when it was last used.
    sequences: Vec<Sequence>,
    memory: AnswerMemory,
    /// The layout of the choices of the model's experts, if it has any.
    experts: Option<ExpertLayout>,
    answer_experts: AnswerExperts,
    clock: u64,
    speed: PromptSpeed,
    /// The place after which the context has logits.
    logits_after: Option<LogitsPlace>,
    /// The text whose scoring was interrupted.
    interrupted: Option<Scoring>,
    passes: u64,
    info: EngineInfo,
    tokenizer: Tokenizer,
    /// The longest prompt in tokens.
    prompt_tokens: usize,
    /// Prompt tokens decoded between two looks at the time budget.
    prompt_chunk: usize,
    /// The GPU's memory, if layers of the model are there. It comes last, because it is counted
    /// until the model has gone.
    gpu_memory: Option<OwnMemory>,
}

impl LlamaEngine {
    pub fn load(config: &LlamaConfig) -> Result<LlamaEngine, EngineError> {
        let failed = |error: String| EngineError::Failed(error);
        let gguf = Gguf::open(&config.path).map_err(|error| failed(error.to_string()))?;
        let experts = expert_layout(&gguf)
            .map_err(|what| failed(format!("{}: {what}", config.path.display())))?
            .filter(|_| config.records_experts);
        let vocab = Vocab::from_gguf(&gguf).map_err(|error| failed(error.to_string()))?;
        let fim = config
            .template
            .resolve(&vocab)
            .map_err(|error| failed(format!("{}: {error}", config.path.display())))?;
        let gpu = free_gpu().map_err(failed)?;
        let cells = cells(config.prompt_tokens);
        let loading = gpu.as_ref().map(|gpu| Loading::begin(gpu.free));
        let gpu_layers = GpuLayers::choose(&gguf, gpu, config.gpu_layers, cells);
        let started = gpu_layers.try_gpu(|layers| start(config, experts, layers));
        let ((model, context), gpu_layers) = started.map_err(failed)?;
        config.loaded.set(&model);
        let loading = loading.filter(|_| gpu_layers.gpu_layers > 0);
        let gpu_memory = loading.zip(free_gpu_bytes()).map(|(loading, free)| loading.end(free));
        let info = EngineInfo {
            backend: gpu_layers.to_string(),
            reads_files: fim.files.is_some(),
            speed: config.speed.clone(),
        };
        Ok(LlamaEngine {
            context,
            threads: Threads::new(config.threads, config.adapts_threads),
            scores_in_background: config.scores_in_background,
            model,
            vocab,
            fim,
            pieces: Pieces::default(),
            sequences: (0..=SCORING).map(|_| Sequence::default()).collect(),
            memory: AnswerMemory::default(),
            experts,
            answer_experts: AnswerExperts::default(),
            clock: 0,
            speed: config.speed.clone(),
            logits_after: None,
            interrupted: None,
            passes: 0,
            info,
            tokenizer: config.loaded.tokenizer(&config.path),
            prompt_tokens: config.prompt_tokens,
            prompt_chunk: config
                .micro_batch
                .unwrap_or(gpu_layers.micro_batch)
                .max(PROMPT_CHUNK_MIN),
            gpu_memory,
        })
    }

    /// Returns how often tokens went through the model so far.
    pub fn passes(&self) -> u64 {
        self.passes
    }

    fn tokenize(&self, text: &str) -> Vec<u32> {
        self.pieces.tokens(text, |text| tokenize(&self.model, text))
    }

    /// Makes a sequence's KV begin with `cells` and decodes what is missing, so that there are
    /// logits after the last of them. Returns (reused, evaluated).
    fn reach(
        &mut self,
        sequence: usize,
        cells: &[Cell],
        deadline: Option<Instant>,
        abort: &AtomicBool,
    ) -> Result<(u32, u32), EngineError> {
        if self.has_logits(sequence, cells) {
            return Ok((cells.len() as u32, 0));
        }
        let reused = common_prefix(&self.sequences[sequence].cells, cells).min(cells.len() - 1);
        self.complete(sequence, cells, reused, deadline, abort)?;
        Ok((reused as u32, (cells.len() - reused) as u32))
    }

    /// Makes a sequence's KV equal `cells`, of which it has the first `kept` already. There are
    /// logits after the last cell.
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
            let gives_way = sequence == SCORING && self.scores_in_background;
            let at_once = if gives_way { SCORED_AT_ONCE } else { self.prompt_chunk };
            let end = position + run.min(at_once);
            self.decode(sequence, &cells[position..end], end - position - 1, abort)?;
            position = end;
        }
        Ok(())
    }

    /// Returns the logits after the first `cells` cells of a sequence, if the context has them.
    fn logits(&self, sequence: usize, cells: usize) -> Option<&[f32]> {
        let is_there = self.logits_after == Some(LogitsPlace { sequence, cells });
        is_there.then(|| self.context.logits_at(1)).flatten()
    }

    /// Returns true if the context has the logits after exactly these cells.
    fn has_logits(&self, sequence: usize, cells: &[Cell]) -> bool {
        let held = &self.sequences[sequence].cells;
        held.starts_with(cells) && self.logits(sequence, cells.len()).is_some()
    }

    /// Scores a text under one adapter, one row of logits after the other.
    fn see(
        &mut self,
        place: &ScoredPlace,
        text: &LineEndVariants,
        adapter: AdapterVersion,
        partial: &mut PartialScore,
        abort: &AtomicBool,
    ) -> Result<Score, EngineError> {
        let ScoredPlace { prompt, from, healing } = *place;
        let mut path = base_cells(&prompt[..from]);
        path.extend(prompt[from..].iter().copied().chain(text.fed()).map(|token| (token, adapter)));
        loop {
            if abort.load(Ordering::Relaxed) {
                return Err(EngineError::Aborted);
            }
            let end = prompt.len() + partial.rows();
            self.reach(SCORING, &path[..end], None, abort)?;
            let logits = self.logits(SCORING, end).unwrap_or_default();
            if logits.is_empty() || !logits.iter().all(|logit| logit.is_finite()) {
                self.truncate(SCORING, from);
                return Err(EngineError::NotFinite(adapter));
            }
            if let ControlFlow::Break(score) = text.read(partial, logits, healing, &self.vocab) {
                return score.ok_or_else(|| {
                    EngineError::Failed("the text is none the sampler could say".into())
                });
            }
        }
    }

    /// Takes fewer threads for the rest of a request if there were no cores for all of them.
    /// Threads that wait for a GPU, or compute in the background, say nothing about that.
    fn adapt_threads(&mut self, sequence: usize, work: Option<Work>) {
        let is_background = sequence == SCORING && self.scores_in_background;
        let is_told = !is_background && self.gpu_memory.is_none();
        if let Some(work) = work.filter(|_| is_told) {
            self.context.set_threads(self.threads.computed(work, Instant::now()));
        }
    }

    /// Appends cells of one adapter to a sequence, and keeps the logits from after the
    /// `first_logits`th of them on.
    fn decode(
        &mut self,
        sequence: usize,
        cells: &[Cell],
        first_logits: usize,
        abort: &AtomicBool,
    ) -> Result<(), EngineError> {
        let adapter = cells[0].1;
        if !self.context.activate(adapter) {
            return Err(EngineError::NotLoaded(adapter));
        }
        let position = self.sequences[sequence].cells.len();
        let tokens: Vec<u32> = cells.iter().map(|cell| cell.0).collect();
        self.logits_after = None;
        self.passes += 1;
        self.context.read_experts(tokens.len(), first_logits);
        let (decoded, work) =
            Work::of(|| self.context.decode(&tokens, position, sequence, first_logits, abort));
        self.adapt_threads(sequence, work);
        let experts = self.context.experts_read();
        // After an abort the finished micro-batches are in the KV: keep them.
        let kept = match decoded {
            Ok(()) => cells.len(),
            Err(_) => self.context.length(sequence).saturating_sub(position).min(cells.len()),
        };
        self.sequences[sequence].cells.extend_from_slice(&cells[..kept]);
        let experts = experts.get(..kept * self.expert_bytes()).unwrap_or_default();
        self.sequences[sequence].experts.extend_from_slice(experts);
        match decoded {
            Ok(()) => {
                self.logits_after = Some(LogitsPlace { sequence, cells: position + kept });
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

    /// The part of a prompt that the base computes.
    fn base_layout(&self, prompt: &FimPrompt) -> Layout {
        let mut layout = self.lay_out(prompt, 0);
        layout.cells.truncate(layout.adapter_from);
        layout
    }

    /// Computes what no document's KV has of a prompt.
    fn compute(&mut self, layout: &Layout, abort: &AtomicBool) -> Result<(), EngineError> {
        if self.missing(&layout.cells) == 0 {
            return Ok(());
        }
        let sequence = self.use_sequence(layout);
        let started = Instant::now();
        let (_, evaluated) = self.reach(sequence, &layout.cells, None, abort)?;
        self.speed.note(evaluated, started.elapsed());
        Ok(())
    }
}

fn free_gpu_bytes() -> Option<u64> {
    free_gpu().ok().flatten().map(|gpu| gpu.free)
}

pub(crate) fn tokenize(model: &LlamaModel, text: &str) -> Vec<u32> {
    let tokens = model.vocab().tokenize(text.as_bytes(), false, false);
    tokens.into_iter().map(|token| token.0 as u32).collect()
}

impl Engine for LlamaEngine {
    fn info(&self) -> EngineInfo {
        self.info.clone()
    }

    fn tokenizer(&self) -> Tokenizer {
        self.tokenizer.clone()
    }

    fn generate(
        &mut self,
        request: &Request,
        abort: &AtomicBool,
    ) -> Result<Generated, EngineError> {
        let started = Instant::now();
        let deadline = started + request.budget;
        self.context.set_threads(self.threads.now());
        let whole = self.lay_out(&request.prompt, request.adapter);
        let short = self.shorter(request, &whole);
        let without_context = short.is_some();
        let layout = short.unwrap_or(whole);
        let sequence = self.use_sequence(&layout);
        let Layout { prompt, adapter_from, cells, .. } = layout;
        let decoding =
            Decoding { request, prompt: &cells, adapter_from, sequence, deadline, abort };
        let (prompt_reused, prompt_evaluated) = if self.repeats(request, &cells) {
            (cells.len() as u32, 0)
        } else {
            self.reach(sequence, &cells, Some(deadline), abort)?
        };
        let prompt_time = started.elapsed();
        self.speed.note(prompt_evaluated, prompt_time);
        let answers = self.answers(&decoding)?;
        Ok(Generated {
            prompt,
            adapter_from,
            prompt_reused,
            prompt_evaluated,
            prompt_time,
            without_context,
            answers,
        })
    }

    fn continued(
        &mut self,
        request: &Continuation,
        abort: &AtomicBool,
    ) -> Result<Continued, EngineError> {
        LlamaEngine::continued(self, request, abort)
    }

    /// A prompt that shows other code is computed without it too. Whoever types before the whole
    /// one is there is answered from the short one, so that comes first unless the whole one is
    /// nearly there.
    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError> {
        self.context.set_threads(self.threads.now());
        let whole = self.base_layout(prompt);
        let Some(short) = without_other_code(prompt) else { return self.compute(&whole, abort) };
        let short = self.base_layout(&short);
        let is_whole_near = self.missing(&whole.cells) <= LAG_TOKENS;
        if is_whole_near {
            self.compute(&whole, abort)?;
        }
        if self.missing(&short.cells) > LAG_TOKENS {
            self.compute(&short, abort)?;
        }
        self.compute(&whole, abort)
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
        self.context.set_threads(if self.scores_in_background { 1 } else { self.threads.now() });
        let count = request.tokens.len();
        if count == 0 || count > SCORED_TOKENS || prompt.len() - from > SCORED_TAIL {
            return Err(EngineError::Failed("the text is empty or too long to be scored".into()));
        }
        self.lend(&base_cells(&prompt[..from]));
        let is_this = |scoring: &Scoring| scoring.request == *request;
        let interrupted = self.interrupted.take().filter(is_this);
        let mut scoring = interrupted.unwrap_or_else(|| Scoring::of(request));
        let text = LineEndVariants::new(&request.tokens, &self.vocab);
        let place = ScoredPlace { prompt: &prompt, from, healing: request.healing.as_bytes() };
        while let Some(&adapter) = request.adapters.get(scoring.scores.len()) {
            match self.see(&place, &text, adapter, &mut scoring.partial, abort) {
                Ok(score) => scoring.scores.push(score),
                Err(EngineError::Aborted) => {
                    self.interrupted = Some(scoring);
                    return Err(EngineError::Aborted);
                }
                Err(error) => return Err(error),
            }
            scoring.partial = PartialScore::default();
        }
        Ok(scoring.scores)
    }

    fn load_adapter(
        &mut self,
        version: AdapterVersion,
        path: &Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError> {
        self.context.load_adapter(version, path).map_err(EngineError::Failed)?;
        self.memory.forget();
        self.answer_experts.forget();
        // The number may have been that of an adapter that was refused.
        self.interrupted = None;
        let of_base = self.sequences[SCORING].cells.iter().take_while(|cell| cell.1 == 0).count();
        self.truncate(SCORING, of_base);
        let kept: Vec<AdapterVersion> = keep.iter().copied().chain([version]).collect();
        self.context.retain_adapters(&kept);
        Ok(())
    }

    fn prompt_kv(&mut self, prompt: &[u32]) -> Option<Vec<u8>> {
        let cells = base_cells(prompt);
        let holds_all = |sequence: &Sequence| sequence.cells.starts_with(&cells);
        let sequence = (0..SEQUENCES).find(|&i| holds_all(&self.sequences[i]))?;
        handed::rows(&self.context.state(sequence), prompt.len())
    }

    fn is_in_the_way(&self) -> bool {
        let Some(memory) = &self.gpu_memory else { return false };
        free_gpu_bytes().is_some_and(|free| memory.is_crowded(free))
    }
}
