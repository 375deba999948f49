//! `cargo xtask test`: exactly what CI runs, in the same order.

use crate::editors;
use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use std::process::Command;

/// The default model, and the small one that most end-to-end tests use.
const MODELS: [Option<&str>; 2] = [None, Some("smollm2-135m")];

#[derive(Args)]
pub struct Arguments {
    /// Also play a user's stories in a real Neovim (in tmux) and a real VS Code
    /// (code-server in Chromium): six more minutes, half a gigabyte of downloads
    #[arg(long)]
    editors: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
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
    editors::check(workspace, &mut steps)?;
    steps.run("build", &mut workspace.cargo_build())?;
    let home = workspace.target.join("test-home");
    for model in MODELS {
        let name = format!("model {}", model.unwrap_or("(default)"));
        let mut pull = Command::new(workspace.binary("hone"));
        pull.env("HONE_HOME", &home).args(["model", "pull"]).args(model);
        steps.run(&name, &mut pull)?;
    }
    steps.run(
        "tests",
        workspace
            .cargo()
            .args(["test", "--release", "--workspace"])
            .env("HONE_TEST_MODELS", home.join("models")),
    )?;
    if arguments.editors {
        editors::stories(workspace, &mut steps, &home.join("models"))?;
    }
    steps.print();
    Ok(())
}
