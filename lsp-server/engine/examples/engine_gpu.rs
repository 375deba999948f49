//! Compares the engine on the GPU with the engine on the CPU of the same machine, on the same
//! model: the log-probs of the tokens that it says, and the time of a long prompt by the number of
//! tokens that the GPU computes at once. Prints one JSON object.
//!
//!   engine_gpu --model FILE.gguf

use anyhow::{Context, Result, anyhow, ensure};
use clap::Parser;
use completion::prompt::FimPrompt;
use engine::llama::{LlamaConfig, LlamaEngine};
use engine::{Engine, Request};
use feedback::event::TokenRecord;
use models::fim_tokens;
use models::gguf::Gguf;
use models::vocab::Vocab;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Tokens of the longest prompt.
const PROMPT_TOKENS: usize = 4096;

/// Lines of code in a prompt that is compared.
const LINES: usize = 40;

/// Tokens of an answer.
const ANSWER_TOKENS: usize = 16;

/// Prompts of each size of the micro-batch, after one that makes its buffers.
const TIMED: usize = 3;

const CODE: &str = include_str!("../src/llama.rs");

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    model: PathBuf,
    /// Prompts whose answers are compared
    #[arg(long, default_value_t = 8)]
    prompts: usize,
    /// Sizes of the micro-batch to time
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256, 512, 1024, 2048])]
    micro_batch: Vec<usize>,
}

struct Bench {
    path: PathBuf,
    template: &'static models::fim::FimTemplate,
}

impl Bench {
    fn engine(&self, gpu_layers: Option<u32>, micro_batch: Option<usize>) -> Result<LlamaEngine> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let config = LlamaConfig {
            gpu_layers,
            micro_batch,
            ..LlamaConfig::on_cpu(&self.path, self.template, threads, PROMPT_TOKENS)
        };
        LlamaEngine::load(&config).map_err(|error| anyhow!("{error}"))
    }
}

/// The prompt before line `line` of some code, which has `lines` lines.
fn prompt(line: usize, lines: usize) -> FimPrompt {
    let code: Vec<&str> = CODE.lines().cycle().skip(line).take(lines).collect();
    FimPrompt {
        prefix: format!("// {line}\n{}\n", code.join("\n")),
        line: "    let ".into(),
        suffix: "\n}\n".into(),
        ..FimPrompt::default()
    }
}

/// Greedy tokens behind a prompt, and the time of the prompt.
fn answer(
    engine: &mut LlamaEngine,
    prompt: FimPrompt,
    tokens: usize,
) -> Result<(Vec<TokenRecord>, Duration, u32)> {
    let generated = engine.generate(&Request::line(prompt, tokens), &AtomicBool::default());
    let generated = generated.map_err(|error| anyhow!("{error}"))?;
    let first = generated.answers.into_iter().next().context("no answer")?;
    Ok((first.tokens, generated.prompt_time, generated.prompt_evaluated))
}

fn answers(engine: &mut LlamaEngine, prompts: usize) -> Result<Vec<Vec<TokenRecord>>> {
    let of = |index: usize| answer(engine, prompt(index * 11, LINES), ANSWER_TOKENS);
    (0..prompts).map(of).map(|answer| Ok(answer?.0)).collect()
}

/// Compares the tokens up to the first that differs.
fn compare(cpu: &[Vec<TokenRecord>], gpu: &[Vec<TokenRecord>]) -> Result<Value> {
    let mut off = vec![];
    let mut said = 0;
    for (cpu, gpu) in cpu.iter().zip(gpu) {
        said += cpu.len();
        let same = cpu.iter().zip(gpu).take_while(|(cpu, gpu)| cpu.id == gpu.id);
        off.extend(same.map(|(cpu, gpu)| f64::from((cpu.logprob - gpu.logprob).abs())));
    }
    ensure!(!off.is_empty(), "the answers have no token in common");
    ensure!(off.iter().all(|off| off.is_finite()), "a log-prob is not finite");
    off.sort_by(f64::total_cmp);
    Ok(json!({
        "tokens": said,
        "same_before_the_first_other": off.len(),
        "logprob_off_mean": off.iter().sum::<f64>() / off.len() as f64,
        "logprob_off_p50": off[off.len() / 2],
        "logprob_off_max": off[off.len() - 1],
    }))
}

/// The time of a whole prompt that nothing is known of, in milliseconds.
fn time_prompt(engine: &mut LlamaEngine) -> Result<Value> {
    let mut times = vec![];
    let mut tokens = 0;
    for index in 0..=TIMED {
        let started = Instant::now();
        let (_, prompt, evaluated) = answer(engine, prompt(index * 31, 1000), 1)?;
        tokens = evaluated;
        if index > 0 {
            times.push((prompt.as_secs_f64() * 1000.0, started.elapsed().as_secs_f64() * 1000.0));
        }
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (prompt_ms, wall_ms) = times[TIMED / 2];
    Ok(json!({"tokens": tokens, "prompt_ms": prompt_ms, "wall_ms": wall_ms}))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let gguf = Gguf::open(&arguments.model)?;
    let template = fim_tokens::detect(&Vocab::from_gguf(&gguf)?);
    let template = template.context("the vocabulary has no FIM tokens")?;
    let bench = Bench { path: arguments.model, template };

    let mut cpu = bench.engine(Some(0), None)?;
    let on_cpu = answers(&mut cpu, arguments.prompts)?;
    drop(cpu);
    let mut gpu = bench.engine(None, None)?;
    let on_gpu = answers(&mut gpu, arguments.prompts)?;
    let backend = gpu.info().backend;
    drop(gpu);
    let mut report = json!({
        "backend": backend,
        "logits": compare(&on_cpu, &on_gpu)?,
    });
    for micro_batch in arguments.micro_batch {
        let mut engine = bench.engine(None, Some(micro_batch))?;
        report["prompt_by_micro_batch"][micro_batch.to_string()] = time_prompt(&mut engine)?;
    }
    println!("{report}");
    Ok(())
}
