//! Runs one job: reads its files, trains, writes the candidate, and reports.

use crate::limits::{EPISODES_MAX, PROMPT_KV_BYTES_MAX};
use crate::machine::memory::memory_mb;
use crate::machine::platform;
use crate::machine::threads::Threads;
use crate::model::Transformer;
#[cfg(feature = "cuda")]
use crate::model::gpu::GpuModel;
use crate::model::known_prompts::KnownPrompts;
use crate::model::load::load;
use crate::model::lora::Lora;
use crate::model::prompt_pass::{self, PromptKv};
use crate::ppo;
use crate::ppo::adamw::AdamW;
use crate::ppo::batch::{Batch, BatchInputs};
use crate::ppo::square::Square;
use crate::ppo::trained_part::{self, TrainedPart};
use anyhow::{Context, bail, ensure};
use feedback::job::{Base, Hyper, JOB_FORMAT, Job, JobProgress, Phase, Train, UpdateReport};
use models::adapter::LoraAdapter;
use models::disk_cache::DiskCache;
use models::file;
use models::gguf::Gguf;
use models::team::core::Core;
use models::team::frame::Frame;
use models::vocab::Vocab;
use std::fs::Metadata;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Runs jobs one after the other and keeps the base model in memory between them.
pub struct Trainer {
    loaded: Option<LoadedBase>,
    threads: Threads,
    folders: PromptFolders,
}

/// Folders of keys and values of prompts that need not be computed.
#[derive(Debug, Default)]
pub struct PromptFolders {
    /// Shared with other learners, and written to.
    pub shared: Option<PathBuf>,
    /// Filled by the daemon, and only read.
    pub handed: Option<PathBuf>,
}

impl PromptFolders {
    fn open(&self, base_sha256: &str) -> anyhow::Result<KnownPrompts> {
        let owner = format!("learner {base_sha256}");
        let shared = self.shared.as_ref().map(|folder| DiskCache::new(folder, &owner)).transpose();
        let handed = self.handed.as_ref().map(|folder| DiskCache::handed(folder, base_sha256));
        let handed = handed.transpose().unwrap_or_else(|error| {
            // All prompts can be computed.
            eprintln!("hone-learner: cannot read what the daemon has computed: {error}");
            None
        });
        Ok(KnownPrompts::new(shared.map_err(anyhow::Error::msg)?, handed))
    }
}

impl Default for Trainer {
    fn default() -> Trainer {
        Trainer::with_threads(Threads::adaptive())
    }
}

/// The job was given up because it was cancelled.
#[derive(Debug, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

/// A base model in memory, and the file that it was read from.
struct LoadedBase {
    path: PathBuf,
    sha256: String,
    stamp: FileStamp,
    gguf: Gguf,
    vocab: Vocab,
    model: Transformer<f32>,
}

/// Changes when a file is replaced.
#[derive(PartialEq)]
struct FileStamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    fn of(metadata: &Metadata) -> FileStamp {
        FileStamp { bytes: metadata.len(), modified: metadata.modified().ok() }
    }
}

impl Trainer {
    pub fn with_threads(threads: Threads) -> Trainer {
        Trainer { loaded: None, threads, folders: PromptFolders::default() }
    }

    /// Looks in these folders for the keys and values of prompts.
    pub fn with_prompts(folders: PromptFolders) -> Trainer {
        Trainer { folders, ..Trainer::default() }
    }

    /// Runs the job. When it returns `Ok`, the candidate and its optimizer state are on
    /// disk; when it returns an error, neither of them is.
    ///
    /// `progress` is called after every piece of work, which takes a few hundred
    /// milliseconds at most. If it breaks, the job ends with [`Cancelled`].
    pub fn run(
        &mut self,
        job: &Job,
        progress: &mut dyn FnMut(JobProgress) -> ControlFlow<()>,
    ) -> anyhow::Result<UpdateReport> {
        match self.attempt(job, progress) {
            Err(error) if self.leave_failed_gpu() => {
                eprintln!("hone-learner: the GPU failed, and the CPU goes on: {error:#}");
                self.attempt(job, progress)
            }
            done => done,
        }
    }

    /// Whether the model lay on a GPU that failed. It is then only on the CPU.
    #[cfg(feature = "cuda")]
    fn leave_failed_gpu(&mut self) -> bool {
        let Some(loaded) = &mut self.loaded else { return false };
        loaded.model.gpu.take_if(|gpu| gpu.has_failed()).is_some()
    }

    #[cfg(not(feature = "cuda"))]
    fn leave_failed_gpu(&mut self) -> bool {
        false
    }

    fn attempt(
        &mut self,
        job: &Job,
        progress: &mut dyn FnMut(JobProgress) -> ControlFlow<()>,
    ) -> anyhow::Result<UpdateReport> {
        let started = Instant::now();
        let mut progress = |phase, done, total| -> anyhow::Result<()> {
            let on = progress(JobProgress { job: job.id.clone(), phase, done, total });
            ensure!(on.is_continue(), Cancelled);
            check_memory(job.memory_limit_mb)
        };
        check_job(job)?;
        platform::limit_memory(job.memory_limit_mb);

        progress(Phase::Load, 0, 1)?;
        let Trainer { loaded, threads, folders } = self;
        let base = load_base(loaded, &job.base, job.memory_limit_mb)?;
        let StartingAdapter { lora, optimizer, part, mut invocation } =
            StartingAdapter::of(job, base)?;
        progress(Phase::Load, 1, 1)?;
        let load = started.elapsed();

        let prompt_started = Instant::now();
        let gpu = gpu_of(&base.model);
        let mut known = match &gpu {
            // What is known lies in the memory of the CPU.
            Some(_) => KnownPrompts::default(),
            None => folders.open(&base.sha256)?,
        };
        let batch = read_batch(job, base, &known)?;
        if invocation.is_empty() {
            invocation.extend(batch.invocation);
        }
        let kv = compute_prompts(base, &batch, &mut known, threads, &mut progress)?;
        let (model, hyper) = (&base.model, &job.hyper);
        let (fresh, seed) = (job.parent.is_none(), job.seed);
        let start = ppo::UpdateStart { lora, optimizer, part, fresh, seed };
        let inputs = ppo::UpdateInputs { model, batch: &batch, kv: &kv, hyper, threads };
        let update = ppo::update(&inputs, start, &mut progress)?;
        let prompt = update.trained_from.duration_since(prompt_started);
        let train = update.trained_from.elapsed();

        let adapter_sha256 = match &update.part {
            TrainedPart::Full | TrainedPart::Square(_) => {
                let candidate = update.lora.to_adapter(&model.shape, &base.sha256, invocation)?;
                write_files(job, &candidate, &update.optimizer)?
            }
            TrainedPart::Shared(part) => write_values(job, &part.values())?,
        };
        let times = Times { load, prompt, train, total: started.elapsed() };
        let report = report(job, &batch, kv.known, update, adapter_sha256, &times);
        Ok(UpdateReport { gpu, ..report })
    }
}

fn check_memory(limit_mb: u64) -> anyhow::Result<()> {
    let held_mb = memory_mb();
    ensure!(
        limit_mb == 0 || held_mb <= limit_mb,
        "the learner holds {held_mb} MiB, its limit is {limit_mb} MiB; raise \
         learning.memory_limit_mb or serve a smaller model"
    );
    Ok(())
}

/// What the update of a job starts from.
struct StartingAdapter {
    lora: Lora,
    optimizer: AdamW,
    part: TrainedPart,
    /// The tokens that switch the adapter on; empty if they are not known yet.
    invocation: Vec<u32>,
}

impl StartingAdapter {
    /// The parent and its optimizer state, or a fresh adapter.
    fn of(job: &Job, base: &LoadedBase) -> anyhow::Result<StartingAdapter> {
        let frame = Frame::of(&base.gguf, &base.sha256)?;
        let fresh = || trained_part::fresh(&frame, &base.model.shape, &job.hyper, job.seed);
        let Some(parent) = &job.parent else {
            let (lora, part) = fresh()?;
            let (optimizer, invocation) = (part.optimizer(&lora), Vec::new());
            return Ok(StartingAdapter { lora, optimizer, part, invocation });
        };
        let (mut lora, invocation) = read_parent(&parent.path, &parent.sha256, base, &job.hyper)?;
        if let Train::Shared { core } = &job.train {
            let square = Square::shared(&frame, &Core::read(&frame, core)?, &lora)?;
            let (optimizer, part) = (square.optimizer(), TrainedPart::Shared(square));
            return Ok(StartingAdapter { lora, optimizer, part, invocation });
        }
        if lora.shared_rank == lora.rank {
            lora = lora.with_private_part(fresh()?.0)?;
        }
        let part = TrainedPart::own(&frame, &lora)?;
        let optimizer = match &parent.optimizer {
            // An adapter can go on learning without its momentum. If an unreadable state
            // were an error, every later job would fail too.
            Some(path) => {
                AdamW::read(path, &part.lengths(&lora), &parent.sha256).unwrap_or_else(|error| {
                    eprintln!("hone-learner: {error:#}; Adam starts afresh");
                    part.optimizer(&lora)
                })
            }
            None => part.optimizer(&lora),
        };
        Ok(StartingAdapter { lora, optimizer, part, invocation })
    }
}

/// Turns the episodes of a job into samples, as many as fit into memory. Models whose heads share
/// no keys and values need up to 40 times the memory of others for a prompt.
fn read_batch(job: &Job, base: &LoadedBase, known: &KnownPrompts) -> anyhow::Result<Batch> {
    let inputs = BatchInputs {
        vocab: &base.vocab,
        base_sha256: &base.sha256,
        context_tokens: base.model.shape.context,
        experts: base.model.shape.expert_layout(),
        parent: job.parent.as_ref().map_or(0, |parent| parent.version),
        reward: job.reward,
        hyper: &job.hyper,
    };
    let mut batch = Batch::new(&job.episodes, &job.replay, &inputs)?;
    let prompts = prompts_of(&batch);
    let fitting = prompt_pass::fitting(&base.model, &prompts, known);
    if fitting < batch.samples.len() {
        eprintln!(
            "hone-learner: {fitting} of {} texts are learned, because the keys and values of more \
             prompts need over {} MiB with this model",
            batch.samples.len(),
            PROMPT_KV_BYTES_MAX >> 20
        );
        batch.keep_first(fitting);
    }
    ensure!(
        !batch.samples.is_empty(),
        "the keys and values of one prompt need over {} MiB with this model; shorten prompts with \
         lab.prompt_tokens or serve a smaller model",
        PROMPT_KV_BYTES_MAX >> 20
    );
    Ok(batch)
}

fn prompts_of(batch: &Batch) -> Vec<&[u32]> {
    batch.samples.iter().map(|sample| sample.prompt.as_slice()).collect()
}

/// Computes the keys and values of a batch's prompts.
fn compute_prompts(
    base: &LoadedBase,
    batch: &Batch,
    known: &mut KnownPrompts,
    threads: &Threads,
    progress: &mut dyn FnMut(Phase, usize, usize) -> anyhow::Result<()>,
) -> anyhow::Result<PromptKv> {
    let prompts = prompts_of(batch);
    PromptKv::compute(&base.model, &prompts, Some(known), threads, |done| {
        progress(Phase::Prompt, done, 2 * prompts.len())
    })
}

/// The time that each part of a job took.
struct Times {
    load: Duration,
    prompt: Duration,
    train: Duration,
    total: Duration,
}

fn report(
    job: &Job,
    batch: &Batch,
    prompts_known: usize,
    update: ppo::UpdateResult,
    adapter_sha256: String,
    times: &Times,
) -> UpdateReport {
    let milliseconds = |time: Duration| time.as_millis() as u64;
    UpdateReport {
        job: job.id.clone(),
        candidate: job.candidate,
        adapter_sha256,
        episodes_used: batch.judged().count(),
        episodes_dropped: batch.dropped.total(),
        episodes_replayed: batch.judged().filter(|(sample, _)| sample.replayed).count(),
        demonstrations: batch.samples.len() - batch.judged().count(),
        tokens_trained: batch.tokens(),
        steps: update.steps.len() as u32,
        stopped_early: update.stopped_early,
        mean_reward: batch.mean_of(|verdict| verdict.reward),
        mean_advantage: batch.mean_of(|verdict| verdict.advantage),
        mismatch: update.mismatch,
        ratio_before: update.ratio_before,
        steps_log: update.steps,
        logprob_rewarded: update.rewarded,
        logprob_unrewarded: update.unrewarded,
        demonstrated: update.demonstrated,
        kl_base: update.kl_base,
        update_ratio: update.update_ratio,
        prompts_known,
        gpu: None,
        load_ms: milliseconds(times.load),
        prompt_ms: milliseconds(times.prompt),
        train_ms: milliseconds(times.train),
        total_ms: milliseconds(times.total),
        peak_memory_mb: platform::peak_memory_mb(),
    }
}

/// Returns the base model. It is read from its file unless it is in memory and the file
/// has not changed.
fn load_base<'a>(
    kept: &'a mut Option<LoadedBase>,
    wanted: &Base,
    memory_limit_mb: u64,
) -> anyhow::Result<&'a LoadedBase> {
    let path = &wanted.path;
    let metadata = std::fs::metadata(path)
        .with_context(|| format!("cannot read the base model {}", path.display()))?;
    check_size(path, metadata.len() >> 20, memory_limit_mb)?;
    let stamp = FileStamp::of(&metadata);
    let current = kept.take_if(|loaded| loaded.path != *path || loaded.stamp != stamp);
    // The old one is freed before the next one is read: memory never has to hold both.
    drop(current);
    if kept.is_none() {
        let sha256 = file::sha256(path)
            .with_context(|| format!("cannot read the base model {}", path.display()))?;
        // The wrong model is refused before hundreds of megabytes are read into memory.
        check_base(path, &sha256, &wanted.sha256)?;
        let gguf = Gguf::open(path)?;
        let vocab = Vocab::from_gguf(&gguf)?;
        let mut model = load(&gguf)?;
        use_gpu(&mut model);
        *kept = Some(LoadedBase { path: path.clone(), sha256, stamp, gguf, vocab, model });
    }
    let Some(loaded) = kept else { bail!("the base model was not kept") };
    check_base(path, &loaded.sha256, &wanted.sha256)?;
    Ok(loaded)
}

/// Copies the model to a GPU if there is one and the program was built for it. Without one
/// the CPU does the work, so that this is never an error.
#[cfg(feature = "cuda")]
fn use_gpu(model: &mut Transformer<f32>) {
    match GpuModel::copy_of(model) {
        Ok(gpu) => {
            eprintln!("hone-learner: learning on {}", gpu.name());
            model.gpu = Some(gpu);
        }
        Err(error) => eprintln!("hone-learner: learning on the CPU: {error:#}"),
    }
}

/// The name of the GPU that computes the passes of a model.
#[cfg(feature = "cuda")]
fn gpu_of(model: &Transformer<f32>) -> Option<String> {
    model.gpu.as_ref().map(|gpu| gpu.name().to_owned())
}

#[cfg(not(feature = "cuda"))]
fn gpu_of(_: &Transformer<f32>) -> Option<String> {
    None
}

#[cfg(not(feature = "cuda"))]
fn use_gpu(_: &mut Transformer<f32>) {}

/// Refuses a base model that is larger than the learner may be. All of it is in memory, the experts
/// that no token uses included.
fn check_size(path: &Path, megabytes: u64, limit_mb: u64) -> anyhow::Result<()> {
    ensure!(
        limit_mb == 0 || megabytes <= limit_mb,
        "the base model {} needs {megabytes} MiB of memory, and the learner may hold {limit_mb}; \
         raise learning.memory_limit_mb or serve a smaller model",
        path.display()
    );
    Ok(())
}

fn check_base(path: &Path, found: &str, wanted: &str) -> anyhow::Result<()> {
    ensure!(
        found.eq_ignore_ascii_case(wanted),
        "the base model {} has SHA-256 {found}, the job was made for {wanted}",
        path.display()
    );
    Ok(())
}

/// Reads the parent adapter and the tokens that switch it on. It keeps the rank and alpha that
/// it was made with, whatever is set for new adapters, because what it learned is lost in any
/// other shape.
fn read_parent(
    path: &Path,
    sha256: &str,
    base: &LoadedBase,
    hyper: &Hyper,
) -> anyhow::Result<(Lora, Vec<u32>)> {
    let found = file::sha256(path)
        .with_context(|| format!("cannot read the parent adapter {}", path.display()))?;
    ensure!(
        found.eq_ignore_ascii_case(sha256),
        "the parent adapter {} has SHA-256 {found}, the job names {sha256}; \
         roll back to another version",
        path.display()
    );
    let adapter = LoraAdapter::read(path)?;
    adapter.check_base(&base.gguf, &base.sha256)?;
    let mut own = Hyper { lora_rank: adapter.rank, lora_alpha: adapter.alpha, ..hyper.clone() };
    if adapter.shared_rank > 0 {
        // The settings are those of a private part.
        let private = adapter.rank - adapter.shared_rank.min(adapter.rank);
        let alpha = adapter.alpha / adapter.rank as f32 * private as f32;
        let given = (hyper.lora_rank, hyper.lora_alpha);
        (own.lora_rank, own.lora_alpha) = if private == 0 { given } else { (private, alpha) };
    }
    own.check().with_context(|| {
        format!(
            "cannot learn on from the parent adapter {}; `hone adapter use 0` starts a new one",
            path.display()
        )
    })?;
    if own != *hyper {
        eprintln!(
            "hone-learner: {} has LoRA rank {} and alpha {} and keeps them; lab.ppo.lora_rank \
             = {} and lora_alpha = {} are for the next adapter that starts from the base",
            path.display(),
            own.lora_rank,
            own.lora_alpha,
            hyper.lora_rank,
            hyper.lora_alpha
        );
    }
    let lora = Lora::from_adapter(&adapter, &base.model.shape)
        .with_context(|| format!("cannot use the parent adapter {}", path.display()))?;
    Ok((lora, adapter.invocation))
}

/// Writes both files or neither of them. Returns the adapter's SHA-256.
fn write_files(job: &Job, adapter: &LoraAdapter, optimizer: &AdamW) -> anyhow::Result<String> {
    let sha256 = adapter.write(&job.adapter_out)?;
    let state = optimizer.to_bytes(&sha256).and_then(|bytes| {
        file::write_atomic(&job.optimizer_out, &bytes).with_context(|| {
            format!("cannot write the optimizer state {}", job.optimizer_out.display())
        })
    });
    if let Err(error) = state {
        // Without its optimizer state and report the adapter must not stay.
        if let Err(left) = std::fs::remove_file(&job.adapter_out) {
            let path = job.adapter_out.display();
            return Err(error.context(format!("and {path} could not be removed again: {left}")));
        }
        return Err(error);
    }
    Ok(sha256)
}

/// Writes the values of the shared part. Returns the file's SHA-256.
fn write_values(job: &Job, values: &[f32]) -> anyhow::Result<String> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    file::write_atomic(&job.adapter_out, &bytes)
        .with_context(|| format!("cannot write {}", job.adapter_out.display()))?;
    Ok(file::sha256_of(&bytes))
}

/// Refuses a job that cannot be right, before any file is read.
fn check_job(job: &Job) -> anyhow::Result<()> {
    ensure!(
        job.format == JOB_FORMAT,
        "job format {} is not {JOB_FORMAT}, the one this learner speaks; \
         use daemon and learner of one version",
        job.format
    );
    let episodes = job.episodes.len() + job.replay.len();
    ensure!(episodes <= EPISODES_MAX, "{episodes} episodes, the limit is {EPISODES_MAX}");
    ensure!(job.adapter_out != job.optimizer_out, "adapter_out and optimizer_out are one file");
    let is_shared = job.train != Train::Private;
    ensure!(!is_shared || job.parent.is_some(), "a shared part is trained within an adapter");
    job.hyper.check()?;
    Ok(())
}
