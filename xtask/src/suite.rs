//! `cargo xtask test`: exactly what CI runs. While everything is compiled, tools are fetched and
//! what needs no program of ours is checked. Then the Rust tests run, and Flower at the same time,
//! because a team waits most of the time. The editors come last and alone: a user's keys and pauses
//! are real, and what else runs would change what a story sees.

use crate::docs;
use crate::editors::{self, Tools};
use crate::hardware;
use crate::layers;
use crate::lints::with_lints;
use crate::mirror;
use crate::nextest;
use crate::packages;
use crate::step::{self, Steps};
use crate::summary;
use crate::supply;
use crate::team;
use crate::versions;
use crate::workflows;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// The default model, and the small one that most end-to-end tests use.
const MODELS: [Option<&str>; 2] = [None, Some("smollm2-135m")];

/// The folder in the target folder for what the steps print, and for the lists of tests.
const REPORTS: &str = "test-reports";

#[derive(Args)]
pub struct Arguments {
    /// Leave out a user's stories in two real Neovims (in tmux) and a real VS Code
    /// (code-server in Chromium): they need Debian, half a gigabyte of downloads
    /// and some minutes
    #[arg(long)]
    no_editors: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
    if hardware::is_strict() {
        packages::ensure_all(packages::TESTS)?;
    }
    packages::ensure_all(packages::PYTHON)?;
    if !arguments.no_editors {
        packages::ensure_all(packages::EDITORS)?;
    }
    let reports = workspace.target.join(REPORTS);
    let mut steps = Steps::with_logs(&reports)?;
    nextest::remove_report(workspace)?;
    let result = run_steps(workspace, arguments, &mut steps);
    summary::print(workspace, &reports, &steps)?;
    let (failed, _) = steps.failures();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    result
}

/// Runs every step that can be run, also after others have failed, and returns a failure.
fn run_steps(workspace: &Workspace, arguments: &Arguments, steps: &mut Steps) -> Result<()> {
    let read = [
        steps.run("format", workspace.cargo().args(["fmt", "--all", "--check"])),
        steps.check("layers", || layers::run(workspace)),
        steps.check("versions", || versions::check(&workspace.root)),
    ];
    let (prepared, built) = thread::scope(|scope| {
        let concurrent = steps.concurrent();
        let prepared = scope.spawn(move || prepare(workspace, arguments, concurrent));
        let models = build(workspace, steps);
        (step::join(prepared), models)
    });
    let (prepared, models) = (prepared?, built?);
    let tested = thread::scope(|scope| {
        let mut concurrent = steps.concurrent();
        let (prepared, models) = (&prepared, &models);
        let team = scope.spawn(move || match &prepared.team {
            Ok(venv) => team::test(workspace, venv, &mut concurrent, models),
            // That it could not be installed is a failure of its own.
            Err(_) => Ok(()),
        });
        let tested = test(workspace, prepared, steps, models);
        step::all([tested, step::join(team)])
    });
    let played = stories(workspace, &prepared, steps, &models);
    step::all(read.into_iter().chain([tested, played, prepared.checked, prepared.team.map(drop)]))
}

/// What was installed while everything was compiled.
struct Prepared {
    tools: Tools,
    team: Result<Tools>,
    /// None if they are left out.
    editors: Option<Result<()>>,
    checked: Result<()>,
}

/// Installs tools, and runs the checks that need no program of ours.
fn prepare(workspace: &Workspace, arguments: &Arguments, mut steps: Steps) -> Result<Prepared> {
    let tools = Tools::install(workspace, &mut steps)?;
    nextest::install(workspace, &tools, &mut steps)?;
    let checked = step::all([
        supply::check(workspace, &tools, &mut steps),
        workflows::check(workspace, &tools, &mut steps),
        docs::check(workspace, &tools, &mut steps),
        editors::check(workspace, &tools, &mut steps),
    ]);
    let team = team::install(workspace, &mut steps);
    let with_editors = !arguments.no_editors;
    let editors = with_editors.then(|| editors::install(workspace, &tools, &mut steps));
    Ok(Prepared { tools, team, editors, checked })
}

/// Compiles everything once, with lints, fetches the models, and returns their folder. All
/// steps use the release profile, because numerics are too slow without optimisation, and
/// because one profile compiles the dependencies once.
fn build(workspace: &Workspace, steps: &mut Steps) -> Result<PathBuf> {
    let mut all = workspace.cargo();
    all.args(["build", "--release", "--workspace", "--all-targets"]);
    steps.run("build and lints", with_lints(workspace, &mut all)?)?;
    // As users build them: without the features that only tests ask for.
    steps.run("programs", with_lints(workspace, &mut workspace.cargo_build())?)?;
    fetch_models(workspace, steps)
}

fn test(
    workspace: &Workspace,
    prepared: &Prepared,
    steps: &mut Steps,
    models: &Path,
) -> Result<()> {
    let missing = hardware::missing();
    if !missing.is_empty() {
        eprintln!("this machine is without {missing}: those tests are left out");
    }
    let mut tests = nextest::command(workspace, &prepared.tools);
    tests.env("HONE_TEST_MODELS", models).env("HONE_TEST_WITHOUT", &missing);
    let mut examples = workspace.cargo();
    examples.args(["test", "--release", "--workspace", "--doc", "--quiet"]);
    // This feature needs neither a GPU nor CUDA to build, and its test emulates one.
    let mut cuda = workspace.cargo();
    cuda.args(["test", "--release", "--workspace", "--test", "gpu"]);
    // The learner is compiled a second time for it, and this run is short.
    cuda.args(["--config", "profile.release.package.learner.opt-level=1"]);
    cuda.args(["--features", "parity/cuda"]).env("HONE_TEST_WITHOUT", &missing);
    step::all([
        steps.show("tests", with_lints(workspace, &mut tests)?),
        steps.run("tests (examples in the documentation)", with_lints(workspace, &mut examples)?),
        steps.run("tests (cuda)", with_lints(workspace, &mut cuda)?),
    ])
}

fn stories(
    workspace: &Workspace,
    prepared: &Prepared,
    steps: &mut Steps,
    models: &Path,
) -> Result<()> {
    let tools = &prepared.tools;
    let generated = docs::check_generated(workspace, steps);
    let extension = editors::test(workspace, tools, steps);
    let played = match &prepared.editors {
        Some(Ok(())) => step::all([
            editors::npm(workspace, tools, steps, models),
            editors::stories(workspace, tools, steps, models),
        ]),
        // That they could not be installed is a failure of its own.
        Some(Err(_)) | None => Ok(()),
    };
    step::all([generated, extension, played])
}

/// The folder with the models that tests use.
pub fn fetch_models(workspace: &Workspace, steps: &mut Steps) -> Result<PathBuf> {
    let home = workspace.target.join("test-home");
    mirror::prepare(&home)?;
    for model in MODELS {
        let name = format!("model {}", model.unwrap_or("(default)"));
        let mut pull = Command::new(workspace.binary("hone"));
        pull.env("HONE_HOME", &home).args(["model", "pull"]).args(model);
        steps.run(&name, &mut pull)?;
    }
    Ok(home.join("models"))
}
