//! `cargo xtask bench beside`: how much slower completions are while the learner works.

use super::table::Table;
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
    super::build(workspace)?;
    super::pull(workspace, None)?;

    eprintln!("── typing {TYPED}, {} round(s) of each kind", arguments.rounds);
    let mut beside = super::example(workspace, "beside");
    beside.arg("--file").arg(workspace.root.join(TYPED));
    beside.args(["--rounds", &arguments.rounds.to_string()]);
    beside.args(["--requests", &arguments.requests.to_string()]);
    super::print(&super::measure(&mut beside)?, arguments.json, table)
}

fn table(measured: &Value) -> String {
    let mut table = Table::new(["", "requests", "p50 ms", "p95 ms"]);
    for (label, side) in [("no update", "alone"), ("beside an update", "beside_an_update")] {
        let keys = [("requests", 0), ("p50_ms", 0), ("p95_ms", 0)];
        table.numbers(label, &measured[side], &keys);
    }
    table.numbers("ratio", &measured["ratios"], &[("", 0), ("p50", 2), ("p95", 2)]);
    table.to_string()
}
