//! `cargo xtask smoke`: one completion on what is not tested otherwise, because
//! few machines have it.

use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Answers within seconds whatever computes it.
const MODEL: &str = "smollm2-135m";

#[derive(clap::Args)]
pub struct Arguments {
    /// What to build for: cuda, vulkan or metal
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
    // What stands where everybody looks for it is the one without.
    steps.run("build without it", workspace.cargo_build().args(["--bins", "--examples"]))?;
    complete(workspace, &workspace.target.join("release"), &hone, feature, &mut steps)?;
    steps.print();
    Ok(())
}

/// One completion by `hone`, with an example of `release`; its backend's name must
/// hold `backend`, in whatever case.
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
