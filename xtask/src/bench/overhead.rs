//! `cargo xtask bench overhead`: the time that the server itself needs for a keystroke.

use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// The measurement is a test, because its engine exists for tests only.
const TEST: &str = "testing::overhead::bench_overhead_of_fifty_editors";

#[derive(Args)]
pub struct Arguments {
    /// Print one JSON object instead of the table
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
    eprintln!("── fifty editors");
    let mut measurement = test();
    measurement.args(["--", "--ignored", "--exact", "--nocapture", TEST]);
    super::print(&super::measure(&mut measurement)?, arguments.json, table)
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
