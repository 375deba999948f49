//! `cargo xtask bench`: measurements, side by side with a peer where there is one.

mod beside;
mod labels;
mod learn;
mod next_edits;
mod overhead;
mod peer;
mod people;
mod places;
mod quality;
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
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};

#[derive(Subcommand)]
pub enum Command {
    /// A training step against torch + PEFT on the same model and tokens
    ///
    /// Installs torch and PEFT into a virtual environment under `target/` (some
    /// gigabytes, once). The steps of both sides take turns, on the same number of
    /// threads. Medians and their ratios are reported.
    Learn(learn::Arguments),
    /// Completions while the learner works, against completions while it does not
    ///
    /// One editor types a file of this repository into a real daemon. Rounds beside
    /// an update and rounds with learning paused take turns.
    Beside(beside::Arguments),
    /// Rests in typing at which an offer comes in time, beside an update
    ///
    /// One editor types at the speed of a person and rests at the start of lines. Each
    /// round is made with learning paused and beside an update of 32 labels, once on a
    /// quiet machine and once beside two busy processes of the lowest priority.
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
    /// The solutions of HumanEval, with a line or half a line missing
    ///
    /// Reports exact matches, edit similarity, and the share of offers that the missing
    /// text begins with: with the default settings, and with one setting changed at a
    /// time.
    Quality(quality::Arguments),
    /// The gate against offers that real people accepted or rejected
    ///
    /// Every person begins with a new gate, which judges each offer before it learns the
    /// verdict. The log-probs are those of the served model, and then those of the model
    /// that made the offers. The model's scores are kept in `target/bench/people`.
    People(people::Arguments),
    /// The label rules against what a person did in a recorded session
    ///
    /// The offers of the tool that was recorded stand where the engine's would. The session
    /// is played into the server's label rules with nothing but the document, and with the
    /// reports of an editor.
    Labels(labels::Arguments),
    /// Which of several candidates is the best one, at places of real commits
    ///
    /// Computes the prompts and the candidates of a request by hand at places that are
    /// drawn from the commits of repositories, and keeps them in `target/bench/places`.
    /// A run that was interrupted goes on. `--choose` then tries choices among them.
    Places(places::Arguments),
    /// What is offered first where people rated what should come next
    ///
    /// Recordings of people are replayed into a daemon, edit by edit, and the next edit is
    /// asked for. Each recording has candidates that people called wanted, acceptable or bad.
    NextEdits(next_edits::Arguments),
}

pub fn run(workspace: &Workspace, command: &Command) -> Result<()> {
    match command {
        Command::Learn(arguments) => learn::run(workspace, arguments),
        Command::Beside(arguments) => beside::run(workspace, arguments),
        Command::Rests(arguments) => rests::run(workspace, arguments),
        Command::Serve(arguments) => serve::run(workspace, arguments),
        Command::Overhead(arguments) => overhead::run(workspace, arguments),
        Command::Start(arguments) => start::run(workspace, arguments),
        Command::Quality(arguments) => quality::run(workspace, arguments),
        Command::People(arguments) => people::run(workspace, arguments),
        Command::Labels(arguments) => labels::run(workspace, arguments),
        Command::Places(arguments) => places::run(workspace, arguments),
        Command::NextEdits(arguments) => next_edits::run(workspace, arguments),
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
pub fn pull(workspace: &Workspace, steps: &mut Steps, name: Option<&str>) -> Result<PathBuf> {
    mirror::prepare(&home(workspace))?;
    let hone = |command: &str| {
        let mut hone = Process::new(workspace.binary("hone"));
        hone.env("HONE_HOME", home(workspace)).args(["model", command]).args(name);
        hone
    };
    let step = format!("model {}", name.unwrap_or("(default)"));
    // It prints the path, which does not belong to the output of the measurement.
    steps.run(&step, hone("pull").stdout(Stdio::null()))?;
    let output = hone("path").output().context("cannot run hone")?;
    ensure!(output.status.success(), "`hone model path` failed ({})", output.status);
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// The home whose models are measured.
fn home(workspace: &Workspace) -> PathBuf {
    workspace.target.join("test-home")
}

/// An example of this workspace, with `hone` and the models as arguments.
fn example(workspace: &Workspace, name: &str) -> Process {
    let mut example = Process::new(workspace.binary(&format!("examples/{name}")));
    with_home(workspace, &mut example);
    example
}

/// Names `hone` and the folder of the models to a measurement.
fn with_home(workspace: &Workspace, measurement: &mut Process) {
    measurement.arg("--hone").arg(workspace.binary("hone"));
    measurement.arg("--models").arg(home(workspace).join("models"));
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
