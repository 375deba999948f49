//! Measures what the record of a mixture of experts' choices costs: the same prompts and answers by
//! an engine that records and by one that does not, in turns. Prints one JSON object.
//!
//!   expert_record --model random-30b-a3b.gguf
//!
//! `models: random_model` writes such a model.

use anyhow::{Context, Result, anyhow, ensure};
use clap::Parser;
use completion::prompt::FimPrompt;
use completion::stop_rule::StopRule;
use engine::llama::{LlamaConfig, LlamaEngine, LoadedModel};
use engine::speed::PromptSpeed;
use engine::{Engine, Request};
use feedback::event::Sampling;
use models::fim_tokens;
use models::gguf::Gguf;
use models::vocab::Vocab;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Lines of code in a prompt.
const LINES: usize = 20;

const CODE: &str = include_str!("../src/llama.rs");

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    model: PathBuf,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Prompts that each engine answers, after one that is not counted
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Tokens of an answer
    #[arg(long, default_value_t = 24)]
    tokens: usize,
}

fn engine(arguments: &Arguments, path: &Path, records_experts: bool) -> Result<LlamaEngine> {
    let vocab = Vocab::from_gguf(&Gguf::open(path)?)?;
    let config = LlamaConfig {
        path: path.to_owned(),
        template: fim_tokens::detect(&vocab).context("the model has no FIM tokens")?,
        threads: arguments.threads,
        adapts_threads: false,
        gpu_layers: Some(0),
        prompt_tokens: 1024,
        micro_batch: None,
        records_experts,
        loaded: LoadedModel::default(),
        speed: PromptSpeed::default(),
    };
    LlamaEngine::load(&config).map_err(|error| anyhow!("{error}"))
}

/// The milliseconds of a token of the prompt, and of a token of the answer.
fn answer(engine: &mut LlamaEngine, round: usize, arguments: &Arguments) -> Result<[f64; 2]> {
    let code: Vec<&str> = CODE.lines().skip(round * LINES).take(LINES).collect();
    let request = Request {
        prompt: FimPrompt {
            context: None,
            prefix: format!("// {round}\n{}\n", code.join("\n")),
            typed: String::new(),
            line: "    let ".into(),
            healing: String::new(),
            suffix: "\n}\n".into(),
        },
        adapter: 0,
        sampling: Sampling::GREEDY,
        stop_rule: StopRule::LINE,
        max_tokens: arguments.tokens,
        budget: Duration::from_secs(300),
        min_probability: 0.0,
        alternatives: 0,
        context_wait: Duration::MAX,
        draft: None,
    };
    let generated = engine.generate(&request, &AtomicBool::default());
    let generated = generated.map_err(|error| anyhow!("{error}"))?;
    let first = generated.answers.first().context("there is no answer")?;
    // The first token needs no step of its own behind the prompt.
    let steps = first.tokens.len().saturating_sub(1);
    ensure!(steps > 0, "the answer has one token");
    let ms = |time: Duration, count: f64| time.as_secs_f64() * 1000.0 / count;
    let prompt = ms(generated.prompt_time, f64::from(generated.prompt_evaluated));
    Ok([prompt, ms(first.decode_time, steps as f64)])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let load = |records_experts| engine(&arguments, &arguments.model, records_experts);
    let mut engines = [load(false)?, load(true)?];
    // Of each engine: the times of prompts and of steps.
    let mut times = [[vec![], vec![]], [vec![], vec![]]];
    for round in 0..=arguments.rounds {
        // Who comes first changes from round to round.
        for turn in [round % 2, 1 - round % 2] {
            let [prompt, step] = answer(&mut engines[turn], round, &arguments)?;
            if round > 0 {
                times[turn][0].push(prompt);
                times[turn][1].push(step);
            }
        }
    }
    let cost = |part: usize| {
        let pairs = times[1][part].iter().zip(&times[0][part]);
        median(pairs.map(|(with, without)| with / without - 1.0).collect())
    };
    let (prompt_cost, step_cost) = (cost(0), cost(1));
    let [without, with] = times.map(|parts| parts.map(median));
    let shown = |[prompt, step]: [f64; 2]| {
        json!({
            "prompt_tokens_a_second": 1000.0 / prompt,
            "decode_tokens_a_second": 1000.0 / step,
            "step_ms": step,
        })
    };
    let report = json!({
        "rounds": arguments.rounds,
        "without": shown(without),
        "with": shown(with),
        "cost_of_a_prompt": prompt_cost,
        "cost_of_a_step": step_cost,
    });
    println!("{report:#}");
    Ok(())
}
