//! `cargo xtask bench overhead`: the time that the server itself needs for a keystroke.

use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// The measurements are tests, because their engine exists for tests only.
const EDITORS: &str = "testing::overhead::bench_overhead_of_fifty_editors";
const NEXT_EDITS: &str = "testing::next_edit::bench_next_edits";

#[derive(Args)]
pub struct Arguments {
    /// Print a JSON object instead of each table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
    // For the whole workspace: another selection of packages has other features, which would
    // compile every dependency again.
    let test = || {
        let mut cargo = workspace.cargo();
        cargo.args(["test", "--release", "--workspace", "--lib"]);
        cargo
    };
    let mut steps = Steps::default();
    steps.run("build", test().arg("--no-run"))?;
    let measured = |title: &str, name: &str| {
        eprintln!("── {title}");
        let mut measurement = test();
        measurement.args(["--", "--ignored", "--exact", "--nocapture", name]);
        super::measure(&mut measurement)
    };
    super::print(&measured("fifty editors", EDITORS)?, arguments.json, table)?;
    super::print(&measured("next edits", NEXT_EDITS)?, arguments.json, next_edits)
}

fn table(measured: &Value) -> String {
    let head = format!("{} editors", measured["editors"]);
    let mut lines = vec![format!(
        "  {head:<30}{:>10}{:>10}{:>10}{:>10}",
        "requests", "p50 ms", "p95 ms", "max ms"
    )];
    for (label, round) in
        [("eight keys a second each", "typing"), ("as fast as they can", "hurried")]
    {
        let number = |key: &str| measured[round][key].as_f64().unwrap_or(f64::NAN);
        lines.push(format!(
            "  {label:<30}{:>10}{:>10.2}{:>10.2}{:>10.2}",
            number("requests"),
            number("p50_ms"),
            number("p95_ms"),
            number("max_ms")
        ));
    }
    lines.push(format!("  {} of the requests went to the engine", measured["computed"]));
    lines.join("\n")
}

/// The time from an edit to the offer, a keystroke with next edits and without, and an update of
/// their gate.
fn next_edits(measured: &Value) -> String {
    let head = format!("{} files of {} lines", measured["documents"], measured["lines"]);
    let mut lines = vec![format!(
        "  {head:<30}{:>10}{:>10}{:>10}{:>10}",
        "requests", "p50 ms", "p95 ms", "max ms"
    )];
    let number = |row: &str, key: &str| measured[row][key].as_f64().unwrap_or(f64::NAN);
    for (label, row) in [
        ("from an edit to the offer", "offer"),
        ("a key, next edits off", "keys_off"),
        ("a key during a search", "keys_on"),
        ("a later key, next edits off", "between_off"),
        ("a later key, no search", "between_on"),
        ("an update of the gate", "gate"),
    ] {
        lines.push(format!(
            "  {label:<30}{:>10}{:>10.3}{:>10.3}{:>10.3}",
            number(row, "requests"),
            number(row, "p50_ms"),
            number(row, "p95_ms"),
            number(row, "max_ms")
        ));
    }
    let ratio = |on, off| number(on, "p95_ms") / number(off, "p95_ms");
    lines.push(format!(
        "  a key's p95 with next edits on against off: {:.3} during a search, {:.3} without one",
        ratio("keys_on", "keys_off"),
        ratio("between_on", "between_off")
    ));
    lines.push(format!("  {} of the searches found a place", measured["found"]));
    lines.join("\n")
}
