//! The package `team`: its tests, with the real Flower, the real `hone` and a real model.

use crate::editors::Tools;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::Result;
use std::path::Path;

/// Installs the package and what it depends on, in the pinned versions, into a virtual environment
/// of its own.
pub fn install(workspace: &Workspace, steps: &mut Steps) -> Result<Tools> {
    let venv = Tools::in_folder(workspace, "team-venv", steps)?;
    let mut pip = venv.command("python");
    pip.args(["-m", "pip", "install", "--quiet"]).arg(workspace.root.join("team"));
    steps.run("team: Flower", &mut pip)?;
    Ok(venv)
}

/// Runs the tests. The programs and the models must be there.
pub fn test(workspace: &Workspace, venv: &Tools, steps: &mut Steps, models: &Path) -> Result<()> {
    let mut python = venv.command("python");
    python
        .args(["-m", "unittest", "discover", "--buffer"])
        .args(["--start-directory", "tests", "--top-level-directory", "."])
        .current_dir(workspace.root.join("team"))
        .env("HONE_BIN", workspace.binary("hone"))
        .env("HONE_TEST_MODELS", models);
    steps.run("team: tests", &mut python)
}
