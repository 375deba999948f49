//! `cargo xtask demo`: what a user gets. A simulated developer types this repository's history into
//! two daemons, one with the frozen base model and one with everything that Hone has, and three
//! sentences say what the difference was worth.

use crate::files;
use crate::mirror;
use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use clap::Args;
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

    let folder = workspace.target.join("demo");
    files::make_folder(&folder)?;
    let mut rehearse = rehearsal();
    rehearse
        .args(["--limit", &arguments.limit.to_string(), "--live"])
        .args(["--per-commit", &PLACES_PER_COMMIT.to_string()])
        .args(ARMS.iter().flat_map(|arm| ["--arm", arm]))
        .args(["--max-minutes", &MAX_MINUTES.to_string()])
        .arg("--transcript")
        .arg(folder.join("transcript.txt"))
        .arg("--report")
        .arg(folder.join("report.json"))
        .arg("--svg")
        .arg(folder.join("curve.svg"));
    if arguments.keep {
        rehearse.arg("--keep-homes");
    }
    eprintln!("── rehearsal: two daemons, one of which learns; dim text is an offer");
    let status = rehearse.status().context("cannot start hone-rehearse")?;
    ensure!(status.success(), "step `rehearsal` failed ({status})");
    eprintln!("Report, curve and transcript: {}", folder.display());
    Ok(())
}
