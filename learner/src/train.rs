//! One job from its line to its files and its report.

use crate::batch::{Batch, Context as BatchContext};
use crate::lora::Lora;
use crate::model::Model;
use crate::optim::AdamW;
use crate::ppo;
use crate::prompt::PromptKv;
use crate::threads::Threads;
use crate::{system, weights};
use anyhow::{Context, bail, ensure};
use feedback::job::{Base, Hyper, JOB_FORMAT, Job, Phase, Progress, Report};
use models::adapter::Adapter;
use models::disk_cache::DiskCache as Shelf;
use models::file;
use models::gguf::Gguf;
use models::vocab::Vocab;
use std::fs::Metadata;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Episodes in a job, at most.
pub const EPISODES_LIMIT: usize = 4096;

/// LoRA rank, at most: beyond it an adapter is larger than it is useful.
const RANK_LIMIT: usize = 256;

/// Runs jobs one after another and keeps the base model between them.
pub struct Trainer {
    loaded: Option<Loaded>,
    threads: Threads,
    /// Where prompts are shared with other learners.
    prompt_shelf: Option<PathBuf>,
}

impl Default for Trainer {
    fn default() -> Trainer {
        Trainer::with_threads(Threads::adaptive())
    }
}

/// The job was given up because whoever asked for it does not want it any more.
#[derive(Debug, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

/// A base model in memory, and the file it came from.
struct Loaded {
    path: PathBuf,
    sha256: String,
    stamp: Stamp,
    gguf: Gguf,
    vocab: Vocab,
    model: Model<f32>,
}

/// Tells a file that was replaced from one that was not.
#[derive(PartialEq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp { bytes: metadata.len(), modified: metadata.modified().ok() }
    }
}

impl Trainer {
    pub fn with_threads(threads: Threads) -> Trainer {
        Trainer { loaded: None, threads, prompt_shelf: None }
    }

    /// Shares prompts with other learners through this folder, if there is one.
    pub fn sharing(prompt_shelf: Option<PathBuf>) -> Trainer {
        Trainer { prompt_shelf, ..Trainer::default() }
    }

    /// Runs the job; the candidate and its optimizer state are on disk when it
    /// returns `Ok`, and neither is when it returns an error.
    ///
    /// `progress` is asked after every piece of work, at most some hundred
    /// milliseconds of it, and may end the job: [`Cancelled`].
    pub fn run(
        &mut self,
        job: &Job,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> anyhow::Result<Report> {
        let started = Instant::now();
        let mut progress = |phase, done, total| -> anyhow::Result<()> {
            let on = progress(Progress { job: job.id.clone(), phase, done, total });
            ensure!(on.is_continue(), Cancelled);
            let held = system::memory_mb();
            ensure!(
                job.memory_limit_mb == 0 || held <= job.memory_limit_mb,
                "the learner holds {held} MiB, its limit is {} MiB; raise \
                 learning.memory_limit_mb or serve a smaller model",
                job.memory_limit_mb
            );
            Ok(())
        };
        check(job)?;
        system::limit_memory(job.memory_limit_mb);

        progress(Phase::Load, 0, 1)?;
        let Trainer { loaded, threads, prompt_shelf } = self;
        let base = base(loaded, &job.base)?;
        let model = &base.model;
        let parent = match &job.parent {
            Some(parent) => Some(read_parent(&parent.path, &parent.sha256, base, &job.hyper)?),
            None => None,
        };
        let (lora, mut invocation) = match &parent {
            Some((lora, invocation)) => (lora.clone(), invocation.clone()),
            None => {
                let (rank, alpha) = (job.hyper.lora_rank, job.hyper.lora_alpha);
                (Lora::fresh(&model.shape, rank, alpha, job.seed)?, Vec::new())
            }
        };
        let optimizer = match job.parent.as_ref().and_then(|p| Some((p.optimizer.as_ref()?, p))) {
            // Without its momentum an adapter learns on; without a state it can read, a
            // learner that refused would never learn again.
            Some((path, parent)) => {
                AdamW::read(path, &lora, &parent.sha256).unwrap_or_else(|error| {
                    eprintln!("hone-learner: {error:#}; Adam starts afresh");
                    AdamW::new(&lora)
                })
            }
            None => AdamW::new(&lora),
        };
        progress(Phase::Load, 1, 1)?;
        let load = started.elapsed();

        let prompt_started = Instant::now();
        let context = BatchContext {
            vocab: &base.vocab,
            base_sha256: &base.sha256,
            context: model.shape.context,
            parent: job.parent.as_ref().map_or(0, |parent| parent.version),
            reward: job.reward,
            hyper: &job.hyper,
        };
        let batch = Batch::new(&job.episodes, &job.replay, &context)?;
        if invocation.is_empty() {
            invocation.extend(batch.invocation);
        }
        let prompts: Vec<&[u32]> =
            batch.samples.iter().map(|sample| sample.prompt.as_slice()).collect();
        let mut shelf = match prompt_shelf {
            Some(folder) => Some(shelf(folder, &base.sha256)?),
            None => None,
        };
        let kv = PromptKv::compute(model, &prompts, shelf.as_mut(), threads, |done| {
            progress(Phase::Prompt, done, 2 * prompts.len())
        })?;

        let start = ppo::Start { lora, optimizer, fresh: parent.is_none(), seed: job.seed };
        let update = ppo::update(model, start, &batch, &kv, &job.hyper, threads, &mut progress)?;
        let prompt = update.trained_from.duration_since(prompt_started);
        let train = update.trained_from.elapsed();

        let architecture = &model.shape.architecture;
        let candidate = update.lora.to_adapter(architecture, &base.sha256, invocation)?;
        let adapter_sha256 = write(job, &candidate, &update.optimizer)?;
        let milliseconds = |time: Duration| time.as_millis() as u64;
        Ok(Report {
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
            load_ms: milliseconds(load),
            prompt_ms: milliseconds(prompt),
            train_ms: milliseconds(train),
            total_ms: milliseconds(started.elapsed()),
            peak_memory_mb: system::peak_memory_mb(),
        })
    }
}

fn shelf(folder: &Path, base_sha256: &str) -> anyhow::Result<Shelf> {
    Shelf::new(folder, &format!("learner {base_sha256}")).map_err(anyhow::Error::msg)
}

/// The base model, from memory if its file is still the one that was read.
fn base<'a>(kept: &'a mut Option<Loaded>, wanted: &Base) -> anyhow::Result<&'a Loaded> {
    let path = &wanted.path;
    let metadata = std::fs::metadata(path)
        .with_context(|| format!("cannot read the base model {}", path.display()))?;
    let stamp = Stamp::of(&metadata);
    let current = kept.take_if(|loaded| loaded.path != *path || loaded.stamp != stamp);
    // Freed before the next one is read: two bases never share the memory.
    drop(current);
    if kept.is_none() {
        let sha256 = file::sha256(path)
            .with_context(|| format!("cannot read the base model {}", path.display()))?;
        // Before a model of hundreds of megabytes is read for nothing.
        check_base(path, &sha256, &wanted.sha256)?;
        let gguf = Gguf::open(path)?;
        let vocab = Vocab::from_gguf(&gguf)?;
        let mut model = weights::load(&gguf)?;
        use_gpu(&mut model);
        ensure!(
            vocab.len() <= model.shape.vocabulary,
            "the base model {} has {} tokens but embeds only {}",
            path.display(),
            vocab.len(),
            model.shape.vocabulary
        );
        *kept = Some(Loaded { path: path.clone(), sha256, stamp, gguf, vocab, model });
    }
    let Some(loaded) = kept else { bail!("the base model was not kept") };
    check_base(path, &loaded.sha256, &wanted.sha256)?;
    Ok(loaded)
}

/// A GPU is used where there is one and the program was built for it; the CPU
/// serves as well, so that its absence is a notice and no error.
#[cfg(feature = "cuda")]
fn use_gpu(model: &mut Model<f32>) {
    match crate::gpu::take_over(model) {
        Ok(name) => eprintln!("hone-learner: learning on {name}"),
        Err(error) => eprintln!("hone-learner: learning on the CPU: {error:#}"),
    }
}

#[cfg(not(feature = "cuda"))]
fn use_gpu(_: &mut Model<f32>) {}

fn check_base(path: &Path, found: &str, wanted: &str) -> anyhow::Result<()> {
    ensure!(
        found.eq_ignore_ascii_case(wanted),
        "the base model {} has SHA-256 {found}, the job was made for {wanted}",
        path.display()
    );
    Ok(())
}

/// The parent adapter and the tokens that invoke it.
fn read_parent(
    path: &Path,
    sha256: &str,
    base: &Loaded,
    hyper: &Hyper,
) -> anyhow::Result<(Lora, Vec<u32>)> {
    let found = file::sha256(path)
        .with_context(|| format!("cannot read the parent adapter {}", path.display()))?;
    ensure!(
        found.eq_ignore_ascii_case(sha256),
        "the parent adapter {} has SHA-256 {found}, the job names {sha256}; roll back to another version",
        path.display()
    );
    let adapter = Adapter::read(path)?;
    adapter.check_base(&base.gguf, &base.sha256)?;
    ensure!(
        adapter.rank == hyper.lora_rank && adapter.alpha == hyper.lora_alpha,
        "the parent adapter {} has rank {} and alpha {}, the job asks for {} and {}",
        path.display(),
        adapter.rank,
        adapter.alpha,
        hyper.lora_rank,
        hyper.lora_alpha
    );
    let lora = Lora::from_adapter(&adapter, &base.model.shape)
        .with_context(|| format!("cannot use the parent adapter {}", path.display()))?;
    Ok((lora, adapter.invocation))
}

/// Writes both files or neither; returns the adapter's SHA-256.
fn write(job: &Job, adapter: &Adapter, optimizer: &AdamW) -> anyhow::Result<String> {
    let sha256 = adapter.write(&job.adapter_out)?;
    let state = optimizer.to_bytes(&sha256).and_then(|bytes| {
        file::write_atomic(&job.optimizer_out, &bytes).with_context(|| {
            format!("cannot write the optimizer state {}", job.optimizer_out.display())
        })
    });
    if let Err(error) = state {
        // An adapter without its report is nobody's; the job's error says why.
        if let Err(left) = std::fs::remove_file(&job.adapter_out) {
            let path = job.adapter_out.display();
            return Err(error.context(format!("and {path} could not be removed again: {left}")));
        }
        return Err(error);
    }
    Ok(sha256)
}

/// What can be refused before anything is read.
fn check(job: &Job) -> anyhow::Result<()> {
    ensure!(
        job.format == JOB_FORMAT,
        "job format {} is not {JOB_FORMAT}, the one this learner speaks; use daemon and learner of one version",
        job.format
    );
    let episodes = job.episodes.len() + job.replay.len();
    ensure!(episodes <= EPISODES_LIMIT, "{episodes} episodes, the limit is {EPISODES_LIMIT}");
    ensure!(job.adapter_out != job.optimizer_out, "adapter_out and optimizer_out are one file");
    let hyper = &job.hyper;
    ensure!(
        (1..=RANK_LIMIT).contains(&hyper.lora_rank),
        "lora_rank is {}, it must be 1 to {RANK_LIMIT}",
        hyper.lora_rank
    );
    ensure!(hyper.epochs >= 1, "epochs is 0");
    ensure!(hyper.minibatch_episodes >= 1, "minibatch_episodes is 0");
    let unit = |value: f32| (0.0..1.0).contains(&value);
    let positive = |value: f32| value.is_finite() && value > 0.0;
    let not_negative = |value: f32| value.is_finite() && value >= 0.0;
    for (name, value, valid) in [
        ("lora_alpha", hyper.lora_alpha, positive as fn(f32) -> bool),
        ("learning_rate", hyper.learning_rate, not_negative),
        ("adam_beta1", hyper.adam_beta1, unit),
        ("adam_beta2", hyper.adam_beta2, unit),
        ("adam_epsilon", hyper.adam_epsilon, positive),
        ("weight_decay", hyper.weight_decay, not_negative),
        ("max_grad_norm", hyper.max_grad_norm, positive),
        ("max_update_ratio", hyper.max_update_ratio, positive),
        ("clip_low", hyper.clip_low, unit),
        ("clip_high", hyper.clip_high, not_negative),
        ("baseline", hyper.baseline, f32::is_finite),
        ("kl_coefficient", hyper.kl_coefficient, not_negative),
        ("max_importance_weight", hyper.max_importance_weight, positive),
        ("target_kl", hyper.target_kl, positive),
        ("policy_coefficient", hyper.policy_coefficient, not_negative),
        ("demonstration_coefficient", hyper.demonstration_coefficient, not_negative),
        ("demonstration_exponent", hyper.demonstration_exponent, not_negative),
    ] {
        ensure!(valid(value), "{name} is {value}, which PPO cannot use");
    }
    Ok(())
}
