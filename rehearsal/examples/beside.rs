//! Completions while the learner works, against completions while it does not:
//! `cargo xtask bench beside`.
//!
//! One editor types a real file into a real daemon and pauses between requests
//! as a typist does. Rounds of the two alternate, so that a machine that slows
//! down slows both.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::Position;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two requests.
const PAUSE: Duration = Duration::from_millis(300);

/// Lines that are there when the typing begins: more than the model sees, so that
/// prompts are equally long in all rounds.
const LINES_BEFORE: usize = 80;

/// Labels an update learns from, as by default.
const LABELS: usize = 16;

#[derive(Parser)]
struct Arguments {
    /// The `hone` to measure
    #[arg(long)]
    hone: PathBuf,
    /// A folder with the models' files
    #[arg(long)]
    models: PathBuf,
    /// The file that is typed
    #[arg(long)]
    file: PathBuf,
    /// Updates, each after as many requests without one
    #[arg(long)]
    rounds: usize,
    /// Requests of a round without an update
    #[arg(long)]
    requests: usize,
}

struct Typist {
    client: Client,
    lines: Vec<String>,
    /// Lines typed so far, over and over the file.
    at: usize,
    /// Verdicts given since the last update.
    labels: usize,
}

impl Typist {
    /// Types up to the middle of the next line and asks there; answers how long
    /// that took, in milliseconds. Offers are taken and rejected in turn, until
    /// there are enough labels; later ones are not shown.
    fn turn(&mut self) -> Result<f64> {
        let line = self.at % self.lines.len();
        let uri = format!("file:///bench/turn{}.rs", self.at / self.lines.len());
        if line == 0 || self.at == LINES_BEFORE {
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
        if let Some(item) = items.first().filter(|_| self.labels < LABELS) {
            self.client.did_show(item)?;
            match self.labels % 2 {
                0 => self.client.accept(&item.id)?,
                _ => self.client.did_reject(&item.id, "esc")?,
            }
            self.labels += 1;
        }
        self.at += 1;
        sleep(PAUSE);
        Ok(took)
    }

    fn learner(&self) -> Result<Value> {
        Ok(self.client.status()?["learner"].clone())
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let text = std::fs::read_to_string(&arguments.file)
        .with_context(|| arguments.file.display().to_string())?;
    let lines: Vec<String> =
        text.lines().filter(|line| line.trim().len() > 8).map(str::to_owned).collect();
    ensure!(lines.len() > 2 * LINES_BEFORE, "{}: too short", arguments.file.display());
    let home = tempfile::tempdir()?;
    std::os::unix::fs::symlink(
        std::path::absolute(&arguments.models)?,
        home.path().join("models"),
    )?;
    // Updates start when they are asked for.
    std::fs::write(home.path().join("config.toml"), "learning.batch_episodes = 4096\n")?;
    let hone = |verb: &str| {
        let mut command = Command::new(&arguments.hone);
        command.env("HONE_HOME", home.path()).arg(verb);
        command
    };
    let client = Client::spawn(hone("lsp").stderr(Stdio::inherit()))?;
    client.initialize(&[])?;
    let mut typist = Typist { client, lines, at: LINES_BEFORE, labels: 0 };
    let measured = measure(&mut typist, &arguments);
    drop(typist);
    hone("stop").stdout(Stdio::null()).status()?;
    println!("{}", measured?);
    Ok(())
}

fn measure(typist: &mut Typist, arguments: &Arguments) -> Result<Value> {
    // The first prompt is cold.
    for _ in 0..3 {
        typist.turn()?;
    }
    let (mut alone, mut beside, mut updates) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=arguments.rounds {
        for _ in 0..arguments.requests {
            alone.push(typist.turn()?);
        }
        while typist.labels < LABELS {
            typist.turn()?;
        }
        let before = typist.learner()?["updates"].clone();
        let started = Instant::now();
        ensure!(typist.client.learn()?.started, "no update was started");
        loop {
            let learner = typist.learner()?;
            ensure!(
                learner["last_error"].is_null(),
                "the update failed: {}",
                learner["last_error"]
            );
            if learner["updates"] != before {
                break;
            }
            beside.push(typist.turn()?);
        }
        typist.labels = 0;
        updates.push(started.elapsed().as_secs_f64());
        eprintln!("   round {round}: {} requests alone, {} beside", alone.len(), beside.len());
    }
    let side = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        let rank = |q: f64| times[((times.len() - 1) as f64 * q).round() as usize];
        json!({"requests": times.len(), "p50_ms": rank(0.5), "p95_ms": rank(0.95)})
    };
    let (alone, beside) = (side(&mut alone), side(&mut beside));
    let ratio = |key: &str| beside[key].as_f64().zip(alone[key].as_f64()).map(|(a, b)| a / b);
    Ok(json!({
        "ratios": {"p50": ratio("p50_ms"), "p95": ratio("p95_ms")},
        "alone": alone,
        "beside_an_update": beside,
        "update_s": updates,
    }))
}
