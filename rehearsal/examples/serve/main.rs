//! Compares completions at every keystroke from Hone with those from a llama-server on the same
//! model, or from another Hone. `cargo xtask bench serve` runs it.
//!
//! A stretch of a real file is typed, and each key is followed by a request. A llama-server gets
//! each request before or after Hone, in turns. Another Hone types each file before or after us, in
//! turns. So a machine that slows down slows both.

mod hone;
mod infill;
mod llama_server;
mod superseded;
mod trace;

use anyhow::Result;
use clap::Parser;
use hone::Hone;
use llama_server::LlamaServer;
use rehearsal::report::stats::percentile;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use trace::Trace;

/// The pause between opening a file and the first key in it.
const LOOKS_AROUND: Duration = Duration::from_secs(3);

#[derive(Parser)]
struct Arguments {
    /// The `hone` to measure
    #[arg(long)]
    hone: PathBuf,
    /// A folder with the models' files
    #[arg(long)]
    models: PathBuf,
    /// The model's name
    #[arg(long)]
    model: String,
    /// A llama-server, and the file of the model for it
    #[arg(long, requires = "gguf")]
    peer: Option<PathBuf>,
    #[arg(long)]
    gguf: Option<PathBuf>,
    /// Another `hone`, or the same with other settings, which types each file after or before us
    #[arg(long, conflicts_with = "peer")]
    against: Option<PathBuf>,
    /// A line for the other Hone's config.toml
    #[arg(long, requires = "against")]
    against_set: Vec<String>,
    /// Keys typed in each file
    #[arg(long)]
    keys: usize,
    /// Milliseconds between an answer and the next key
    #[arg(long, default_value_t = 15)]
    pause: u64,
    #[arg(long)]
    threads: usize,
    /// Requests that are superseded while they are computed
    #[arg(long)]
    superseded: usize,
    /// Ask Hone over HTTP, by what a llama-server is asked
    #[arg(long)]
    infill: bool,
    /// A line for Hone's config.toml
    #[arg(long = "set")]
    settings: Vec<String>,
    /// The files to type
    files: Vec<PathBuf>,
}

/// The answer of a side to one key.
struct Answer {
    ms: f64,
    text: String,
}

#[derive(Default)]
struct Side {
    ms: Vec<f64>,
    cold_ms: Vec<f64>,
    right: usize,
    offers: usize,
    wholly_right: usize,
}

impl Side {
    fn add(&mut self, key: usize, truth: &str, answer: &Answer) {
        if key == 0 {
            self.cold_ms.push(answer.ms);
        } else {
            self.ms.push(answer.ms);
        }
        let right = truth.chars().zip(answer.text.chars()).take_while(|(a, b)| a == b).count();
        self.right += right;
        self.offers += usize::from(!answer.text.is_empty());
        self.wholly_right += usize::from(!truth.is_empty() && answer.text.trim_end() == truth);
    }

    fn report(&mut self) -> Value {
        let requests = self.ms.len() + self.cold_ms.len();
        json!({
            "requests": requests,
            "p50_ms": quantile(&mut self.ms, 0.5),
            "p95_ms": quantile(&mut self.ms, 0.95),
            "mean_ms": self.ms.iter().sum::<f64>() / self.ms.len() as f64,
            "cold_ms": quantile(&mut self.cold_ms, 0.5),
            "offers": self.offers,
            "right_chars_per_request": self.right as f64 / requests as f64,
            "right_chars_per_offer": self.right as f64 / self.offers as f64,
            "wholly_right": self.wholly_right,
        })
    }
}

fn quantile(values: &mut [f64], q: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    percentile(values, q)
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = std::env::current_dir()?;
    let start = |program: &Path, settings: &[String]| {
        let model = format!("model.name = \"{}\"", arguments.model);
        let settings = [&[model], settings].concat();
        Hone::start(program, &arguments.models, &settings, &folder)
    };
    let mut ours = start(&arguments.hone, &arguments.settings)?;
    if arguments.infill {
        ours.ask_over_http()?;
    }
    let mut other = match (&arguments.peer, &arguments.gguf, &arguments.against) {
        (Some(program), Some(gguf), _) => {
            Other::LlamaServer(LlamaServer::start(program, gguf, arguments.threads)?)
        }
        (_, _, Some(program)) => Other::Hone(start(program, &arguments.against_set)?),
        _ => Other::Nobody,
    };
    let mut measured = measure(&mut ours, &mut other, &arguments)?;
    if arguments.superseded > 0 {
        eprintln!("   {} requests are superseded", arguments.superseded);
        measured["superseded"] =
            superseded::measure(&ours.client, &arguments.files, arguments.superseded)?;
    }
    println!("{measured}");
    Ok(())
}

/// What Hone is compared with.
enum Other {
    Nobody,
    LlamaServer(LlamaServer),
    Hone(Hone),
}

/// The times and the offers of both sides.
#[derive(Default)]
struct Sides {
    ours: Side,
    theirs: Side,
}

fn measure(ours: &mut Hone, other: &mut Other, arguments: &Arguments) -> Result<Value> {
    let mut sides = Sides::default();
    for (number, path) in arguments.files.iter().enumerate() {
        let trace = Trace::of(path, arguments.keys)?;
        match other {
            Other::Hone(theirs) => {
                // What a daemon computes while its user rests would slow the other one.
                let mut turns = [(&mut *ours, &mut sides.ours), (theirs, &mut sides.theirs)];
                if number % 2 == 1 {
                    turns.reverse();
                }
                for (hone, side) in turns {
                    type_alone(hone, side, &trace, arguments)?;
                }
            }
            Other::LlamaServer(server) => {
                type_in_turns(ours, server, &mut sides, &trace, arguments)?;
            }
            Other::Nobody => type_alone(ours, &mut sides.ours, &trace, arguments)?,
        }
        eprintln!("   {}: {} keys", path.display(), arguments.keys);
    }
    report(ours, other, sides)
}

/// One side types a file.
fn type_alone(
    hone: &mut Hone,
    side: &mut Side,
    trace: &Trace,
    arguments: &Arguments,
) -> Result<()> {
    hone.open(trace)?;
    sleep(LOOKS_AROUND);
    for key in 0..=arguments.keys {
        sleep(Duration::from_millis(arguments.pause));
        side.add(key, trace.truth(key), &hone.key(trace, key)?);
    }
    hone.close()
}

/// Both sides get each key of a file, and take turns at being first.
fn type_in_turns(
    hone: &mut Hone,
    server: &mut LlamaServer,
    sides: &mut Sides,
    trace: &Trace,
    arguments: &Arguments,
) -> Result<()> {
    let pause = Duration::from_millis(arguments.pause);
    hone.open(trace)?;
    sleep(LOOKS_AROUND);
    server.infill.open(trace);
    for key in 0..=arguments.keys {
        let truth = trace.truth(key);
        let mut ask_server = |side: &mut Side| -> Result<()> {
            sleep(pause);
            side.add(key, truth, &server.infill.key(trace, key)?);
            Ok(())
        };
        if key % 2 == 1 {
            ask_server(&mut sides.theirs)?;
        }
        sleep(pause);
        sides.ours.add(key, truth, &hone.key(trace, key)?);
        if key % 2 == 0 {
            ask_server(&mut sides.theirs)?;
        }
    }
    hone.close()
}

fn report(ours: &Hone, other: &mut Other, mut sides: Sides) -> Result<Value> {
    let of_hone = |hone: &Hone, side: &mut Side| -> Result<Value> {
        let (mut report, timing) = (side.report(), hone.timing()?);
        for key in ["first_token_ms", "decode_step_ms", "per_computed", "computed"] {
            report[key] = timing[key].clone();
        }
        Ok(report)
    };
    let mut report = json!({ "hone": of_hone(ours, &mut sides.ours)? });
    let name = match other {
        Other::Nobody => return Ok(report),
        Other::LlamaServer(server) => {
            report["llama_server"] = sides.theirs.report();
            let first = json!(quantile(&mut server.infill.prompt_ms, 0.5));
            report["llama_server"]["first_token_ms"] = first;
            "llama_server"
        }
        Other::Hone(hone) => {
            report["against"] = of_hone(hone, &mut sides.theirs)?;
            "against"
        }
    };
    report["ratios"] = ratios(&report["hone"], &report[name]);
    Ok(report)
}

/// Our numbers divided by theirs, for each number that both sides have.
fn ratios(ours: &Value, theirs: &Value) -> Value {
    let keys = [
        "p50_ms",
        "p95_ms",
        "mean_ms",
        "cold_ms",
        "first_token_ms",
        "right_chars_per_request",
        "right_chars_per_offer",
    ];
    let mut ratios = json!({});
    for key in keys {
        let (a, b) = (&ours[key], &theirs[key]);
        ratios[key] = json!(a.as_f64().zip(b.as_f64()).map(|(a, b)| a / b));
    }
    ratios
}
