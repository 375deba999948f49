//! `cargo xtask test`: exactly what CI runs. Sequences of steps run side by side. One compiles and
//! tests the Rust code, which keeps all cores busy. The others fetch tools, drive editors and let a
//! team learn, and mostly wait.

use crate::docs;
use crate::editors::{self, Tools};
use crate::hardware;
use crate::layers;
use crate::lints::with_lints;
use crate::mirror;
use crate::packages;
use crate::step::{self, Steps};
use crate::supply;
use crate::team;
use crate::versions;
use crate::workflows;
use crate::workspace::Workspace;
use anyhow::{Result, anyhow};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, ScopedJoinHandle};

/// The default model, and the small one that most end-to-end tests use.
const MODELS: [Option<&str>; 2] = [None, Some("smollm2-135m")];

/// Tests run at a low priority, so that an editor beside them gets a core when it needs one.
const NICE: &str = "10";

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
        packages::ensure_for_tests()?;
    }
    packages::ensure_for_extension()?;
    if !arguments.no_editors {
        packages::ensure_for_editors()?;
    }
    Steps::with_times(|steps| run_steps(workspace, arguments, steps))
}

fn run_steps(workspace: &Workspace, arguments: &Arguments, steps: &mut Steps) -> Result<()> {
    steps.run("format", workspace.cargo().args(["fmt", "--all", "--check"]))?;
    steps.check("layers", || layers::run(workspace))?;
    steps.check("versions", || versions::check(&workspace.root))?;
    let (prepared, built) = thread::scope(|scope| {
        let beside = steps.beside();
        let tools = scope.spawn(move || prepare(workspace, arguments, beside));
        let models = build(workspace, steps);
        (join(tools), models)
    });
    let (tools, models) = match (prepared, built) {
        (Ok(tools), Ok(models)) => (tools, models),
        (prepared, built) => return step::both(prepared.map(drop), built.map(drop)),
    };
    thread::scope(|scope| {
        let (beside, mut for_team) = (steps.beside(), steps.beside());
        let (tools, models) = (&tools, &models);
        let stories = scope.spawn(move || stories(workspace, arguments, beside, tools, models));
        // It waits for Flower most of the time.
        let team = scope.spawn(move || team::test(workspace, &mut for_team, models));
        let tested = test(workspace, steps, models);
        step::both(tested, step::both(join(stories), join(team)))
    })
}

fn join<T>(thread: ScopedJoinHandle<Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))
}

/// Installs tools, and runs the checks that need no program of ours.
fn prepare(workspace: &Workspace, arguments: &Arguments, mut steps: Steps) -> Result<Tools> {
    let tools = Tools::install(workspace, &mut steps)?;
    supply::check(workspace, &tools, &mut steps)?;
    workflows::check(workspace, &tools, &mut steps)?;
    docs::check(workspace, &tools, &mut steps)?;
    editors::check(workspace, &tools, &mut steps)?;
    team::install(workspace, &mut steps)?;
    if !arguments.no_editors {
        editors::install(workspace, &tools, &mut steps)?;
    }
    Ok(tools)
}

/// Compiles everything once, with lints, and fetches the models; answers their folder. All
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

fn test(workspace: &Workspace, steps: &mut Steps, models: &Path) -> Result<()> {
    let cargo = workspace.cargo();
    let mut tests = Command::new("nice");
    tests.args(["-n", NICE]).arg(cargo.get_program()).current_dir(&workspace.root);
    tests.args(["test", "--release", "--workspace", "--no-fail-fast"]);
    tests.env("CARGO_TARGET_DIR", &workspace.target).env("HONE_TEST_MODELS", models);
    let missing = hardware::missing();
    if !missing.is_empty() {
        eprintln!("this machine is without {missing}: those tests are left out");
    }
    tests.env("HONE_TEST_WITHOUT", missing);
    steps.run("tests", with_lints(workspace, &mut tests)?)?;
    // This feature needs neither a GPU nor CUDA to build, and its test emulates one.
    let mut cuda = workspace.cargo();
    cuda.args(["test", "--release", "--workspace", "--test", "gpu"]);
    cuda.args(["--features", "parity/cuda"]);
    cuda.env("HONE_TEST_WITHOUT", hardware::missing());
    steps.run("tests (cuda)", with_lints(workspace, &mut cuda)?)
}

fn stories(
    workspace: &Workspace,
    arguments: &Arguments,
    mut steps: Steps,
    tools: &Tools,
    models: &Path,
) -> Result<()> {
    docs::check_generated(workspace, &mut steps)?;
    editors::settings(workspace, tools, &mut steps)?;
    if !arguments.no_editors {
        editors::stories(workspace, tools, &mut steps, models)?;
    }
    Ok(())
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
