//! Compares completions while the learner works with completions while it does not. `cargo xtask
//! bench beside` runs it.
//!
//! One editor types a real file into a real daemon and pauses between requests as a typist does.
//! Rounds of the two kinds alternate, so that a machine that slows down slows both. `hone pause`
//! and `hone resume` switch between the kinds.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rehearsal::client::{Client, OwnHome, TriggerKind};
use rehearsal::document::Position;
use rehearsal::report::stats::percentile;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(300);

/// Lines that are there when the typing begins. They are more than the model sees, so that prompts
/// are equally long in all rounds.
const LINES_BEFORE: usize = 80;

/// Longest wait for an update that a round can run beside.
const UPDATE_LIMIT: Duration = Duration::from_secs(300);

#[derive(Parser)]
struct Arguments {
    /// The `hone` to measure
    #[arg(long)]
    hone: PathBuf,
    /// A folder with the models' files
    #[arg(long)]
    models: PathBuf,
    /// The file to type
    #[arg(long)]
    file: PathBuf,
    /// Rounds of each kind
    #[arg(long)]
    rounds: usize,
    /// Requests in a round
    #[arg(long)]
    requests: usize,
}

struct Typist {
    client: Client,
    lines: Vec<String>,
    /// Turns so far. The lines after [`LINES_BEFORE`] are typed over and over.
    at: usize,
}

impl Typist {
    /// Types up to the middle of the next line and asks there. Returns how long that took, in
    /// milliseconds. Offers are accepted and rejected in turn, which gives labels for the next
    /// update.
    fn turn(&mut self) -> Result<f64> {
        let typed = self.lines.len() - LINES_BEFORE;
        let line = LINES_BEFORE + self.at % typed;
        let uri = format!("file:///bench/turn{}.rs", self.at / typed);
        if self.at.is_multiple_of(typed) {
            self.client.open(&uri, "rust", "")?;
        }
        let text = &self.lines[line];
        let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
        let before = self.lines[..line].iter().flat_map(|line| [line.as_str(), "\n"]);
        let typed: String = before.chain([&text[..half]]).collect();
        let position =
            Position { line: line as u32, character: text[..half].encode_utf16().count() as u32 };
        self.client.change(&uri, None, &typed)?;
        let started = Instant::now();
        let items = self.client.inline_completion(&uri, position, TriggerKind::Automatic)?;
        let took = started.elapsed().as_secs_f64() * 1000.0;
        if let Some(item) = items.first() {
            self.client.did_show(item)?;
            if self.at.is_multiple_of(2) {
                self.client.accept(&item.id)?;
            } else {
                self.client.did_reject(&item.id, "esc")?;
            }
        }
        self.at += 1;
        sleep(PAUSE);
        Ok(took)
    }

    /// Returns whether an update is being computed.
    fn is_training(&self) -> Result<bool> {
        let learner = &self.client.status()?["learner"];
        let error = &learner["last_error"];
        ensure!(error.is_null(), "an update failed: {error}");
        Ok(learner["state"] == "training")
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let text = std::fs::read_to_string(&arguments.file)
        .with_context(|| arguments.file.display().to_string())?;
    let lines: Vec<String> =
        text.lines().filter(|line| line.trim().len() > 8).map(str::to_owned).collect();
    ensure!(lines.len() > 2 * LINES_BEFORE, "{}: too short", arguments.file.display());
    // Without the gate every request is answered. An offer that is held back would give no label.
    let home = OwnHome::new(&arguments.hone, &arguments.models, "lab.gate = false\n")?;
    let mut typist = Typist { client: home.editor()?, lines, at: 0 };
    println!("{}", measure(&mut typist, &arguments, &home)?);
    Ok(())
}

fn measure(typist: &mut Typist, arguments: &Arguments, home: &OwnHome) -> Result<Value> {
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 1..=arguments.rounds {
        home.learning("pause")?;
        // These turns do not count: the first prompt is cold, and an update is being abandoned.
        for _ in 0..3 {
            typist.turn()?;
        }
        for _ in 0..arguments.requests {
            alone.push(typist.turn()?);
        }
        home.learning("resume")?;
        let (goal, since) = (round * arguments.requests, Instant::now());
        while beside.len() < goal {
            let was_training = typist.is_training()?;
            let took = typist.turn()?;
            if was_training && typist.is_training()? {
                beside.push(took);
            }
            ensure!(since.elapsed() < UPDATE_LIMIT, "no update began, or none lasted long enough");
        }
        eprintln!("   round {round}: {} requests alone, {} beside", alone.len(), beside.len());
    }
    let side = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        let rank = |share: f64| percentile(times, share);
        json!({"requests": times.len(), "p50_ms": rank(0.5), "p95_ms": rank(0.95)})
    };
    let (alone, beside) = (side(&mut alone), side(&mut beside));
    let ratio = |key: &str| beside[key].as_f64().zip(alone[key].as_f64()).map(|(a, b)| a / b);
    Ok(json!({
        "ratios": {"p50": ratio("p50_ms"), "p95": ratio("p95_ms")},
        "alone": alone,
        "beside_an_update": beside,
    }))
}
