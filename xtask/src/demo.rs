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
const PLACES_PER_COMMIT: u32 = 10;
/// The rehearsal ends after this time on any machine, once the update that runs then is done.
const MAX_MINUTES: u32 = 4;
/// The base model with every offer shown, and the learner, trial and gate as installed.
const ARMS: [&str; 2] = ["frozen", "everything"];
/// Two packages that are not optimised, because somebody waits for them. An offer and an update
/// take their time in others. A later build compiles only these two again.
const QUICK: [&str; 2] =
    ["profile.release.package.hone.opt-level=0", "profile.release.package.rehearsal.opt-level=0"];

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
    // The packages are the same each time, because another selection has other features, which
    // would compile the dependencies again.
    let build = |programs: &[&str]| {
        let mut build = workspace.cargo_build();
        build.args(QUICK.iter().flat_map(|quick| ["--config", quick]));
        build.args(programs.iter().flat_map(|program| ["--bin", program]));
        build
    };
    steps.run(
        "build: what fetches the model (a minute on two cores)",
        &mut build(&["hone-fetch"]),
    )?;

    // The model stays here for the next demo. Your own Hone is not touched.
    let home = workspace.target.join("demo-home");
    mirror::prepare(&home)?;
    eprintln!("── model (469 MiB, while the rest is compiled)");
    let mut fetch = Command::new(workspace.binary("hone-fetch"));
    fetch.arg(home.join("models")).stderr(Stdio::piped());
    let mut fetch = fetch.spawn().context("cannot start hone-fetch")?;
    // The first offers need no learner, whose libraries take long to compile.
    let mut server = build(&["hone", "hone-rehearse"]);
    let built = steps.run("build: the server (four minutes on two cores)", &mut server);
    if built.is_err() {
        // The next demo resumes the download.
        let _ = fetch.kill();
    }
    let fetched = fetch.wait_with_output().context("cannot wait for hone-fetch")?;
    built?;
    let why = String::from_utf8_lossy(&fetched.stderr);
    ensure!(fetched.status.success(), "the model was not fetched: {}", why.trim());

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
        "the first offers (dim text; some seconds)",
        rehearsal().args(["--limit", &places, "--live", "--arm", ARMS[0]]).stdout(Stdio::null()),
    )?;
    let mut learner = build(&["hone-learner"]);
    steps.run("build: the learner (two minutes on two cores)", &mut learner)?;

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
    eprintln!(
        "── rehearsal: two daemons, one of which learns; dim text is an offer (at most \
         {MAX_MINUTES} minutes, and an update)"
    );
    let status = rehearse.status().context("cannot start hone-rehearse")?;
    ensure!(status.success(), "step `rehearsal` failed ({status})");
    eprintln!("Report, curve and transcript: {}", folder.display());
    Ok(())
}
