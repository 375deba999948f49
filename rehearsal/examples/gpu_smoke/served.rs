//! A daemon of its own with one model, and an editor that types into it.

use crate::Bench;
use anyhow::{Context, Result, ensure};
use rehearsal::client::{Client, Item, TriggerKind};
use rehearsal::document::Position;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest wait for a model to be loaded and to answer once.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// Code that the editor types: files of this crate.
const CODE: [&str; 6] = [
    include_str!("../../src/client.rs"),
    include_str!("../../src/run/stream.rs"),
    include_str!("../../src/report/stats.rs"),
    include_str!("../../src/developer/history.rs"),
    include_str!("../../src/run/arm.rs"),
    include_str!("../../src/document.rs"),
];

/// The lines of [`CODE`] that are long enough to ask in.
pub fn lines() -> Vec<String> {
    let lines = CODE.iter().flat_map(|code| code.lines());
    lines.filter(|line| line.trim().len() > 8).map(str::to_owned).collect()
}

/// Variables that hide the GPU from a program.
pub const WITHOUT_GPU: (&str, &str) = ("CUDA_VISIBLE_DEVICES", "-1");

pub struct Served {
    hone: PathBuf,
    home: tempfile::TempDir,
    environment: Vec<(OsString, OsString)>,
    pub client: Client,
    /// From the start to the first answer, in seconds.
    pub ready_s: f64,
}

impl Served {
    /// Starts a daemon with this model and these lines of settings, and waits for its first answer.
    pub fn start(
        bench: &Bench,
        model: &Path,
        settings: &str,
        environment: &[(&str, OsString)],
    ) -> Result<Served> {
        let home = tempfile::tempdir_in(&bench.work)?;
        // Everything is answered and offered, however unlikely it is, and at once.
        let settings = format!(
            "gate.enabled = false\nlab.min_token_probability = 0.0\n\
             lab.adaptive_debounce = false\nlab.budget_ms = 60000\n\
             learning.on_battery = true\nlab.trial = false\n{settings}"
        );
        std::fs::write(home.path().join("config.toml"), settings)?;
        let environment: Vec<(OsString, OsString)> =
            environment.iter().map(|(name, value)| (name.into(), value.clone())).collect();
        let hone = bench.bin.join("hone");
        let started = Instant::now();
        let mut lsp = Command::new(&hone);
        lsp.env("HONE_HOME", home.path()).envs(environment.iter().cloned());
        lsp.arg("lsp").arg("--model").arg(model).stderr(Stdio::inherit());
        let client = Client::spawn(&mut lsp)?;
        client.initialize(&[])?;
        let mut served = Served { hone, home, environment, client, ready_s: 0.0 };
        served.client.open("file:///first.py", "python", "def mean(values):\n    total = \n")?;
        let at = Position { line: 1, character: 12 };
        let pending =
            served.client.inline_completion_async("file:///first.py", at, TriggerKind::Invoked)?;
        served.client.wait_for(pending, FIRST_ANSWER_LIMIT)?;
        served.ready_s = started.elapsed().as_secs_f64();
        Ok(served)
    }

    pub fn status(&self) -> Result<Value> {
        Ok(self.client.status()?)
    }

    /// Returns where the model is computed.
    pub fn backend(&self) -> Result<String> {
        let status = self.status()?;
        Ok(status["model"]["backend"].as_str().context("no backend in the status")?.to_owned())
    }

    /// Runs `hone` with these arguments. Returns what it prints.
    pub fn hone(&self, arguments: &[&str]) -> Result<String> {
        let mut hone = Command::new(&self.hone);
        hone.env("HONE_HOME", self.home.path()).envs(self.environment.iter().cloned());
        crate::run(hone.args(arguments))
    }

    /// The recorded completions, oldest first.
    pub fn completions(&self) -> Result<Vec<Value>> {
        let events = self.hone(&["events", "--json"])?;
        let events = events.lines().map(serde_json::from_str);
        let events = events.collect::<Result<Vec<Value>, _>>()?;
        Ok(events.into_iter().filter(|event| event["event"] == "completion").collect())
    }

    /// Replaces a document by `text`, and asks at its end. Returns the time in milliseconds from
    /// the change to the answer, and the first item.
    pub fn ask(&self, uri: &str, text: &str) -> Result<(f64, Option<Item>)> {
        let last = text.rsplit('\n').next().unwrap_or_default();
        let at = Position {
            line: text.matches('\n').count() as u32,
            character: last.encode_utf16().count() as u32,
        };
        let started = Instant::now();
        self.client.change(uri, None, text)?;
        let items = self.client.inline_completion(uri, at, TriggerKind::Automatic)?;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        Ok((ms, items.into_iter().next()))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Err(error) = self.hone(&["stop"]) {
            eprintln!("   the daemon could not be stopped: {error:#}");
        }
    }
}

/// The half of line `line` and everything above it, from `first` on.
pub fn typed(lines: &[String], first: usize, line: usize) -> Result<String> {
    ensure!(first <= line && line < lines.len(), "there is no line {line}");
    let text = &lines[line];
    let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let above: String = lines[first..line].iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    Ok(above + &text[..half])
}
