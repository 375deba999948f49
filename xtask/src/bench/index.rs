//! `cargo xtask bench index`: what the index of a workspace costs, and how fast it answers.

use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;

/// The measurement is a test, because it looks into the server.
const TEST: &str = "testing::index::bench_index_of_a_workspace";

#[derive(Args)]
pub struct Arguments {
    /// Index this folder instead of ten thousand files that are made for it
    #[arg(long, value_name = "DIR")]
    tree: Option<PathBuf>,
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
    eprintln!("── index");
    let mut measurement = test();
    measurement.args(["--", "--ignored", "--exact", "--nocapture", TEST]);
    if let Some(tree) = &arguments.tree {
        measurement.env("HONE_BENCH_TREE", std::path::absolute(tree)?);
    }
    super::print(&super::measure(&mut measurement)?, arguments.json, table)
}

fn table(measured: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let folder = &measured["folder"];
    let mut lines = vec![
        format!(
            "  {} files, {:.1} MB of text, {} chunks",
            folder["files"],
            number(&folder["text_mb"]),
            folder["chunks"]
        ),
        format!(
            "  listed, read, checked and put into both: {:.1} s; the process grew by {:.0} MB",
            number(&folder["build_s"]),
            number(&folder["process_mb"])
        ),
        format!(
            "  {:<12}{:>10}{:>18}{:>10}{:>10}{:>10}",
            "", "build s", "MB beside text", "p50 ms", "p95 ms", "max ms"
        ),
    ];
    for name in ["retrieval", "memory"] {
        let part = &measured[name];
        lines.push(format!(
            "  {name:<12}{:>10.1}{:>18.1}{:>10.2}{:>10.2}{:>10.2}",
            number(&part["build_s"]),
            number(&part["index_mb"]),
            number(&part["p50_ms"]),
            number(&part["p95_ms"]),
            number(&part["max_ms"])
        ));
    }
    lines.join("\n")
}
