//! `cargo xtask bench rests`: how many rests in typing bring an offer in time during an update.

use super::table::Table;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// A file of some hundred lines, as a user may write it.
const TYPED: &str = "learner/src/ppo/mod.rs";

/// Busy processes of the lowest priority during the runs, each in a session of its own.
const LOADS: [u32; 2] = [0, 2];

#[derive(Args)]
pub struct Arguments {
    /// Characters that are typed in each of the four runs
    #[arg(long, default_value_t = 1_700, value_name = "N",
          value_parser = clap::value_parser!(u32).range(200..=10_000))]
    characters: u32,
    /// Print one JSON array instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    super::build(workspace)?;
    super::pull(workspace, None)?;

    let mut measured = vec![];
    for load in LOADS {
        eprintln!("── typing {TYPED} next to {load} busy process(es)");
        let mut rests = super::example(workspace, "rests");
        rests.arg("--file").arg(workspace.root.join(TYPED));
        rests.args(["--characters", &arguments.characters.to_string()]);
        rests.args(["--load", &load.to_string()]);
        measured.push(super::measure(&mut rests)?);
    }
    super::print(&Value::Array(measured), arguments.json, table)
}

fn table(measured: &Value) -> String {
    let heads = ["paused", "during update", "ratio", "gap more s", "update end s"];
    let mut table = Table::new(["busy processes"].into_iter().chain(heads));
    for row in measured.as_array().into_iter().flatten() {
        let answered = |side: &str| format!("{}/{}", row[side]["answered"], row[side]["rests"]);
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        table.row(
            &row["load"].to_string(),
            [
                answered("paused"),
                answered("beside"),
                format!("{:.2}", number("answered_ratio")),
                format!("{:.1}", number("gap_more_s")),
                format!("{:.0}", number("update_ended_after_s")),
            ],
        );
    }
    format!("{table}\n  goals: ratio ≥ 0.95, gap ≤ 2 s more, the update ends within 120 s")
}
