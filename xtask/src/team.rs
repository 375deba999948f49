//! The package `team`: its tests, with the real Flower, the real `hone` and a real model.

use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs the package and what it depends on, in the pinned versions, into a virtual environment
/// of its own.
pub fn install(workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    let venv = venv(workspace);
    if !venv.join("bin/python").exists() {
        let mut create = Command::new("python3");
        steps.run("team: a virtual environment", create.args(["-m", "venv"]).arg(&venv))?;
    }
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet"]).arg(workspace.root.join("team"));
    steps.run("team: Flower", &mut pip)
}

/// Runs the tests. The programs and the models must be there.
pub fn test(workspace: &Workspace, steps: &mut Steps, models: &Path) -> Result<()> {
    let mut python = Command::new(venv(workspace).join("bin/python"));
    python
        .args(["-m", "unittest", "discover", "--buffer"])
        .args(["--start-directory", "tests", "--top-level-directory", "."])
        .current_dir(workspace.root.join("team"))
        .env("HONE_BIN", workspace.binary("hone"))
        .env("HONE_TEST_MODELS", models);
    steps.run("team: tests", &mut python)
}

fn venv(workspace: &Workspace) -> PathBuf {
    workspace.target.join("team-venv")
}
