//! `cargo xtask test`: exactly what CI runs, in the same order.

use crate::editors;
use crate::packages;
use crate::step::Steps;
use crate::supply;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use std::process::Command;

/// The default model, and the small one that most end-to-end tests use.
const MODELS: [Option<&str>; 2] = [None, Some("smollm2-135m")];

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
    packages::ensure_for_extension()?;
    if !arguments.no_editors {
        packages::ensure_for_editors()?;
    }
    let mut steps = Steps::default();
    steps.run("format", workspace.cargo().args(["fmt", "--all", "--check"]))?;
    // The release profile throughout: one set of artifacts, and numerics at speed.
    steps.run(
        "lints",
        workspace
            .cargo()
            .args(["clippy", "--release", "--workspace", "--all-targets"])
            .args(["--", "-D", "warnings"]),
    )?;
    // Needs no GPU and no CUDA to build.
    steps.run(
        "lints (cuda)",
        workspace
            .cargo()
            .args(["clippy", "--release", "--package", "learner", "--features", "cuda"])
            .args(["--all-targets", "--", "-D", "warnings"]),
    )?;
    let tools = editors::Tools::install(workspace, &mut steps)?;
    supply::check(workspace, &tools, &mut steps)?;
    editors::check(workspace, &tools, &mut steps)?;
    steps.run("build", &mut workspace.cargo_build())?;
    editors::settings(workspace, &tools, &mut steps)?;
    let models = fetch_models(workspace, &mut steps)?;
    steps.run(
        "tests",
        workspace
            .cargo()
            .args(["test", "--release", "--workspace"])
            .env("HONE_TEST_MODELS", &models),
    )?;
    if !arguments.no_editors {
        editors::stories(workspace, &tools, &mut steps, &models)?;
    }
    steps.print();
    Ok(())
}

/// The folder with the models that tests use.
pub fn fetch_models(workspace: &Workspace, steps: &mut Steps) -> Result<PathBuf> {
    let home = workspace.target.join("test-home");
    for model in MODELS {
        let name = format!("model {}", model.unwrap_or("(default)"));
        let mut pull = Command::new(workspace.binary("hone"));
        pull.env("HONE_HOME", &home).args(["model", "pull"]).args(model);
        steps.run(&name, &mut pull)?;
    }
    Ok(home.join("models"))
}
