//! Trains one adapter on what many authors wrote, and scores it on what other authors wrote.
//!
//!   start_adapter --model base.gguf --learn episodes.jsonl --score others.jsonl --out start.gguf
//!   start_adapter --model base.gguf --adapter start.gguf --score others.jsonl
//!
//! The episodes are those of `hone lab texts`, one a line. Every text is learned from once. A line
//! is right if greedy decoding gives all of it behind the text above it. `cargo xtask train-start`
//! runs the whole.

mod lines;
mod scoring;

use anyhow::Context;
use clap::Parser;
use feedback::episode::Episode;
use feedback::job::Hyper;
use learner::model::lora::Lora;
use learner::model::prompt_pass::PromptKv;
use learner::ppo;
use learner::ppo::adamw::AdamW;
use learner::ppo::batch::Batch;
use learner::ppo::trained_part::TrainedPart;
use lines::{Scores, episodes, gain, interval};
use models::adapter::LoraAdapter;
use models::gguf::Gguf;
use scoring::{Base, prompts, score_texts};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Texts whose prompts are in memory at once.
const CHUNK: usize = 64;

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    model: PathBuf,
    /// Learn from these episodes
    #[arg(long)]
    learn: Option<PathBuf>,
    /// Go on from this adapter, or score it if nothing is learned
    #[arg(long)]
    adapter: Option<PathBuf>,
    /// Score these episodes
    #[arg(long)]
    score: Option<PathBuf>,
    /// Write the adapter here, anew after every score
    #[arg(long)]
    out: Option<PathBuf>,
    /// Score after every so many texts
    #[arg(long, default_value_t = 640)]
    score_every: usize,
    /// The texts to learn from at most
    #[arg(long, default_value_t = usize::MAX)]
    limit: usize,
    #[arg(long, default_value_t = 2e-4)]
    learning_rate: f32,
    /// Texts of one step
    #[arg(long, default_value_t = 16)]
    minibatch: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Texts that are scored, with their prompts.
struct Prepared {
    batch: Batch,
    kv: PromptKv,
    /// The path of each text, by the number of its episode.
    paths: BTreeMap<u64, String>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let gguf = Gguf::open(&arguments.model)?;
    let base = Base::open(&gguf)?;
    let scored = arguments.score.as_deref().map(episodes).transpose()?.unwrap_or_default();
    let scored = prepare(&base, &scored)?;
    let lora = match &arguments.adapter {
        None => None,
        Some(path) => {
            let adapter = LoraAdapter::read(path)?;
            adapter.check_base(&gguf, &base.sha256)?;
            Some(Lora::from_adapter(&adapter, &base.model.shape)?)
        }
    };
    let mut curve = Curve { base: &base, scored, of_base: vec![] };
    curve.of_base = curve.report(0, None)?;
    let Some(learn) = &arguments.learn else {
        return curve.report(0, lora.as_ref()).map(drop);
    };
    let out = arguments.out.as_deref().context("--learn needs --out")?;
    let mut learned = episodes(learn)?;
    learned.truncate(arguments.limit);
    train(&base, &arguments, lora, &learned, &curve, out)
}

fn hyper(arguments: &Arguments) -> Hyper {
    Hyper {
        learning_rate: arguments.learning_rate,
        minibatch_episodes: arguments.minibatch,
        epochs: 1,
        policy_coefficient: 0.0,
        kl_coefficient: 0.0,
        // These bound an update of sixteen labels. Here a batch has hundreds of texts.
        max_update_ratio: 1.0,
        target_kl: 100.0,
        ..Hyper::default()
    }
}

fn train(
    base: &Base,
    arguments: &Arguments,
    lora: Option<Lora>,
    learned: &[Episode],
    curve: &Curve,
    out: &Path,
) -> anyhow::Result<()> {
    let hyper = hyper(arguments);
    let mut fresh = lora.is_none();
    let mut lora = match lora {
        Some(lora) => lora,
        None => {
            let (rank, alpha) = (hyper.lora_rank, hyper.lora_alpha);
            Lora::fresh(&base.model.shape, rank, alpha, arguments.seed)?
        }
    };
    let mut optimizer = AdamW::new(&lora);
    let started = Instant::now();
    let mut done = 0;
    for chunk in learned.chunks(CHUNK) {
        let batch = batch(base, chunk, &hyper)?;
        let kv = prompts(base, &batch, None)?;
        let seed = arguments.seed + done as u64;
        let part = TrainedPart::Full;
        let start = ppo::UpdateStart { lora, optimizer, part, fresh, seed };
        let inputs = ppo::UpdateInputs {
            model: &base.model,
            batch: &batch,
            kv: &kv,
            hyper: &hyper,
            threads: &base.threads,
        };
        let update = ppo::update(&inputs, start, &mut |_, _, _| Ok(()))?;
        (lora, optimizer, fresh) = (update.lora, update.optimizer, false);
        done += chunk.len();
        let seconds = started.elapsed().as_secs_f64();
        let before = update.demonstrated.map_or(f32::NAN, |texts| texts.parent - texts.base);
        eprintln!("{done} of {} texts, {seconds:.0} s, {before:+.3} nats a token", learned.len());
        if done % arguments.score_every < CHUNK || done == learned.len() {
            curve.report(done, Some(&lora))?;
            let invocation = batch.invocation.into_iter().collect();
            lora.to_adapter(&base.model.shape, &base.sha256, invocation)?.write(out)?;
        }
    }
    Ok(())
}

fn batch(base: &Base, episodes: &[Episode], hyper: &Hyper) -> anyhow::Result<Batch> {
    Ok(Batch::new(episodes, &[], &base.inputs(hyper))?)
}

/// Computes the prompts of the texts that are scored again and again.
fn prepare(base: &Base, episodes: &[Episode]) -> anyhow::Result<Vec<Prepared>> {
    let chunks = episodes.chunks(CHUNK).map(|chunk| {
        let batch = batch(base, chunk, &Hyper::default())?;
        let kv = prompts(base, &batch, None)?;
        let path = |episode: &Episode| (episode.seq, episode.completion.path.clone());
        Ok(Prepared { batch, kv, paths: chunk.iter().map(path).collect() })
    });
    chunks.collect()
}

/// The texts that are scored after every step of the learning curve.
struct Curve<'a> {
    base: &'a Base,
    scored: Vec<Prepared>,
    /// What the plain model says of them.
    of_base: Vec<usize>,
}

impl Curve<'_> {
    /// Prints what an adapter that has learned so many texts says of the texts of each author, as
    /// one JSON object, and a line for people. Returns the right characters of each text.
    fn report(&self, learned: usize, lora: Option<&Lora>) -> anyhow::Result<Vec<usize>> {
        let mut authors: BTreeMap<String, Scores> = BTreeMap::new();
        let mut of_texts = vec![];
        for Prepared { batch, kv, paths } in &self.scored {
            for text in score_texts(self.base, batch, kv, lora)? {
                let sample = &batch.samples[text.sample];
                let path = paths.get(&sample.seq).map_or("", String::as_str);
                let repository = path.split('/').next().unwrap_or_default();
                let scores = authors.entry(repository.to_owned()).or_default();
                of_texts.push(scores.add(&text, &sample.targets, &self.base.vocab));
            }
        }
        let is_adapted = lora.is_some();
        println!("{}", json!({ "learned": learned, "adapter": is_adapted, "authors": authors }));
        let sum = |count: fn(&Scores) -> usize| authors.values().map(count).sum::<usize>();
        let right = sum(|scores| scores.right_lines);
        let all = sum(|scores| scores.lines);
        let characters = sum(|scores| scores.right_characters);
        let who = match (is_adapted, learned) {
            (false, _) => "plain model".to_owned(),
            (true, 0) => "adapter".to_owned(),
            (true, learned) => format!("{learned} texts"),
        };
        let change = if is_adapted && !self.of_base.is_empty() {
            let (low, high) = interval(&self.of_base, &of_texts);
            let change = gain(self.of_base.iter().sum(), characters);
            format!(", {change:+.1} % ({low:+.1} … {high:+.1})")
        } else {
            String::new()
        };
        eprintln!("{who}: {right} of {all} lines right, {characters} characters{change}");
        Ok(of_texts)
    }
}
