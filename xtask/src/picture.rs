//! `cargo xtask picture`: the README's moving picture of VS Code. It is recorded
//! from a real editor with the real server and the default model.

use crate::editors::{self, Tools};
use crate::packages;
use crate::step::Steps;
use crate::suite;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;

/// Where the picture lies in the repository.
const PICTURE: &str = "docs/book/src/pictures/vscode.webp";

pub fn run(workspace: &Workspace) -> Result<()> {
    packages::ensure()?;
    packages::ensure_for_extension()?;
    packages::ensure_for_picture()?;
    let mut steps = Steps::default();
    steps.run("build", &mut workspace.cargo_build())?;
    let models = suite::fetch_models(workspace, &mut steps)?;
    let tools = Tools::install(workspace, &mut steps)?;
    editors::node_modules(workspace, &tools, &mut steps)?;

    let picture = workspace.root.join(PICTURE);
    let folder = picture.parent().context("the picture has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    editors::install_vscode(workspace, &tools, &mut steps)?;
    let mut record = editors::vscode(workspace, &tools, &models, "picture");
    steps.run("VS Code: the picture", record.arg(&picture))?;
    steps.print();
    Ok(())
}
