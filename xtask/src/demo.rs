//! `cargo xtask demo`: from nothing to an adapter learned before your eyes.

use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Six updates' worth of labels: enough to see the loop turn.
const DEFAULT_LIMIT: u32 = 96;
/// Whatever the machine, the whole show ends within ten minutes: the last
/// update may still be on its way when this is over.
const MAX_MINUTES: u32 = 8;

#[derive(Args)]
pub struct Arguments {
    /// The repository whose history is typed [default: this one]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Places at which a completion is asked for
    #[arg(long, default_value_t = DEFAULT_LIMIT, value_name = "N")]
    limit: u32,
    /// Keep both daemons' homes (events, adapters, logs) and say where they are
    #[arg(long)]
    keep: bool,
}

/// The files a demo leaves, for people and for [`crate::screencast`].
pub struct Results {
    pub folder: PathBuf,
    pub transcript: PathBuf,
    pub table: PathBuf,
}

impl Results {
    pub fn of(workspace: &Workspace) -> Results {
        let folder = workspace.target.join("demo");
        Results {
            transcript: folder.join("transcript.txt"),
            table: folder.join("table.txt"),
            folder,
        }
    }
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
    let mut steps = Steps::default();
    steps.run("build", &mut workspace.cargo_build())?;

    // The model stays here for the next demo; your own Hone is not touched.
    let home = workspace.target.join("demo-home");
    steps.run(
        "model",
        Command::new(workspace.binary("hone")).env("HONE_HOME", &home).args(["model", "pull"]),
    )?;

    let results = Results::of(workspace);
    fs::create_dir_all(&results.folder)
        .with_context(|| format!("cannot create {}", results.folder.display()))?;
    let mut rehearse = Command::new(workspace.binary("hone-rehearse"));
    rehearse
        .env("HONE_HOME", &home)
        .arg("--repo")
        .arg(arguments.repo.as_ref().unwrap_or(&workspace.root))
        .args(["--limit", &arguments.limit.to_string(), "--live"])
        .args(["--arm", "frozen", "--arm", "ppo-demo"])
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
    eprintln!("── rehearsal: two daemons, one learns; dim text is the offer");
    print_and_save(&mut rehearse, &results)?;
    eprintln!("Report, curve and transcript: {}", results.folder.display());
    Ok(())
}

/// Runs the command and writes what it prints (the table) to a file as well.
fn print_and_save(command: &mut Command, results: &Results) -> Result<()> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {:?}", command.get_program()))?;
    let mut table = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.context("cannot read what the rehearsal prints")?;
            println!("{line}");
            table.push_str(&line);
            table.push('\n');
        }
    }
    std::io::stdout().flush().context("cannot print")?;
    let status = child.wait().context("cannot wait for the rehearsal")?;
    if !status.success() {
        bail!("step `rehearsal` failed ({status})");
    }
    fs::write(&results.table, table)
        .with_context(|| format!("cannot write {}", results.table.display()))
}
