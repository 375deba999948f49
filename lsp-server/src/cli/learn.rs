//! `hone learn`: an update now, or what the history of a repository teaches.

mod history;
mod progress;

use crate::daemon::client;
use crate::daemon::handshake::Command;
use anyhow::{Context, Result, bail};
use host::paths::Paths;
use serde_json::Value;
use std::path::PathBuf;
use tokio::io::AsyncReadExt;

#[derive(Debug, clap::Args)]
pub struct LearnArgs {
    /// Learn from the last 1,000 commits of the git repository in this folder [default: the
    /// current folder]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    history: Option<PathBuf>,
    /// Only commits whose author's name or mail address contains this text
    #[arg(long, value_name = "TEXT", requires = "history")]
    author: Option<String>,
    /// Say how far it is for programs, in the place of the bar: one JSON object a line on stdout,
    /// {"percent", "doing"}, and then what came of it
    #[arg(long, requires = "history")]
    progress: bool,
}

pub async fn run(home: &Paths, args: LearnArgs) -> Result<()> {
    match args.history {
        None => from_labels(home).await,
        Some(folder) => {
            let asked = history::Asked { folder, author: args.author };
            history::learn(home, asked, args.progress).await
        }
    }
}

async fn from_labels(home: &Paths) -> Result<()> {
    let mut connection = client::connect_settled(home, Command::Learn)
        .await?
        .context("no daemon is running; open an editor, or run `hone serve`")?;
    let mut text = String::new();
    connection.read.read_to_string(&mut text).await?;
    let answer: Value = serde_json::from_str(&text)?;
    if let Some(reason) = answer["error"].as_str() {
        bail!("{reason}");
    }
    match answer["waiting"].as_u64().unwrap_or(0) {
        0 => say!("nothing to learn from yet: no labelled offer waits")?,
        waiting => {
            let labels = printable::count(waiting, "label");
            say!("learning from {labels}; follow it with `hone status`")?;
        }
    }
    Ok(())
}
