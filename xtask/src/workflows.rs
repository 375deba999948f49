//! The workflows of GitHub, which nothing can run here: actionlint checks their form, and zizmor
//! what an attacker could make of them.

use crate::editors::Tools;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;

const FOLDER: &str = ".github/workflows";

pub fn check(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    tools.pip(workspace, "xtask/workflows.txt", "actionlint, zizmor", steps)?;
    let files = files(workspace)?;
    let mut actionlint = tools.command("actionlint");
    steps.run("workflows: form", actionlint.current_dir(&workspace.root).args(&files))?;
    let mut zizmor = tools.command("zizmor");
    zizmor.current_dir(&workspace.root);
    // Without the network, and with its strictest rules.
    zizmor.args(["--offline", "--quiet", "--persona", "pedantic", "--config"]);
    zizmor.arg(".github/zizmor.yml").args(&files);
    steps.run("workflows: attacks", &mut zizmor)
}

/// The workflows, relative to the repository: what the two programs print names them so.
fn files(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(workspace.root.join(FOLDER)).context(FOLDER)?;
    let mut files = vec![];
    for entry in entries {
        files.push(PathBuf::from(FOLDER).join(entry?.file_name()));
    }
    files.sort();
    ensure!(!files.is_empty(), "{FOLDER} holds no workflow");
    Ok(files)
}
