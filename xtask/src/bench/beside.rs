//! `cargo xtask bench beside`: how much slower completions are while the learner works.

use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// A file of some hundred lines, as a user may write it.
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
    let mut steps = super::build(workspace)?;
    super::pull(workspace, &mut steps, None)?;

    eprintln!("── typing {TYPED}, {} round(s) of each kind", arguments.rounds);
    let mut beside = super::example(workspace, "beside");
    beside.arg("--file").arg(workspace.root.join(TYPED));
    beside.args(["--rounds", &arguments.rounds.to_string()]);
    beside.args(["--requests", &arguments.requests.to_string()]);
    super::print(&super::measure(&mut beside)?, arguments.json, table)
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
