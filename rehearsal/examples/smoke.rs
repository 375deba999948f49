//! Asks a `hone` that was built for a GPU or for other machines for one completion, and checks
//! where it was computed. `cargo xtask smoke` and the end of `cargo xtask dist` run it.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rehearsal::client::{OwnHome, TriggerKind};
use rehearsal::document::Position;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Arguments {
    /// The `hone` to try
    #[arg(long)]
    hone: PathBuf,
    /// A folder with the model's file
    #[arg(long)]
    models: PathBuf,
    #[arg(long)]
    model: String,
    /// The backend that `hone status` has to name
    #[arg(long, default_value = "")]
    backend: String,
}

/// A GPU that is emulated by a CPU takes a minute for a token.
const LIMIT: Duration = Duration::from_secs(600);

const BEFORE: &str =
    "def mean(values):\n    total = 0\n    for value in values:\n        total += ";
const AFTER: &str = "\n    return total / len(values)\n";

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let settings = format!(
        "model.name = \"{}\"\nlearning.enabled = false\ngate.enabled = false\n\
         lab.max_tokens = 4\nlab.budget_ms = 600000\n",
        arguments.model
    );
    let home = OwnHome::new(&arguments.hone, &arguments.models, &settings)?;
    let client = home.editor()?;
    client.open("file:///mean.py", "python", &format!("{BEFORE}{AFTER}"))?;
    let position = Position { line: 3, character: 17 };
    let started = Instant::now();
    let pending =
        client.inline_completion_async("file:///mean.py", position, TriggerKind::Automatic)?;
    let items = rehearsal::client::items(client.wait_for(pending, LIMIT)?);
    let took = started.elapsed();
    let status = home.hone(&["status", "--json"]).stderr(Stdio::inherit()).output()?;
    let status: Value = serde_json::from_slice(&status.stdout).context("hone status --json")?;
    let backend = status["model"]["backend"].as_str().context("no backend in the status")?;
    let items = items?;
    let said = items.first().context("nothing was offered")?;
    println!("{backend}: {:?} after {:.1} s", said.insert_text, took.as_secs_f64());
    ensure!(said.insert_text.starts_with("value"), "the completion is not `value`");
    ensure!(
        backend.to_lowercase().contains(&arguments.backend),
        "it was not computed on {}",
        arguments.backend
    );
    Ok(())
}
