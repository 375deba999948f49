//! What a setting of the learner is worth, without typing anything again: goes
//! through the events of a home in order, and has each batch of texts scored by the
//! adapter that the earlier ones made, before it is learned from (Dawid 1984).
//!
//!   prequential --model base.gguf --prompts shelf HOME… --variant rate=1e-3 …
//!
//! A rehearsal tells what it is worth to the user; this takes a tenth of its time,
//! and tells what to rehearse. The stream is that of the arm that served: what
//! another adapter would have offered on the way is not asked.

use anyhow::{Context, ensure};
use clap::Parser;
use feedback::episode::{Episode, Fold};
use feedback::event::EventKind;
use feedback::job::Hyper;
use feedback::log::EventLog;
use feedback::reward::RewardVersion;
use feedback::sled_log::SledLog;
use learner::batch::{Batch, Context as BatchContext};
use learner::lora::Lora;
use learner::model::{Model, Tail, TailBatch};
use learner::optim::AdamW;
use learner::ppo;
use learner::prompt::PromptKv;
use learner::threads::Threads;
use learner::weights;
use models::disk_cache::DiskCache as Shelf;
use models::gguf::Gguf;
use models::vocab::Vocab;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    model: PathBuf,
    /// Where prompts are kept for the next variant
    #[arg(long)]
    prompts: PathBuf,
    /// NAME=VALUE,…: settings of `learning.ppo`, or `replay`, `batch`, and `average`: what
    /// serves is a running mean of the weights, of which an update keeps at most this share
    #[arg(long = "variant")]
    variants: Vec<Variant>,
    /// Episodes to go through, at most
    #[arg(long, default_value_t = usize::MAX)]
    limit: usize,
    /// One stream out of all homes: what is learned in one is asked about in the next
    #[arg(long)]
    together: bool,
    /// A row for every batch, too
    #[arg(long)]
    batches: bool,
    homes: Vec<PathBuf>,
}

#[derive(Clone)]
struct Variant {
    name: String,
    hyper: Hyper,
    replay: usize,
    batch: usize,
    average: f64,
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Variant, String> {
        let mut hyper = serde_json::to_value(Hyper::default()).map_err(|e| e.to_string())?;
        let (mut replay, mut batch, mut average) = (0, 16, 0.0);
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or(format!("{part}: no NAME=VALUE"))?;
            let number = || value.parse().map_err(|_| format!("{value}: no number"));
            match name {
                "replay" => replay = number()?,
                "batch" => batch = number()?,
                "average" => {
                    average = value.parse().map_err(|_| format!("{value}: no number"))?;
                }
                _ => {
                    let value = serde_json::from_str(value).map_err(|e| e.to_string())?;
                    *hyper.get_mut(name).ok_or(format!("{name}: no setting"))? = value;
                }
            }
        }
        let hyper = serde_json::from_value(hyper).map_err(|e| e.to_string())?;
        Ok(Variant { name: text.to_owned(), hyper, replay, batch, average })
    }
}

struct Base {
    sha256: String,
    vocab: Vocab,
    model: Model<f32>,
}

/// What was typed at one place.
#[derive(Clone, Copy)]
struct Text {
    tokens: usize,
    base: Eyes,
    adapter: Eyes,
}

/// How one of them sees it.
#[derive(Clone, Copy)]
struct Eyes {
    /// Of the whole, in nats.
    logprob: f64,
    /// Decoding greedily it would have said just this.
    says: bool,
}

/// So cold that the likeliest token has all of the probability.
const COLD: f64 = 1e-3;
/// After as many updates half of a running mean is of the newest.
const AVERAGE_WARMUP: f64 = 9.0;
/// Few enough for their rows to fit a cache.
const TEXTS_AT_ONCE: usize = 8;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let gguf = Gguf::open(&arguments.model)?;
    let base = Base {
        sha256: models::file::sha256(&arguments.model)?,
        vocab: Vocab::from_gguf(&gguf)?,
        model: weights::load(&gguf)?,
    };
    let threads = Threads::fixed(rayon::current_num_threads());
    let mut streams = vec![];
    for home in &arguments.homes {
        let mut episodes = episodes(home, &base.sha256)?;
        episodes.truncate(arguments.limit);
        println!("{}: {} episodes", home.display(), episodes.len());
        streams.push(episodes);
    }
    if arguments.together {
        streams = vec![streams.concat()];
    }
    for episodes in &streams {
        println!("{} episodes", episodes.len());
        println!("             nats a token                      P(line)        right lines");
        println!("texts   base   gain  by quarter              base learned  base gain lost     s");
        for variant in &arguments.variants {
            let started = Instant::now();
            let mut shelf = Shelf::new(&arguments.prompts, &format!("learner {}", base.sha256))
                .map_err(anyhow::Error::msg)?;
            let texts = run(&base, episodes, variant, &mut shelf, &threads, &|texts| {
                if arguments.batches {
                    println!("{}", row(texts));
                }
            })?;
            println!("{} {:5.0}  {}", row(&texts), started.elapsed().as_secs_f64(), variant.name);
        }
    }
    Ok(())
}

fn episodes(home: &Path, sha256: &str) -> anyhow::Result<Vec<Episode>> {
    let log = SledLog::open(&home.join("data").join("events.sled"))?;
    let mut fold = Fold::new(RewardVersion::V1, sha256, None);
    log.scan(0, &mut |event| {
        if !matches!(event.kind, EventKind::Compared { .. }) {
            fold.apply(&event);
        }
        ControlFlow::Continue(())
    })?;
    let batch = fold.take_batch(usize::MAX);
    Ok(batch.context("no episodes")?.episodes)
}

fn run(
    base: &Base,
    episodes: &[Episode],
    variant: &Variant,
    shelf: &mut Shelf,
    threads: &Threads,
    scored: &dyn Fn(&[Text]),
) -> anyhow::Result<Vec<Text>> {
    let hyper = &variant.hyper;
    let context = |hyper| BatchContext {
        vocab: &base.vocab,
        base_sha256: &base.sha256,
        context: base.model.shape.context,
        parent: 0,
        reward: RewardVersion::V1,
        hyper,
    };
    let imitating = Hyper { demonstration_coefficient: 1.0, ..hyper.clone() };
    let mut lora = Lora::fresh(&base.model.shape, hyper.lora_rank, hyper.lora_alpha, 1)?;
    let mut optimizer = AdamW::new(&lora);
    let mut served = lora.clone();
    let mut texts = vec![];
    for (index, fresh) in episodes.chunks(variant.batch).enumerate() {
        if let Ok(batch) = Batch::new(fresh, &[], &context(&imitating)) {
            let kv = prompts(base, &batch, shelf, threads)?;
            let seen = look(base, &batch, &kv, &served, threads)?;
            scored(&seen);
            texts.extend(seen);
        }
        let end = index * variant.batch;
        let replay = &episodes[end.saturating_sub(variant.replay)..end];
        let Ok(batch) = Batch::new(fresh, replay, &context(hyper)) else { continue };
        let kv = prompts(base, &batch, shelf, threads)?;
        let seed = index as u64 + 1;
        let start = ppo::Start { lora, optimizer, fresh: index == 0, seed };
        let update =
            ppo::update(&base.model, start, &batch, &kv, hyper, threads, &mut |_, _, _| Ok(()))?;
        (lora, optimizer) = (update.lora, update.optimizer);
        // Warmed up: the mean of a few should not be mostly of the base.
        let updates = index as f64 + 1.0;
        let decay = variant.average.min(updates / (updates + AVERAGE_WARMUP));
        let mean = served
            .tensors()
            .zip(lora.tensors())
            .map(|(mean, new)| (mean * decay)? + (new * (1.0 - decay))?);
        let mean = mean.collect::<candle_core::Result<Vec<_>>>()?;
        served.replace(mean);
    }
    ensure!(!texts.is_empty(), "nothing was typed");
    Ok(texts)
}

fn prompts(
    base: &Base,
    batch: &Batch,
    shelf: &mut Shelf,
    threads: &Threads,
) -> anyhow::Result<PromptKv> {
    let prompts: Vec<&[u32]> = batch.samples.iter().map(|s| s.prompt.as_slice()).collect();
    PromptKv::compute(&base.model, &prompts, Some(shelf), threads, |_| Ok(()))
}

fn look(
    base: &Base,
    batch: &Batch,
    kv: &PromptKv,
    lora: &Lora,
    threads: &Threads,
) -> anyhow::Result<Vec<Text>> {
    let written: Vec<usize> =
        (0..batch.samples.len()).filter(|&i| batch.samples[i].written).collect();
    let tail = |index: usize, temperature: Option<f64>| {
        let sample = &batch.samples[index];
        let mut targets = sample.targets.clone();
        for target in &mut targets {
            target.temperature = temperature.unwrap_or(target.temperature);
        }
        let tokens = sample.tail.clone();
        Tail { place: kv.place(index), past: sample.prompt.len(), tokens, targets }
    };
    let mut texts = vec![];
    for few in written.chunks(TEXTS_AT_ONCE) {
        let look = |lora| -> anyhow::Result<Vec<Eyes>> {
            let logprobs = |temperature| {
                let tails: Vec<Tail> = few.iter().map(|&index| tail(index, temperature)).collect();
                threads.run(|| base.model.logprobs(lora, &TailBatch::new(&tails), kv))
            };
            let (mut warm, mut cold) =
                (logprobs(None)?.into_iter(), logprobs(Some(COLD))?.into_iter());
            let eyes = few.iter().map(|&index| {
                let targets = batch.samples[index].targets.len();
                let logprob = warm.by_ref().take(targets).map(f64::from).sum();
                // All of them, though the first may tell: the next text's follow.
                let mut cold = cold.by_ref().take(targets).collect::<Vec<f32>>().into_iter();
                Eyes { logprob, says: cold.all(|logprob| logprob > 0.5f32.ln()) }
            });
            Ok(eyes.collect())
        };
        for ((&index, base), adapter) in few.iter().zip(look(None)?).zip(look(Some(lora))?) {
            texts.push(Text { tokens: batch.samples[index].targets.len(), base, adapter });
        }
    }
    Ok(texts)
}

fn row(texts: &[Text]) -> String {
    let tokens = |texts: &[Text]| texts.iter().map(|text| text.tokens).sum::<usize>().max(1) as f64;
    let gain = |texts: &[Text]| {
        let gains = texts.iter().map(|text| text.adapter.logprob - text.base.logprob);
        gains.sum::<f64>() / tokens(texts)
    };
    let mean = |value: &dyn Fn(&Text) -> f64| {
        texts.iter().map(value).sum::<f64>() / texts.len().max(1) as f64
    };
    let count = |which: &dyn Fn(&Text) -> bool| texts.iter().filter(|text| which(text)).count();
    let quarters: Vec<String> = (0..4)
        .map(|q| &texts[q * texts.len() / 4..(q + 1) * texts.len() / 4])
        .map(|texts| format!("{:+.2}", gain(texts)))
        .collect();
    format!(
        "{:5} {:6.2} {:+6.3}  {}  {:6.3} {:6.3}   {:4} {:+4} {:4}",
        texts.len(),
        texts.iter().map(|text| text.base.logprob).sum::<f64>() / tokens(texts),
        gain(texts),
        quarters.join(" "),
        mean(&|text| text.base.logprob.exp()),
        mean(&|text| text.adapter.logprob.exp()),
        count(&|text| text.base.says),
        count(&|text| text.adapter.says && !text.base.says),
        -(count(&|text| text.base.says && !text.adapter.says) as i64),
    )
}
