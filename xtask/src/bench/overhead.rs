//! `cargo xtask bench overhead`: the time that the server itself needs for a keystroke.

use super::table::Table;
use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// The measurements are tests, because their engine exists for tests only.
const EDITORS: &str = "testing::overhead::bench_overhead_of_fifty_editors";
const NEXT_EDITS: &str = "testing::next_edit::bench_next_edits";
const API: &str = "testing::http::bench_api_against_lsp";

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
    super::print(&measured("next edits", NEXT_EDITS)?, arguments.json, next_edits)?;
    super::print(&measured("the HTTP API", API)?, arguments.json, api)
}

/// The keys of a row's numbers, with this many digits of the times.
fn keys(digits: usize) -> [(&'static str, usize); 4] {
    [("requests", 0), ("p50_ms", digits), ("p95_ms", digits), ("max_ms", digits)]
}

fn heads(first: &str) -> [&str; 5] {
    [first, "requests", "p50 ms", "p95 ms", "max ms"]
}

fn table(measured: &Value) -> String {
    let mut table = Table::new(heads(&format!("{} editors", measured["editors"])));
    for (label, round) in
        [("eight keys a second each", "typing"), ("as fast as they can", "hurried")]
    {
        table.numbers(label, &measured[round], &keys(2));
    }
    format!("{table}\n  {} of the requests went to the engine", measured["computed"])
}

fn api(measured: &Value) -> String {
    let mut table = Table::new(heads("HTTP and LSP"));
    for (label, row) in
        [("a key over LSP", "lsp"), ("the same over HTTP", "http"), ("added", "added")]
    {
        table.numbers(label, &measured[row], &keys(2));
    }
    table.to_string()
}

/// The time from an edit to the offer, a keystroke with next edits and without, and an update of
/// their gate.
fn next_edits(measured: &Value) -> String {
    let head = format!("{} files of {} lines", measured["documents"], measured["lines"]);
    let mut table = Table::new(heads(&head));
    for (label, row) in [
        ("from an edit to the offer", "offer"),
        ("a key, next edits off", "keys_off"),
        ("a key during a search", "keys_on"),
        ("a later key, next edits off", "between_off"),
        ("a later key, no search", "between_on"),
        ("an update of the gate", "gate"),
    ] {
        table.numbers(label, &measured[row], &keys(3));
    }
    let p95 = |row: &str| measured[row]["p95_ms"].as_f64().unwrap_or(f64::NAN);
    format!(
        "{table}\n  a key's p95 with next edits on against off: {:.3} during a search, {:.3} \
         without one\n  {} of the searches found a place",
        p95("keys_on") / p95("keys_off"),
        p95("between_on") / p95("between_off"),
        measured["found"]
    )
}
