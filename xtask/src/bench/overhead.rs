//! `cargo xtask bench overhead`: what the server itself costs a keystroke.

use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use std::process::Stdio;

/// What is measured is no library, and its engine is there for tests alone.
const TEST: &str = "testing::overhead::bench_overhead_of_fifty_editors";

#[derive(Args)]
pub struct Arguments {
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
    // For the whole workspace: another selection is another set of features, and would
    // compile everything anew.
    let test = || {
        let mut cargo = workspace.cargo();
        cargo.args(["test", "--release", "--workspace", "--lib"]);
        cargo
    };
    let mut steps = Steps::default();
    steps.run("build", test().arg("--no-run"))?;
    eprintln!("── fifty editors");
    let output = test()
        .args(["--", "--ignored", "--exact", "--nocapture", TEST])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "the measurement failed ({})", output.status);
    let said = String::from_utf8(output.stdout)?;
    let report = said.lines().find(|line| line.starts_with('{'));
    let measured: Value = serde_json::from_str(report.context("the test has measured nothing")?)?;
    match arguments.json {
        true => println!("{}", serde_json::to_string_pretty(&measured)?),
        false => println!("{}", table(&measured)),
    }
    Ok(())
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
