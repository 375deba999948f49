//! `cargo xtask bench rests`: how many rests in typing bring an offer in time beside an update.

use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// A file of some hundred lines, as a user may write it.
const TYPED: &str = "learner/src/ppo/mod.rs";

/// Busy processes of the lowest priority beside the runs.
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
    let mut steps = super::build(workspace)?;
    super::pull(workspace, &mut steps, None)?;

    let mut measured = vec![];
    for load in LOADS {
        eprintln!("── typing {TYPED} beside {load} busy process(es)");
        let mut rests = super::example(workspace, "rests");
        rests.arg("--file").arg(workspace.root.join(TYPED));
        rests.args(["--characters", &arguments.characters.to_string()]);
        rests.args(["--load", &load.to_string()]);
        measured.push(super::measure(&mut rests)?);
    }
    super::print(&Value::Array(measured), arguments.json, table)
}

fn table(measured: &Value) -> String {
    let mut lines = vec![format!(
        "  {:<20}{:>12}{:>12}{:>8}{:>12}{:>14}",
        "busy processes", "paused", "beside", "ratio", "gap more s", "update end s"
    )];
    for row in measured.as_array().into_iter().flatten() {
        let answered = |side: &str| format!("{}/{}", row[side]["answered"], row[side]["rests"]);
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        lines.push(format!(
            "  {:<20}{:>12}{:>12}{:>8.2}{:>12.1}{:>14.0}",
            row["load"].to_string(),
            answered("paused"),
            answered("beside"),
            number("answered_ratio"),
            number("gap_more_s"),
            number("update_ended_after_s"),
        ));
    }
    lines.push("  goals: ratio ≥ 0.95, gap ≤ 2 s more, the update ends within 120 s".into());
    lines.join("\n")
}
