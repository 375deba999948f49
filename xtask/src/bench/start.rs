//! `cargo xtask bench start`: the time from the start of `hone lsp` to the answer to `initialize`.

use super::table::Table;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Returns the first message of an editor.
fn initialize() -> String {
    let params = json!({"processId": null, "rootUri": null, "capabilities": {}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string()
}

#[derive(Args)]
pub struct Arguments {
    /// Starts of `hone lsp` without a daemon, and as many with one
    #[arg(long, default_value_t = 9, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    super::build(workspace)?;
    super::pull(workspace, None)?;
    let hone = |command: &str| {
        let mut hone = Command::new(workspace.binary("hone"));
        hone.env("HONE_HOME", super::home(workspace)).arg(command);
        hone
    };
    let (mut cold, mut warm) = (vec![], vec![]);
    for _ in 0..arguments.rounds {
        succeed(&mut hone("stop"))?;
        cold.push(start(&mut hone("lsp"))?);
        // It is answered once the model is in memory.
        succeed(&mut hone("status"))?;
        warm.push(start(&mut hone("lsp"))?);
    }
    succeed(&mut hone("stop"))?;
    let measured = json!({
        "rounds": arguments.rounds,
        "cold": of(&cold),
        "warm": of(&warm),
    });
    super::print(&measured, arguments.json, table)
}

fn of(times: &[f64]) -> Value {
    let max = times.iter().copied().fold(f64::NAN, f64::max);
    json!({ "median_ms": super::median(times), "max_ms": max })
}

/// Starts a forwarder as an editor does; returns the milliseconds until the first line of its
/// answer.
fn start(lsp: &mut Command) -> Result<f64> {
    let began = Instant::now();
    let mut lsp = lsp.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (input, output) = (lsp.stdin.take(), lsp.stdout.take());
    let (mut input, output) = input.zip(output).context("the program has no pipes")?;
    let first = initialize();
    write!(input, "Content-Length: {}\r\n\r\n{first}", first.len())?;
    input.flush()?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let took = began.elapsed();
    ensure!(line.starts_with("Content-Length"), "`hone lsp` has given no answer");
    lsp.kill()?;
    lsp.wait()?;
    Ok(took.as_secs_f64() * 1000.0)
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).status().context("cannot run hone")?;
    ensure!(status.success(), "{command:?} failed ({status})");
    Ok(())
}

fn table(measured: &Value) -> String {
    let head = format!("{} starts each", measured["rounds"]);
    let mut table = Table::new([head.as_str(), "median ms", "max ms"]);
    for (label, row) in [("no daemon runs", "cold"), ("a daemon runs", "warm")] {
        table.numbers(label, &measured[row], &[("median_ms", 0), ("max_ms", 0)]);
    }
    table.to_string()
}
