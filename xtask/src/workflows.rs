//! The workflows of GitHub, which nothing can run here: actionlint checks their form, and zizmor
//! what an attacker could make of them.

use crate::editors::Tools;
use crate::files;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};

const FOLDER: &str = ".github/workflows";

pub fn check(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    tools.pip(workspace, "xtask/workflows.txt", "actionlint, zizmor", steps)?;
    // Relative to the repository: what the two programs print names them so.
    let name = |path: PathBuf| Path::new(FOLDER).join(files::name(&path));
    let all: Vec<_> = files::list(&workspace.root.join(FOLDER))?.into_iter().map(name).collect();
    ensure!(!all.is_empty(), "{FOLDER} holds no workflow");
    let mut actionlint = tools.command("actionlint");
    steps.run("workflows: form", actionlint.current_dir(&workspace.root).args(&all))?;
    let mut zizmor = tools.command("zizmor");
    zizmor.current_dir(&workspace.root);
    // Without the network, and with its strictest rules.
    zizmor.args(["--offline", "--quiet", "--persona", "pedantic", "--config"]);
    zizmor.arg(".github/zizmor.yml").args(&all);
    steps.run("workflows: attacks", &mut zizmor)
}
