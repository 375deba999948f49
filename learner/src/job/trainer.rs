//! Runs one job: reads its files, trains, writes the candidate, and reports.

use crate::job::loaded_base::{LoadedBase, load_base};
use crate::job::starting_adapter::StartingAdapter;
use crate::limits::{EPISODES_MAX, PROMPT_KV_BYTES_MAX};
use crate::machine::memory::memory_mb;
use crate::machine::platform;
use crate::machine::threads::Threads;
use crate::model::Transformer;
use crate::model::known_prompts::{KnownPrompts, OpenPrompts};
use crate::model::prompt_pass::{self, PromptKv};
use crate::ppo;
use crate::ppo::adam::Adam;
use crate::ppo::batch::{Batch, BatchInputs, offers_left};
use crate::ppo::trained_part::TrainedPart;
use anyhow::{Context, ensure};
use feedback::event::OfferId;
use feedback::job::{JOB_FORMAT, Job, JobProgress, Phase, PhaseTimes, Train, UpdateReport};
use models::adapter::LoraAdapter;
use models::disk_cache::DiskCache;
use models::file;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

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
        let done = match self.attempt(job, progress) {
            Err(error) if self.leave_failed_gpu() => {
                eprintln!("hone-learner: the GPU failed, and the CPU continues: {error:#}");
                self.attempt(job, progress)
            }
            done => done,
        };
        platform::return_free_memory();
        done
    }

    /// Returns true if the model lay on a GPU that failed. It is then only on the CPU.
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
        platform::return_free_memory();
        let load = started.elapsed();

        let prompt_started = Instant::now();
        let gpu = gpu_of(&base.model);
        let mut known = match &gpu {
            // What is known is read into the memory of the CPU.
            Some(_) => KnownPrompts::default(),
            None => folders.open(&base.sha256)?,
        };
        let (batch, left_out, open) = read_batch(job, base, &known)?;
        if invocation.is_empty() {
            invocation.extend(batch.invocation);
        }
        let computed_from = Instant::now();
        let kv = compute_prompts(base, &batch, open, threads, &mut progress)?;
        let prompts = computed_from.elapsed();
        known.keep(&prompts_of(&batch), |index| kv.computed(index))?;
        // What a prompt pass frees lies between what it keeps.
        platform::return_free_memory();
        let (model, hyper) = (&base.model, &job.hyper);
        let (fresh, seed) = (job.parent.is_none(), job.seed);
        let start = ppo::UpdateStart { lora, optimizer, part, fresh, seed };
        let inputs = ppo::UpdateInputs { model, batch: &batch, kv: &kv, hyper, threads };
        let update = ppo::update(&inputs, start, &mut progress)?;
        let prompt = update.trained_from.duration_since(prompt_started);
        let train = update.trained_from.elapsed();
        let prompts_known = kv.known;
        drop(kv);

        let written_from = Instant::now();
        let adapter_sha256 = match &update.part {
            TrainedPart::Full | TrainedPart::Square(_) => {
                let candidate = update.lora.to_adapter(&model.shape, &base.sha256, invocation)?;
                write_files(job, &candidate, &update.optimizer)?
            }
            TrainedPart::Shared(part) => write_values(job, &part.values())?,
        };
        let phases = phase_times(&update.times, prompts, written_from.elapsed());
        let times = Times { load, prompt, train, total: started.elapsed(), phases };
        let report = report(job, &batch, prompts_known, update, adapter_sha256, &times);
        Ok(UpdateReport { gpu, left_out, ..report })
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

/// Turns the episodes of a job into samples, as many as fit into memory. Models whose heads share
/// no keys and values need up to 40 times the memory of others for a prompt. Returns with them the
/// offers that are left to the next job, and the prompts that are known.
fn read_batch(
    job: &Job,
    base: &LoadedBase,
    known: &KnownPrompts,
) -> anyhow::Result<(Batch, Vec<OfferId>, OpenPrompts)> {
    let inputs = BatchInputs {
        vocab: &base.vocab,
        base_sha256: &base.sha256,
        context_tokens: base.model.shape.context,
        experts: base.model.shape.expert_layout(),
        parent: job.parent.as_ref().map_or(0, |parent| parent.version),
        hyper: &job.hyper,
    };
    let mut batch = Batch::new(&job.episodes, &inputs)?;
    let prompts = prompts_of(&batch);
    let open = known.open(&base.model, &prompts);
    let fitting = prompt_pass::fitting(&base.model, &prompts, &open, &batch.by_urgency());
    let left = batch.keep(&fitting);
    if !left.is_empty() {
        eprintln!(
            "hone-learner: {} of {} texts are learned, because the keys and values of more \
             prompts need over {} MiB with this model",
            batch.samples.len(),
            fitting.len(),
            PROMPT_KV_BYTES_MAX >> 20
        );
    }
    ensure!(
        !batch.samples.is_empty(),
        "the keys and values of one prompt need over {} MiB with this model; shorten prompts with \
         lab.prompt_tokens or serve a smaller model",
        PROMPT_KV_BYTES_MAX >> 20
    );
    let fits_alone = |prompt: &[u32]| prompt_pass::fits_alone(&base.model, prompt);
    let left_out = offers_left(&left, &job.episodes, fits_alone);
    Ok((batch, left_out, open))
}

fn prompts_of(batch: &Batch) -> Vec<&[u32]> {
    batch.samples.iter().map(|sample| sample.prompt.as_slice()).collect()
}

/// Computes the keys and values of a batch's prompts that are not `known`.
fn compute_prompts(
    base: &LoadedBase,
    batch: &Batch,
    known: OpenPrompts,
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
    phases: PhaseTimes,
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// The phases as the report has them. Only the daemon knows for how long it stopped the learner.
fn phase_times(update: &ppo::UpdateTimes, prompts: Duration, write: Duration) -> PhaseTimes {
    PhaseTimes {
        prompts: milliseconds(prompts),
        references: milliseconds(update.references),
        forward: milliseconds(update.forward),
        backward: milliseconds(update.backward),
        optimizer: milliseconds(update.optimizer),
        check: milliseconds(update.check),
        write: milliseconds(write),
        stopped: 0,
    }
}

fn report(
    job: &Job,
    batch: &Batch,
    prompts_known: usize,
    update: ppo::UpdateResult,
    adapter_sha256: String,
    times: &Times,
) -> UpdateReport {
    UpdateReport {
        job: job.id.clone(),
        candidate: job.candidate,
        adapter_sha256,
        episodes_used: batch.judged().count(),
        episodes_dropped: batch.dropped.total(),
        left_out: Vec::new(),
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
        phases: times.phases,
        peak_memory_mb: platform::peak_memory_mb(),
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

/// Writes both files or neither of them. Returns the adapter's SHA-256.
fn write_files(job: &Job, adapter: &LoraAdapter, optimizer: &Adam) -> anyhow::Result<String> {
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
    let episodes = job.episodes.len();
    ensure!(episodes <= EPISODES_MAX, "{episodes} episodes, the limit is {EPISODES_MAX}");
    ensure!(job.adapter_out != job.optimizer_out, "adapter_out and optimizer_out are one file");
    let is_shared = job.train != Train::Private;
    ensure!(!is_shared || job.parent.is_some(), "a shared part is trained within an adapter");
    job.hyper.check()?;
    Ok(())
}
