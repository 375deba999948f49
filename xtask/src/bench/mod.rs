//! `cargo xtask bench`: measurements, side by side with a peer where there is one.

mod learn;
mod overhead;
mod peer;
mod rests;
mod serve;
mod start;
mod table;

use crate::mirror;
use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};

/// What the help says of the commands that are not listed in it.
pub const OTHERS: &str = "\
The commands of `hone-lab` are measurements too, such as `quality`, `people`, `labels`, `places`
and `next-edits`: `cargo xtask bench people --help` says what one measures";

/// The measurements of `hone-lab`. Any other word is refused before everything is built.
const OF_LAB: [&str; 11] = [
    "gate",
    "people",
    "labels",
    "places",
    "next-edits",
    "quality",
    "trial",
    "texts",
    "written",
    "prequential",
    "team-parts",
];

#[derive(Subcommand)]
pub enum Command {
    /// An update by phase, and a training step against torch + PEFT
    ///
    /// First two updates of 16 texts behind prompts of 1,000 tokens, by phase, with the
    /// peak of memory. Then a training step on the same model and tokens as torch + PEFT.
    ///
    /// Installs torch and PEFT into a virtual environment under `target/` (some
    /// gigabytes, once). The steps of both sides take turns, on the same number of
    /// threads. Medians and their ratios are reported.
    Learn(learn::Arguments),
    /// Rests in typing at which an offer comes in time, during an update
    ///
    /// One editor types at the speed of a person and rests at the start of lines. Each
    /// round is made with learning paused and during an update of 32 labels, once on a
    /// quiet machine and once next to two busy processes of the lowest priority.
    Rests(rests::Arguments),
    /// A completion at every key of a typed file, against a llama-server
    ///
    /// Both sides serve the same model with the same window, and get every request
    /// in turns. Without `--peer`, Hone is measured alone.
    Serve(serve::Arguments),
    /// The time that the server itself needs for a key, with fifty editors at once
    ///
    /// The connections and the event log are real; the engine answers at once, without
    /// a model. The time runs from writing a key's change and request to reading the
    /// answer. Then what next edits cost a key, and what the HTTP API adds to it.
    Overhead(overhead::Arguments),
    /// The time until an editor that starts `hone lsp` has its first answer
    ///
    /// Once with no daemon, so that one is started and loads the default model, and
    /// once with a daemon that runs already.
    Start(start::Arguments),
    /// A command of `hone-lab`
    #[command(external_subcommand)]
    Lab(Vec<OsString>),
}

pub fn run(workspace: &Workspace, command: &Command) -> Result<()> {
    match command {
        Command::Learn(arguments) => learn::run(workspace, arguments),
        Command::Rests(arguments) => rests::run(workspace, arguments),
        Command::Serve(arguments) => serve::run(workspace, arguments),
        Command::Overhead(arguments) => overhead::run(workspace, arguments),
        Command::Start(arguments) => start::run(workspace, arguments),
        Command::Lab(arguments) => lab(workspace, arguments),
    }
}

/// Builds the programs and the examples; returns the steps so far. The whole workspace is built,
/// because another selection of packages has other features, which would compile every dependency
/// again.
pub fn build(workspace: &Workspace) -> Result<Steps> {
    packages::ensure()?;
    let mut steps = Steps::default();
    steps.run("build", workspace.cargo_build().args(["--bins", "--examples"]))?;
    Ok(steps)
}

/// Fetches a model, or the default one; returns its file.
pub fn pull(workspace: &Workspace, name: Option<&str>) -> Result<PathBuf> {
    mirror::prepare(&home(workspace))?;
    eprintln!("── model {}", name.unwrap_or("(default)"));
    let mut pull = Process::new(workspace.binary("hone"));
    pull.env("HONE_HOME", home(workspace)).args(["model", "pull"]).args(name);
    let output = pull.stderr(Stdio::inherit()).output().context("cannot run hone")?;
    ensure!(output.status.success(), "`hone model pull` failed ({})", output.status);
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// The home whose models are measured.
fn home(workspace: &Workspace) -> PathBuf {
    workspace.target.join("test-home")
}

/// An example of this workspace, with `hone` and the models as arguments.
fn example(workspace: &Workspace, name: &str) -> Process {
    let mut example = Process::new(workspace.binary(&format!("examples/{name}")));
    example.arg("--hone").arg(workspace.binary("hone"));
    example.arg("--models").arg(home(workspace).join("models"));
    example
}

/// Runs a command of `hone-lab`, which has its own options and prints its result itself.
fn lab(workspace: &Workspace, arguments: &[OsString]) -> Result<()> {
    let name = arguments.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    ensure!(OF_LAB.contains(&&*name), "{name}: no measurement; see `cargo xtask bench --help`");
    build(workspace)?;
    mirror::prepare(&home(workspace))?;
    let mut lab = Process::new(workspace.binary("hone-lab"));
    let status = lab.args(arguments).env("HONE_HOME", home(workspace)).status();
    let status = status.context("cannot start hone-lab")?;
    ensure!(status.success(), "the measurement failed ({status})");
    Ok(())
}

/// Runs a measurement; returns the JSON object that it prints.
fn measure(command: &mut Process) -> Result<Value> {
    let program = command.get_program().display().to_string();
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    ensure!(output.status.success(), "the measurement failed ({})", output.status);
    let text = String::from_utf8(output.stdout)?;
    // A test harness prints lines of its own.
    let report = text.lines().find(|line| line.starts_with('{'));
    Ok(serde_json::from_str(report.context("the measurement has printed no result")?)?)
}

/// Prints what was measured, as JSON or as a table.
fn print(measured: &Value, as_json: bool, table: impl Fn(&Value) -> String) -> Result<()> {
    if as_json {
        println!("{}", serde_json::to_string_pretty(measured)?);
    } else {
        println!("{}", table(measured));
    }
    Ok(())
}

/// The middle value; for an even number of values, the mean of the middle two.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_even_counts_is_between_the_middle_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
