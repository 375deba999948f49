//! Measures Hone on a machine with an NVIDIA GPU: it serves, learns, and compares the GPU with the
//! CPU of the same machine. It needs the programs of a bundle and the tokenizer of a model, and
//! neither Rust nor a network: models with random weights in the shape of real ones are made first.
//!
//!   gpu_smoke --bin bundle/bin --like metadata.gguf --work /tmp/smoke --out report.json
//!
//! The report is written after every step, so that a run that is cut off keeps what it has. A step
//! that fails is recorded and the next one continues. docs/lab/gpu-smoke.md says what is measured.

mod card;
mod full;
mod keys;
mod learning;
mod parity;
mod served;
mod table;

use anyhow::{Context, Result, ensure};
use card::Card;
use clap::Parser;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The time that a step must have before it begins.
const STEP_MIN: Duration = Duration::from_secs(15);

#[derive(Parser)]
struct Arguments {
    /// The folder with hone, hone-learner and the programs next to them
    #[arg(long)]
    bin: PathBuf,
    /// A model, or the metadata of one: its tokenizer is used
    #[arg(long)]
    like: PathBuf,
    /// A folder for models and homes
    #[arg(long)]
    work: PathBuf,
    /// The report
    #[arg(long)]
    out: PathBuf,
    /// No step begins when less than 15 seconds of this time are left
    #[arg(long, default_value_t = 480)]
    seconds: u64,
    /// Only the steps whose names begin with one of these
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Serve this shape instead of every other one, to try the program on a small machine
    #[arg(long)]
    shape: Option<String>,
    /// Measure fewer keys and requests
    #[arg(long)]
    quick: bool,
}

/// What the steps share.
struct Bench {
    bin: PathBuf,
    work: PathBuf,
    like: PathBuf,
    shape: Option<String>,
    quick: bool,
    card: Option<Card>,
}

impl Bench {
    fn program(&self, name: &str) -> Command {
        Command::new(self.bin.join(name))
    }

    /// The shape, or the one that replaces all others.
    fn shape<'a>(&'a self, shape: &'a str) -> &'a str {
        self.shape.as_deref().unwrap_or(shape)
    }

    /// The file of a random model of this shape that says words without end.
    fn model(&self, shape: &str) -> PathBuf {
        self.work.join(format!("words-{}.gguf", self.shape(shape)))
    }

    /// The file of one that says lines of some ten words.
    fn lines_model(&self, shape: &str) -> PathBuf {
        self.work.join(format!("lines-{}.gguf", self.shape(shape)))
    }

    /// A number of keys or requests.
    fn count(&self, full: usize) -> usize {
        if self.quick { full.div_ceil(8).max(4) } else { full }
    }

    /// Makes the random models that are missing.
    fn make_models(&self) -> Result<Value> {
        let mut made = json!({});
        let words = ["7b", "1.5b", "0.5b"].map(|shape| (shape, self.model(shape)));
        let lines = ["1.5b", "0.5b"].map(|shape| (shape, self.lines_model(shape)));
        for (shape, out) in words.iter().chain(&lines).filter(|(_, out)| !out.exists()) {
            let started = Instant::now();
            let mut program = self.program("random_model");
            program.arg("--like").arg(&self.like).args(["--shape", self.shape(shape)]);
            if *out == self.lines_model(shape) {
                program.arg("--lines");
            }
            run(program.arg("--out").arg(out))?;
            let name = out.file_stem().unwrap_or_default().to_string_lossy();
            let bytes = std::fs::metadata(out)?.len();
            made[&*name] = json!({"s": started.elapsed().as_secs_f64(), "bytes": bytes});
        }
        Ok(made)
    }
}

/// Runs a program to its end. What it prints is the program's own report.
fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {name}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{name} failed ({}): {text}", output.status);
    Ok(text)
}

/// The value of rank `q` in [0, 1], of unsorted values.
fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len().saturating_sub(1) as f64 * q).round() as usize).copied()
}

struct Report {
    value: Value,
    out: PathBuf,
    started: Instant,
    limit: Duration,
    only: Vec<String>,
}

impl Report {
    /// Runs a step, unless there is no time for it, and writes the report.
    fn step(&mut self, name: &str, run: impl FnOnce() -> Result<Value>) -> Result<()> {
        if !self.only.is_empty() && !self.only.iter().any(|only| name.starts_with(only)) {
            return Ok(());
        }
        let begun = self.started.elapsed();
        let result = if begun + STEP_MIN > self.limit {
            json!({"left_out": "no time was left"})
        } else {
            eprintln!("── {:>4.0} s  {name}", begun.as_secs_f64());
            match run() {
                Ok(value) => value,
                Err(error) => {
                    eprintln!("   {name} failed: {error:#}");
                    json!({"failed": format!("{error:#}")})
                }
            }
        };
        self.value["steps"][name] = result;
        self.value["seconds"][name] = json!((self.started.elapsed() - begun).as_secs_f64());
        self.write()
    }

    fn write(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.value)?;
        std::fs::write(&self.out, text).with_context(|| self.out.display().to_string())
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let absolute = |path: &Path| std::path::absolute(path);
    std::fs::create_dir_all(&arguments.work)
        .with_context(|| arguments.work.display().to_string())?;
    let bench = Bench {
        bin: absolute(&arguments.bin)?,
        work: absolute(&arguments.work)?,
        like: absolute(&arguments.like)?,
        shape: arguments.shape,
        quick: arguments.quick,
        card: Card::find(),
    };
    let mut report = Report {
        value: json!({"card": bench.card, "cpus": std::thread::available_parallelism()?.get()}),
        out: arguments.out,
        started: Instant::now(),
        limit: Duration::from_secs(arguments.seconds),
        only: arguments.only,
    };
    report.write()?;
    let (bench, report) = (&bench, &mut report);
    report.step("models", || bench.make_models())?;
    report.step("keys 7b", || keys::measure(bench, "7b"))?;
    report.step("update 1.5b", || learning::measure(bench, "1.5b"))?;
    report.step("logits 0.5b", || parity::logits(bench, "0.5b"))?;
    report.step("gradient 0.5b", || parity::gradient(bench, "0.5b"))?;
    report.step("full 1.5b", || full::measure(bench, "1.5b"))?;
    report.step("beside 1.5b", || learning::during_updates(bench, "1.5b"))?;
    report.step("logits 7b", || parity::logits(bench, "7b"))?;
    report.step("gradient 1.5b", || parity::gradient(bench, "1.5b"))?;
    report.step("keys 1.5b", || keys::measure(bench, "1.5b"))?;
    report.step("keys 0.5b", || keys::measure(bench, "0.5b"))?;
    report.step("update 0.5b", || learning::measure(bench, "0.5b"))?;
    println!("{}", table::of(&report.value));
    Ok(())
}
