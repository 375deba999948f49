//! `hone pause` and `hone resume`, for the running daemon and for later ones. What is paused is
//! a setting, and only `config.toml` holds it.

use crate::cli::config;
use crate::paths::Paths;
use anyhow::Result;
use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum What {
    /// Updates; what you accept and reject is still recorded
    Learning,
    /// Suggestions as you type; those that you invoke are still answered
    Completions,
}

#[derive(clap::Args)]
pub struct PauseArgs {
    /// What to pause or resume; learning if left out
    #[arg(value_enum, default_value = "learning")]
    what: Vec<What>,
}

impl What {
    fn key(self) -> &'static str {
        match self {
            What::Learning => "learning.enabled",
            What::Completions => "completion.enabled",
        }
    }

    fn told(self, enabled: bool) -> &'static str {
        match (self, enabled) {
            (What::Learning, true) => "learning goes on",
            (What::Learning, false) => {
                "learning is paused; what you accept and reject is still recorded"
            }
            (What::Completions, true) => "completions are offered as you type",
            (What::Completions, false) => {
                "completions are paused; those that you invoke are still answered"
            }
        }
    }
}

pub async fn set(home: &Paths, args: PauseArgs, enabled: bool) -> Result<()> {
    let mut what = args.what;
    what.sort();
    what.dedup();
    for what in what {
        config::change(home, what.key(), Some(&enabled.into())).await?;
        say!("{}", what.told(enabled))?;
    }
    Ok(())
}
