//! `cargo xtask demo`: what a user gets. A simulated developer types this repository's history into
//! two daemons, one with the frozen base model and one with everything that Hone has, and three
//! sentences say what the difference was worth.

use crate::mirror;
use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Enough places for a gate that learns and for some updates.
const DEFAULT_LIMIT: u32 = 280;
/// The first places, some of which have an offer as a rule.
const FIRST_PLACES: u32 = 8;
/// The stream spans more than the eight commits that an interval needs.
const PLACES_PER_COMMIT: u32 = 20;
/// The rehearsal ends after this time on any machine. With its last update it stays below ten
/// minutes.
const MAX_MINUTES: u32 = 9;
/// The base model with every offer shown, and the learner, trial and gate as installed.
const ARMS: [&str; 2] = ["frozen", "everything"];

#[derive(Args)]
pub struct Arguments {
    /// The repository whose history is typed [default: this one]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Places at which a completion is asked for
    #[arg(long, default_value_t = DEFAULT_LIMIT, value_name = "N")]
    limit: u32,
    /// Keep the homes of both daemons (events, adapters, logs) and say where they are
    #[arg(long)]
    keep: bool,
}

/// The files that a demo leaves, for people and for [`crate::screencast`].
pub struct Results {
    pub folder: PathBuf,
    pub transcript: PathBuf,
    /// What the rehearsal says at its end.
    pub summary: PathBuf,
}

impl Results {
    pub fn of(workspace: &Workspace) -> Results {
        let folder = workspace.target.join("demo");
        Results {
            transcript: folder.join("transcript.txt"),
            summary: folder.join("summary.txt"),
            folder,
        }
    }
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
    let mut steps = Steps::default();
    // The first offers need no learner, whose libraries take long to compile. The packages are
    // those of the build below, because another selection has other features, which would compile
    // the dependencies again.
    let mut first = workspace.cargo_build();
    steps.run("build: the server", first.args(["--bin", "hone", "--bin", "hone-rehearse"]))?;

    // The model stays here for the next demo. Your own Hone is not touched.
    let home = workspace.target.join("demo-home");
    mirror::prepare(&home)?;
    steps.run(
        "model",
        Command::new(workspace.binary("hone")).env("HONE_HOME", &home).args(["model", "pull"]),
    )?;

    let rehearsal = || {
        let mut rehearse = Command::new(workspace.binary("hone-rehearse"));
        rehearse.env("HONE_HOME", &home);
        match &arguments.repo {
            Some(repo) => rehearse.arg("--repo").arg(repo),
            None => rehearse.current_dir(&workspace.root),
        };
        rehearse
    };
    let places = FIRST_PLACES.min(arguments.limit).to_string();
    steps.run(
        "the first offers (dim text)",
        rehearsal().args(["--limit", &places, "--live", "--arm", ARMS[0]]).stdout(Stdio::null()),
    )?;
    steps.run("build: the learner", &mut workspace.cargo_build())?;

    let results = Results::of(workspace);
    fs::create_dir_all(&results.folder)
        .with_context(|| format!("cannot create {}", results.folder.display()))?;
    let mut rehearse = rehearsal();
    rehearse
        .args(["--limit", &arguments.limit.to_string(), "--live"])
        .args(["--per-commit", &PLACES_PER_COMMIT.to_string()])
        .args(ARMS.iter().flat_map(|arm| ["--arm", arm]))
        .args(["--max-minutes", &MAX_MINUTES.to_string()])
        .arg("--transcript")
        .arg(&results.transcript)
        .arg("--report")
        .arg(results.folder.join("report.json"))
        .arg("--svg")
        .arg(results.folder.join("curve.svg"));
    if arguments.keep {
        rehearse.arg("--keep-homes");
    }
    eprintln!("── rehearsal: two daemons, one of which learns; dim text is an offer");
    print_and_save(&mut rehearse, &results)?;
    eprintln!("Report, curve and transcript: {}", results.folder.display());
    Ok(())
}

/// Runs the command, prints what it prints, and writes that to a file as well.
fn print_and_save(command: &mut Command, results: &Results) -> Result<()> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {:?}", command.get_program()))?;
    let mut summary = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.context("cannot read what the rehearsal prints")?;
            println!("{line}");
            summary.push_str(&line);
            summary.push('\n');
        }
    }
    std::io::stdout().flush().context("cannot print")?;
    let status = child.wait().context("cannot wait for the rehearsal")?;
    if !status.success() {
        bail!("step `rehearsal` failed ({status})");
    }
    fs::write(&results.summary, summary)
        .with_context(|| format!("cannot write {}", results.summary.display()))
}
