//! Measures settings of the learner on recorded events, without typing anything again.
//!
//!   hone-lab prequential --model base.gguf --prompts CACHE HOME… --variant learning_rate=1e-3 …
//!
//! It goes through the events of a home in order. Each batch of texts is scored by the adapter
//! that has learned from the earlier batches, before it is learned from itself (prequential
//! analysis, Dawid 1984).
//!
//! A rehearsal measures what a setting is worth to the user. This program takes a tenth of the
//! time and shows which settings are worth a rehearsal. The events are those of the adapters
//! that served; what another adapter would have offered is unknown.

use crate::lines::{self, Scores, interval};
use crate::scoring::{Base, TokenScores, prompts, score_texts};
use anyhow::{Context, ensure};
use clap::Args;
use feedback::episode::{Episode, Fold};
use feedback::event::EventKind;
use feedback::job::Hyper;
use feedback::log::EventLog;
use feedback::sled_log::SledLog;
use learner::model::known_prompts::KnownPrompts;
use learner::model::lm_head::Target;
use learner::model::lora::Lora;
use learner::model::prompt_pass::PromptKv;
use learner::ppo;
use learner::ppo::batch::{Batch, Sample};
use learner::ppo::trained_part::TrainedPart;
use models::disk_cache::DiskCache;
use models::gguf::Gguf;
use models::vocab::Vocab;
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

#[derive(Args)]
pub struct Arguments {
    #[arg(long)]
    model: PathBuf,
    /// The folder that keeps the prompts for the next variant
    #[arg(long)]
    prompts: PathBuf,
    /// NAME=VALUE,…: settings of `lab.ppo`, or `batch`, the number of texts of an update
    #[arg(long = "variant")]
    variants: Vec<Variant>,
    /// The largest number of episodes of a home
    #[arg(long, default_value_t = usize::MAX)]
    limit: usize,
    /// Go through all homes as one stream, so that an adapter learns from all of them
    #[arg(long)]
    together: bool,
    /// Append every text's tokens, gain in nats and characters of right lines, a JSON object a line
    #[arg(long, value_name = "FILE")]
    texts: Option<PathBuf>,
    /// Print a row for every batch, too
    #[arg(long)]
    batches: bool,
    /// Homes, or files that `hone-lab texts` printed
    homes: Vec<PathBuf>,
}

#[derive(Clone)]
struct Variant {
    name: String,
    hyper: Hyper,
    batch: usize,
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Variant, String> {
        let mut hyper = serde_json::to_value(Hyper::default()).map_err(|e| e.to_string())?;
        let mut batch = 16;
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or(format!("{part} is not NAME=VALUE"))?;
            if name == "batch" {
                batch = value.parse().map_err(|_| format!("{value} is not a number"))?;
            } else {
                let value = serde_json::from_str(value).map_err(|e| e.to_string())?;
                *hyper.get_mut(name).ok_or(format!("{name} is not a setting"))? = value;
            }
        }
        let hyper = serde_json::from_value(hyper).map_err(|e| e.to_string())?;
        let name = text.to_owned();
        Ok(Variant { name, hyper, batch })
    }
}

/// A text that the user typed, and its scores.
struct ScoredText {
    seq: u64,
    tokens: usize,
    base: Score,
    adapter: Score,
}

/// The score of a text under the base or an adapter.
struct Score {
    /// The log-prob of the whole text, in nats.
    logprob: f64,
    lines: Scores,
}

impl Score {
    fn of(text: &TokenScores, targets: &[Target], vocab: &Vocab) -> Score {
        let mut lines = Scores::default();
        lines.add(text, targets, vocab);
        Score { logprob: text.logprobs.iter().sum(), lines }
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let gguf = Gguf::open(&arguments.model)?;
    let base = Base::open(&gguf)?;
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
    let mut of_variants: Vec<Vec<ScoredText>> = vec![];
    of_variants.resize_with(arguments.variants.len(), Vec::new);
    for episodes in &streams {
        println!("{} episodes", episodes.len());
        println!("             nats a token                           right           characters");
        println!("texts   base   gain  by quarter               lines  base learned             s");
        for (variant, of_variant) in arguments.variants.iter().zip(&mut of_variants) {
            let started = Instant::now();
            let cache = DiskCache::new(&arguments.prompts, &format!("learner {}", base.sha256));
            let mut cache = KnownPrompts::new(Some(cache.map_err(anyhow::Error::msg)?), None);
            let texts = score_stream(&base, episodes, variant, &mut cache, &|texts| {
                if arguments.batches {
                    println!("{}", row(texts));
                }
            })?;
            println!("{} {:5.0}  {}", row(&texts), started.elapsed().as_secs_f64(), variant.name);
            if let Some(file) = &arguments.texts {
                append(file, &variant.name, &texts)?;
            }
            of_variant.extend(texts);
        }
    }
    if let (true, Some((first, others))) = (streams.len() > 1, of_variants.split_first()) {
        print_together(&arguments.variants, first, others);
    }
    Ok(())
}

/// Appends the scores of each text to the file.
fn append(file: &Path, variant: &str, texts: &[ScoredText]) -> anyhow::Result<()> {
    let mut file = File::options().create(true).append(true).open(file)?;
    for text in texts {
        let line = serde_json::json!({
            "variant": variant,
            "tokens": text.tokens,
            "gain": text.adapter.logprob - text.base.logprob,
            "base": text.base.lines.right_characters,
            "adapter": text.adapter.lines.right_characters,
        });
        writeln!(file, "{line}")?;
    }
    Ok(())
}

/// Prints what all streams give together, and how each variant compares with the first one on the
/// same texts.
fn print_together(variants: &[Variant], first: &[ScoredText], others: &[Vec<ScoredText>]) {
    println!("all streams, against the base, and the characters against the first variant");
    println!("{}  {}", row(first), variants[0].name);
    let before = characters(first, |text| &text.adapter);
    for (variant, texts) in variants[1..].iter().zip(others) {
        let after = characters(texts, |text| &text.adapter);
        let gain = lines::gain(before.iter().sum(), after.iter().sum());
        let (low, high) = interval(&before, &after);
        println!("{}  {gain:+.1} ({low:+.1} … {high:+.1})  {}", row(texts), variant.name);
    }
}

/// The characters of the right lines of each text.
fn characters(texts: &[ScoredText], score: fn(&ScoredText) -> &Score) -> Vec<usize> {
    texts.iter().map(|text| score(text).lines.right_characters).collect()
}

fn episodes(home: &Path, sha256: &str) -> anyhow::Result<Vec<Episode>> {
    if home.is_file() {
        return lines::episodes(home);
    }
    let log = SledLog::open(&home.join("data").join("events.sled"))?;
    let mut fold = Fold::new(sha256, None);
    log.scan(0, &mut |event| {
        if !matches!(event.kind, EventKind::Compared { .. }) {
            fold.apply(&event);
        }
        ControlFlow::Continue(())
    })?;
    let batch = fold.take_batch(usize::MAX);
    Ok(batch.context("there are no episodes")?.episodes)
}

/// Goes through the episodes in order: scores each batch, and learns from it.
fn score_stream(
    base: &Base,
    episodes: &[Episode],
    variant: &Variant,
    cache: &mut KnownPrompts,
    scored: &dyn Fn(&[ScoredText]),
) -> anyhow::Result<Vec<ScoredText>> {
    let hyper = &variant.hyper;
    let imitating = Hyper { demonstration_coefficient: 1.0, ..hyper.clone() };
    let (shape, rank, alpha) = (&base.model.shape, hyper.lora_rank, hyper.lora_alpha);
    let mut lora = Lora::fresh(shape, rank, alpha, 1)?;
    let mut part = TrainedPart::Full;
    let mut optimizer = part.optimizer(&lora);
    let mut texts = vec![];
    for (index, fresh) in episodes.chunks(variant.batch).enumerate() {
        if let Ok(batch) = Batch::new(fresh, &base.inputs(&imitating)) {
            let kv = prompts(base, &batch, Some(cache))?;
            let seen = score(base, &batch, &kv, &lora)?;
            scored(&seen);
            texts.extend(seen);
        }
        let Ok(batch) = Batch::new(fresh, &base.inputs(hyper)) else { continue };
        let kv = prompts(base, &batch, Some(cache))?;
        let seed = index as u64 + 1;
        let start = ppo::UpdateStart { lora, optimizer, part, fresh: index == 0, seed };
        let update_inputs = ppo::UpdateInputs {
            model: &base.model,
            batch: &batch,
            kv: &kv,
            hyper,
            threads: &base.threads,
        };
        let update = ppo::update(&update_inputs, start, &mut |_, _, _| Ok(()))?;
        (lora, part, optimizer) = (update.lora, update.part, update.optimizer);
    }
    ensure!(!texts.is_empty(), "the events contain no typed text");
    // Batches of another size order the texts otherwise, and variants are compared text by text.
    texts.sort_by_key(|text| text.seq);
    Ok(texts)
}

/// The scores of each text under the base and under the adapter.
fn score(
    base: &Base,
    batch: &Batch,
    kv: &PromptKv,
    lora: &Lora,
) -> anyhow::Result<Vec<ScoredText>> {
    let scores = |lora| score_texts(base, batch, kv, lora);
    let pairs = scores(None)?.into_iter().zip(scores(Some(lora))?);
    let scored = pairs.map(|(of_base, of_adapter)| {
        let Sample { seq, targets, .. } = &batch.samples[of_base.sample];
        ScoredText {
            seq: *seq,
            tokens: targets.len(),
            base: Score::of(&of_base, targets, &base.vocab),
            adapter: Score::of(&of_adapter, targets, &base.vocab),
        }
    });
    Ok(scored.collect())
}

fn row(texts: &[ScoredText]) -> String {
    let tokens =
        |texts: &[ScoredText]| texts.iter().map(|text| text.tokens).sum::<usize>().max(1) as f64;
    let gain = |texts: &[ScoredText]| {
        let gains = texts.iter().map(|text| text.adapter.logprob - text.base.logprob);
        gains.sum::<f64>() / tokens(texts)
    };
    let sum = |value: &dyn Fn(&ScoredText) -> usize| -> usize { texts.iter().map(value).sum() };
    let before = characters(texts, |text| &text.base);
    let after = characters(texts, |text| &text.adapter);
    let (low, high) = interval(&before, &after);
    let quarters: Vec<String> = (0..4)
        .map(|q| &texts[q * texts.len() / 4..(q + 1) * texts.len() / 4])
        .map(|texts| format!("{:+.2}", gain(texts)))
        .collect();
    format!(
        "{:5} {:6.2} {:+6.3}  {}  {:5} {:5} {:5}  {:+5.0} ({:+.0} … {:+.0})",
        texts.len(),
        texts.iter().map(|text| text.base.logprob).sum::<f64>() / tokens(texts),
        gain(texts),
        quarters.join(" "),
        sum(&|text| text.base.lines.lines),
        sum(&|text| text.base.lines.right_lines),
        sum(&|text| text.adapter.lines.right_lines),
        lines::gain(before.iter().sum(), after.iter().sum()),
        low,
        high,
    )
}
