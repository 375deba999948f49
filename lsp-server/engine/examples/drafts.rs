//! Measures what drafts save: the passes and the time of decoding the same lines without a draft
//! and with one, and how often the text is the same. Prints one JSON object.
//!
//!   drafts --model FILE.gguf [--template prefix-only] [--threads 2] [--lines 6]

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use completion::prompt::FimPrompt;
use completion::stop_rule::{Multiline, MultilineSetting, StopRule};
use engine::llama::{LlamaConfig, LlamaEngine, LoadedModel};
use engine::speed::PromptSpeed;
use engine::{Answer, Draft, Engine, Request};
use feedback::event::Sampling;
use models::fim::{FimTemplate, template};
use models::fim_tokens;
use models::gguf::Gguf;
use models::vocab::Vocab;
use ropey::Rope;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const CODE: &str = include_str!("../src/llama.rs");

/// Lines of code around a place.
const LINES: usize = 5;

/// Every so many lines there is a place.
const STEP: usize = 5;

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    model: PathBuf,
    /// The prompt format; by default the one of the model's tokens
    #[arg(long)]
    template: Option<String>,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// The most lines of an answer
    #[arg(long, default_value_t = 1)]
    lines: usize,
    #[arg(long, default_value_t = 40)]
    places: usize,
    /// Whether drafts are scored, so that all of them goes through the model in one pass
    #[arg(long)]
    scored: bool,
}

fn engine(arguments: &Arguments) -> Result<LlamaEngine> {
    let vocab = Vocab::from_gguf(&Gguf::open(&arguments.model)?)?;
    let template: &'static FimTemplate = match &arguments.template {
        Some(name) => template(name).map_err(|error| anyhow!("{error}"))?,
        None => fim_tokens::detect(&vocab).context("name the --template")?,
    };
    let config = LlamaConfig {
        path: arguments.model.clone(),
        template,
        threads: arguments.threads,
        adapts_threads: false,
        gpu_layers: Some(0),
        prompt_tokens: 1536,
        micro_batch: None,
        records_experts: true,
        loaded: LoadedModel::default(),
        speed: PromptSpeed::default(),
    };
    LlamaEngine::load(&config).map_err(|error| anyhow!("{error}"))
}

/// A place in the middle of a line, and how the text goes on there.
struct Place {
    prompt: FimPrompt,
    stop_rule: StopRule,
    truth: String,
}

fn places(arguments: &Arguments) -> Vec<Place> {
    let lines: Vec<&str> = CODE.lines().collect();
    let numbers = (LINES..lines.len() - LINES).step_by(STEP);
    let numbers = numbers.filter(|&number| lines[number].trim().chars().count() > 12);
    let all = numbers.map(|number| {
        let line = lines[number];
        let indent = line.len() - line.trim_start().len();
        // With several lines wanted, the place is the end of the line.
        let cut = if arguments.lines > 1 { line.len() } else { indent + 8 };
        let (typed, rest) = line.split_at(cut);
        let boundary = typed.rfind(' ').unwrap_or(0);
        let above = lines[number - LINES..number].join("\n") + "\n";
        let below = lines[number + 1];
        let text = Rope::from_str(&format!("{above}{typed}"));
        let setting =
            MultilineSetting { multiline: Multiline::Invoked, max_lines: arguments.lines };
        let next = lines[number + 1..].iter().take(arguments.lines - 1);
        Place {
            stop_rule: StopRule::at(&text, text.len_chars(), "rust", true, setting),
            truth: [rest].into_iter().chain(next.copied()).collect::<Vec<_>>().join("\n"),
            prompt: FimPrompt {
                context: None,
                prefix: above,
                typed: String::new(),
                line: typed[..boundary].to_owned(),
                healing: typed[boundary..].to_owned(),
                suffix: format!("\n{below}\n"),
            },
        }
    });
    all.take(arguments.places).collect()
}

/// What one way of decoding cost, all places together.
#[derive(Default)]
struct Cost {
    answers: Vec<Answer>,
    passes: u64,
    time: Duration,
}

impl Cost {
    fn tokens(&self) -> usize {
        self.answers.iter().map(|answer| answer.tokens.len()).sum()
    }

    fn json(&self, plain: &Cost) -> Value {
        let same = |(a, b): &(&Answer, &Answer)| a.text == b.text;
        let off = self.answers.iter().zip(&plain.answers).flat_map(|(a, b)| {
            let same = a.tokens.iter().zip(&b.tokens).take_while(|(a, b)| a.id == b.id);
            same.map(|(a, b)| f64::from((a.logprob - b.logprob).abs()))
        });
        json!({
            "tokens": self.tokens(),
            "passes": self.passes,
            "tokens_a_pass": self.tokens() as f64 / self.passes as f64,
            "ms": self.time.as_secs_f64() * 1e3,
            "time_of_plain": self.time.as_secs_f64() / plain.time.as_secs_f64(),
            "same_text": self.answers.iter().zip(&plain.answers).filter(same).count(),
            "logprob_off_max": off.fold(0.0, f64::max),
        })
    }
}

fn decode(
    engine: &mut LlamaEngine,
    places: &[Place],
    arguments: &Arguments,
    draft: impl Fn(usize) -> Option<String>,
) -> Result<Cost> {
    let mut cost = Cost::default();
    for (index, place) in places.iter().enumerate() {
        let failed = |error| anyhow!("{error}");
        let abort = AtomicBool::default();
        engine.warm(&place.prompt, &abort).map_err(failed)?;
        let draft = draft(index).map(|text| Draft {
            text,
            is_scored: arguments.scored,
            is_certain: false,
            wait: Duration::MAX,
        });
        let request = Request {
            prompt: place.prompt.clone(),
            adapter: 0,
            sampling: Sampling::GREEDY,
            stop_rule: place.stop_rule.clone(),
            max_tokens: 32,
            budget: Duration::from_secs(300),
            min_probability: 0.0,
            alternatives: 0,
            context_wait: Duration::MAX,
            draft,
        };
        let (passes, started) = (engine.passes(), Instant::now());
        let generated = engine.generate(&request, &abort).map_err(failed)?;
        cost.time += started.elapsed();
        cost.passes += engine.passes() - passes;
        cost.answers.extend(generated.answers.into_iter().take(1));
    }
    Ok(cost)
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let places = places(&arguments);
    let mut first = engine(&arguments)?;
    decode(&mut first, &places[..2], &arguments, |_| None)?;
    let plain = decode(&mut first, &places, &arguments, |_| None)?;
    drop(first);
    let mut second = engine(&arguments)?;
    decode(&mut second, &places[..2], &arguments, |_| None)?;
    let own = |index: usize| {
        let healing = places[index].prompt.healing.len();
        let said = String::from_utf8_lossy(&plain.answers[index].text).into_owned();
        Some(said.get(healing..)?.trim_end_matches('\n').to_owned())
    };
    let fitting = decode(&mut second, &places, &arguments, own)?;
    let truth = |index: usize| Some(places[index].truth.clone());
    let written = decode(&mut second, &places, &arguments, truth)?;
    let wrong = |index: usize| Some(format!("wrong {index}({index}, {index}, and so on);"));
    let wrong = decode(&mut second, &places, &arguments, wrong)?;
    let report = json!({
        "places": places.len(),
        "plain": plain.json(&plain),
        "draft_that_fits": fitting.json(&plain),
        "draft_as_written": written.json(&plain),
        "draft_that_is_wrong": wrong.json(&plain),
    });
    println!("{report:#}");
    Ok(())
}
