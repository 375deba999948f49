//! cargo-nextest: runs each test in a process of its own, as `.config/nextest.toml` says.

use crate::editors::Tools;
use crate::hardware;
use crate::junit::Report;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

const PROGRAM: &str = "cargo-nextest";

/// Tests run at a low priority, so that an editor used meanwhile gets a core when it needs one. In
/// CI nobody uses one, and what else the machine does would leave them too little.
const NICE: &str = "10";
const NICE_IN_CI: &str = "0";

/// Installs the pinned version, a built program in a Python package.
pub fn install(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    tools.pip(workspace, "xtask/nextest.txt", "tools: nextest", steps)
}

/// Returns the command that runs all tests of the workspace.
pub fn command(workspace: &Workspace, tools: &Tools) -> Command {
    let cargo = workspace.cargo();
    let mut tests = Command::new("nice");
    let nice = if hardware::is_strict() { NICE_IN_CI } else { NICE };
    tests.args(["-n", nice]).arg(tools.program(PROGRAM)).current_dir(&workspace.root);
    tests.args(["nextest", "run", "--release", "--workspace", "--cargo-quiet"]);
    tests.args(["--profile", profile()]);
    tests.env("CARGO", cargo.get_program()).env("CARGO_TARGET_DIR", &workspace.target);
    tests
}

/// Removes what an earlier run wrote, which would be taken for this run's if no test is run.
pub fn remove_report(workspace: &Workspace) -> Result<()> {
    let path = report_path(workspace);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())
        }
        _ => Ok(()),
    }
}

/// Reads what the last run wrote.
pub fn report(workspace: &Workspace) -> Result<Report> {
    let path = report_path(workspace);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Report::parse(&text).with_context(|| path.display().to_string())
}

fn report_path(workspace: &Workspace) -> PathBuf {
    workspace.target.join("nextest").join(profile()).join("junit.xml")
}

/// Returns the profile of `.config/nextest.toml`. Only CI repeats a test that failed.
fn profile() -> &'static str {
    if hardware::is_strict() { "ci" } else { "default" }
}
