//! `cargo xtask bench places`: which of several candidates is the best one, at places of real
//! commits.

use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::path::PathBuf;
use std::process::Command;

#[derive(Args)]
pub struct Arguments {
    /// Try choices on the places of a file, which takes a second, and compute none
    #[arg(long, value_name = "FILE")]
    choose: Option<PathBuf>,
    /// A repository on whose places the weights are fitted; may be given several times
    #[arg(long, value_name = "NAME")]
    tuning: Vec<String>,
    /// A repository to draw places from; may be given several times
    #[arg(long, value_name = "DIR", required_unless_present = "choose")]
    repository: Vec<PathBuf>,
    /// The author of each repository's commits, in the same order
    #[arg(long, value_name = "TEXT")]
    author: Vec<String>,
    /// Only commits from this day on
    #[arg(long, value_name = "YYYY-MM-DD")]
    since: Option<String>,
    /// Places of each repository
    #[arg(long, default_value_t = 100, value_name = "N")]
    places: usize,
    /// A model from `hone model list`
    #[arg(long, default_value = "qwen2.5-coder-0.5b", value_name = "NAME")]
    model: String,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut steps = super::build(workspace)?;
    let mut lab = Command::new(workspace.binary("hone-lab"));
    lab.arg("places");
    for name in &arguments.tuning {
        lab.args(["--tuning", name]);
    }
    if let Some(file) = &arguments.choose {
        lab.arg("--choose").arg("--places-file").arg(file);
    } else {
        let model = super::pull(workspace, &mut steps, Some(&arguments.model))?;
        let folder = workspace.target.join("bench").join("places");
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let file = folder.join("places.jsonl");
        eprintln!("   the places are kept in {}", file.display());
        lab.arg("--places-file").arg(file).arg("--model").arg(model);
        for repository in &arguments.repository {
            lab.arg("--repository").arg(repository);
        }
        for author in &arguments.author {
            lab.args(["--author", author]);
        }
        if let Some(since) = &arguments.since {
            lab.args(["--since", since]);
        }
        lab.args(["--places", &arguments.places.to_string()]);
    }
    let status = lab.status().context("cannot run hone-lab")?;
    ensure!(status.success(), "the measurement failed ({status})");
    Ok(())
}
