//! `hone lab texts`: what somebody wrote, as the episodes that the daemon would have recorded if
//! nothing had been offered there. With `--samples`, the model says the line that was written
//! several times over, and the episodes are those of offers that were right or wrong.

use crate::config::Config;
use anyhow::{Context, Result};
use completion::prompt::{FimPrompt, PromptLayout};
use completion::stop_rule::StopRule;
use engine::cached::KvAccess;
use engine::llama::{LlamaConfig, LlamaEngine, LoadedModel};
use engine::speed::PromptSpeed;
use engine::{Engine, Request};
use feedback::episode::Episode;
use feedback::event::{
    Completion, Decision, Evidence, Outcome, Sampling, StopReason, Timing, Typed,
};
use ropey::Rope;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct TextsArgs {
    /// The model whose prompts and tokens they get
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// FIM template of the model, where its vocabulary does not tell
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// Sample this many lines for each text, at temperature 1, in place of what was written
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(..=SAMPLES_MAX))]
    samples: u64,
    /// Threads that compute
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// The texts, one JSON object a line: repository, path, language, text, cursor and written
    #[arg(value_name = "FILE")]
    texts: PathBuf,
}

/// The most samples of a text.
const SAMPLES_MAX: u64 = 64;

/// The temperature at which lines are sampled: that of the policy which is trained.
const TEMPERATURE: f32 = 1.0;

/// A text that somebody wrote, and the document in which they did.
#[derive(Deserialize)]
struct Written {
    repository: String,
    path: String,
    language: String,
    text: String,
    /// In characters of `text`.
    cursor: usize,
    written: String,
}

/// Prints an episode a line.
pub fn run(args: &TextsArgs) -> Result<()> {
    let named = || args.texts.display().to_string();
    let texts = BufReader::new(File::open(&args.texts).with_context(named)?);
    let found = models::inspect::inspect(&args.model, args.template.as_deref())?;
    let config = Config::default();
    let mut engine = LlamaEngine::load(&LlamaConfig {
        path: args.model.clone(),
        template: found.template,
        threads: args.threads,
        adapts_threads: false,
        gpu_layers: Some(0),
        prompt_tokens: config.lab.prompt_tokens,
        micro_batch: None,
        records_experts: true,
        loaded: LoadedModel::default(),
        speed: PromptSpeed::default(),
    })
    .map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut seq = 0;
    for (number, line) in texts.lines().enumerate() {
        let written: Written = serde_json::from_str(&line?)
            .with_context(|| format!("{}:{}: it is no text", named(), number + 1))?;
        let window = config.lab.window();
        let document = Rope::from_str(&written.text);
        let cursor = written.cursor.min(document.len_chars());
        let prompt = PromptLayout::new(&document, cursor, window).prompt(&document, cursor, window);
        let episodes = if args.samples == 0 {
            vec![demonstration(&engine, &found.sha256, &written, &prompt)]
        } else {
            samples(&mut engine, &found.sha256, &written, &prompt, args.samples)?
        };
        for mut episode in episodes {
            seq += 1;
            episode.seq = seq;
            episode.completion.id = format!("text-{seq}");
            say!("{}", serde_json::to_string(&episode)?)?;
        }
    }
    Ok(())
}

/// The episode of a place where nothing was offered, and a text was written.
fn demonstration(
    engine: &LlamaEngine,
    model_sha256: &str,
    written: &Written,
    prompt: &FimPrompt,
) -> Episode {
    let (prompt, adapter_from) = engine.prompt_tokens(prompt);
    let tokenize = engine.tokenizer();
    Episode {
        replacement: Some(tokenize(&written.written)),
        ..episode(written, model_sha256, prompt, adapter_from)
    }
}

/// The episodes of lines that the model says in place of the one that was written. A line that is
/// the written one was accepted, and any other was rejected.
fn samples(
    engine: &mut LlamaEngine,
    model_sha256: &str,
    written: &Written,
    prompt: &FimPrompt,
    count: u64,
) -> Result<Vec<Episode>> {
    let right = written.written.lines().next().unwrap_or_default().trim_end();
    let config = Config::default();
    let mut episodes = vec![];
    for seed in 0..count {
        let request = Request {
            prompt: prompt.clone(),
            adapter: 0,
            sampling: Sampling { temperature: TEMPERATURE, seed },
            stop_rule: StopRule::LINE,
            max_tokens: config.completion.max_tokens,
            budget: Duration::MAX,
            min_probability: 0.0,
            alternatives: 0,
            context_wait: Duration::MAX,
            draft: None,
        };
        let generated = engine
            .generate(&request, &AtomicBool::new(false))
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        let Some(answer) = generated.answers.first() else { continue };
        let healing = prompt.healing.len();
        let offered = answer.offered().get(healing..).unwrap_or_default();
        let offered = String::from_utf8_lossy(offered).into_owned();
        let shown = offered.split('\n').next().unwrap_or_default().trim_end();
        let is_right = shown == right && answer.stop.is_policy_choice();
        let outcome = if is_right { Outcome::Accepted } else { Outcome::RejectedEdit };
        let mut made =
            episode(written, model_sha256, generated.prompt.clone(), generated.adapter_from);
        made.completion.sampling = request.sampling;
        made.completion.healing.clone_from(&prompt.healing);
        made.completion.tokens.clone_from(&answer.tokens);
        made.completion.stop = answer.stop;
        made.completion.shown = shown.to_owned();
        made.completion.shown_from = healing;
        made.shown = true;
        made.outcome = Some((outcome, Evidence::Document));
        episodes.push(made);
    }
    Ok(episodes)
}

fn episode(
    written: &Written,
    model_sha256: &str,
    prompt: Vec<u32>,
    adapter_from: usize,
) -> Episode {
    let completion = Completion {
        id: String::new(),
        path: format!("{}/{}", written.repository, written.path),
        context: vec![],
        language: written.language.clone(),
        model_sha256: model_sha256.to_owned(),
        adapter: 0,
        sampling: Sampling::GREEDY,
        prompt,
        adapter_from,
        healing: String::new(),
        tokens: vec![],
        stop: StopReason::Newline,
        shown: String::new(),
        shown_from: 0,
        timing: Timing::default(),
        decision: Decision::default(),
        copied: None,
        typed: Typed::default(),
        experts: None,
    };
    Episode { seq: 0, completion, shown: false, outcome: None, replacement: None, kept: None }
}
