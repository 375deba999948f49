//! `cargo xtask smoke`: one completion on a GPU backend. The tests do not cover these backends,
//! because few machines have them.

use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// It answers within seconds on any backend.
const MODEL: &str = "smollm2-135m";

#[derive(clap::Args)]
pub struct Arguments {
    /// The backend: cuda, vulkan or metal
    #[arg(value_parser = ["cuda", "vulkan", "metal"])]
    feature: String,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
    let mut steps = Steps::default();
    let feature = &arguments.feature;
    let mut build = workspace.cargo_build();
    build.args(["--bins", "--examples", "--features", &format!("hone/{feature}")]);
    steps.run(&format!("build for {feature}"), &mut build)?;
    let hone = workspace.target.join(format!("hone-{feature}"));
    fs::copy(workspace.binary("hone"), &hone).with_context(|| hone.display().to_string())?;
    // The usual place keeps the program without this feature.
    steps.run("build without it", workspace.cargo_build().args(["--bins", "--examples"]))?;
    complete(workspace, &workspace.target.join("release"), &hone, feature, &mut steps)?;
    steps.print();
    Ok(())
}

/// Runs one completion by `hone`, with an example of the folder `release`. The name of its
/// backend must contain `backend`, in upper or lower case.
pub fn complete(
    workspace: &Workspace,
    release: &Path,
    hone: &Path,
    backend: &str,
    steps: &mut Steps,
) -> Result<()> {
    let home = workspace.target.join("test-home");
    let mut pull = Command::new(hone);
    steps.run("model", pull.env("HONE_HOME", &home).args(["model", "pull", MODEL]))?;
    let mut smoke = Command::new(release.join("examples/smoke"));
    smoke.arg("--hone").arg(hone).arg("--models").arg(home.join("models"));
    steps.run("one completion", smoke.args(["--model", MODEL, "--backend", backend]))
}
