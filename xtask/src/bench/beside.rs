//! `cargo xtask bench beside`: what an update costs the completions beside it.

use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use std::process::{Command, Stdio};

/// A file of some hundred lines that a user might have written.
const TYPED: &str = "learner/src/ppo/mod.rs";

#[derive(Args)]
pub struct Arguments {
    /// Rounds without an update, each followed by one beside an update
    #[arg(long, default_value_t = 3, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Requests of a round
    #[arg(long, default_value_t = 40, value_name = "N",
          value_parser = clap::value_parser!(u32).range(10..=1000))]
    requests: u32,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
    let mut steps = Steps::default();
    steps.run("build", workspace.cargo_build().arg("--bins").arg("--examples"))?;
    let home = workspace.target.join("test-home");
    let mut pull = Command::new(workspace.binary("hone"));
    pull.env("HONE_HOME", &home).args(["model", "pull"]).stdout(Stdio::null());
    steps.run("model", &mut pull)?;

    eprintln!("── typing {TYPED}, {} round(s) of each kind", arguments.rounds);
    let output = Command::new(workspace.binary("examples/beside"))
        .arg("--hone")
        .arg(workspace.binary("hone"))
        .arg("--models")
        .arg(home.join("models"))
        .arg("--file")
        .arg(workspace.root.join(TYPED))
        .args(["--rounds", &arguments.rounds.to_string()])
        .args(["--requests", &arguments.requests.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run the example `beside`")?;
    ensure!(output.status.success(), "the measurement failed ({})", output.status);
    let measured: Value = serde_json::from_slice(&output.stdout)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&measured)?);
    } else {
        println!("{}", table(&measured));
    }
    Ok(())
}

fn table(measured: &Value) -> String {
    let number = |side: &str, key: &str| measured[side][key].as_f64().unwrap_or(f64::NAN);
    let mut lines = vec![format!("  {:<24}{:>9}{:>10}{:>10}", "", "requests", "p50 ms", "p95 ms")];
    for (name, side) in [("no update", "alone"), ("beside an update", "beside_an_update")] {
        lines.push(format!(
            "  {name:<24}{:>9}{:>10.0}{:>10.0}",
            number(side, "requests"),
            number(side, "p50_ms"),
            number(side, "p95_ms")
        ));
    }
    lines.push(format!(
        "  {:<24}{:>9}{:>10.2}{:>10.2}",
        "ratio",
        "",
        number("ratios", "p50"),
        number("ratios", "p95")
    ));
    lines.join("\n")
}
