//! `hone pause` and `hone resume`. What is paused for good is a setting, which only `config.toml`
//! holds. Completions can also be paused for a while, which the running daemon keeps in memory.

use crate::cli::config;
use crate::daemon::client;
use crate::daemon::handshake::Command;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use host::paths::Paths;
use jiff::{SignedDuration, Span};
use services::snooze::Snooze;

/// The longest time that completions can be paused for a while, in hours.
const HOURS_MAX: i64 = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum What {
    /// Updates; what you accept and reject is still recorded
    Learning,
    /// Suggestions as you type; those that you invoke are still answered
    Completions,
}

#[derive(clap::Args)]
pub struct PauseArgs {
    /// What to pause; learning if left out
    #[arg(value_enum, default_value = "learning")]
    what: Vec<What>,
    /// Pause completions for this long, such as `30m` or `1h`, and not for good
    #[arg(long = "for", value_name = "TIME")]
    time: Option<String>,
}

#[derive(clap::Args)]
pub struct ResumeArgs {
    /// What to resume; learning if left out
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

    /// Returns what is told once it is done. Neovim shows it in one line of 80 columns.
    fn told(self, enabled: bool) -> &'static str {
        match (self, enabled) {
            (What::Learning, true) => "learning continues",
            (What::Learning, false) => "learning is paused until `hone resume`",
            (What::Completions, true) => "completions are offered as you type",
            (What::Completions, false) => "completions are paused until `hone resume completions`",
        }
    }
}

pub async fn pause(home: &Paths, args: PauseArgs) -> Result<()> {
    let Some(time) = args.time else { return set(home, args.what, false).await };
    ensure!(
        args.what == [What::Completions],
        "only completions can be paused for a while: `hone pause completions --for {time}`"
    );
    let seconds = seconds(&time)?;
    let snooze = Snooze::Everything { seconds: Some(seconds) };
    if client::ask(home, Command::Snooze { snooze }).await? {
        say!("completions are paused for {time}, or until `hone resume completions`")?;
    } else {
        say!("no daemon runs, so nothing is completed; an editor with Hone starts it")?;
    }
    Ok(())
}

pub async fn resume(home: &Paths, args: ResumeArgs) -> Result<()> {
    if args.what.contains(&What::Completions) {
        client::ask(home, Command::Snooze { snooze: Snooze::Nothing }).await?;
    }
    set(home, args.what, true).await
}

async fn set(home: &Paths, mut what: Vec<What>, enabled: bool) -> Result<()> {
    what.sort();
    what.dedup();
    for what in what {
        config::change(home, what.key(), Some(&enabled.into())).await?;
        say!("{}", what.told(enabled))?;
    }
    Ok(())
}

/// Returns what `--for` says, in seconds.
fn seconds(text: &str) -> Result<u64> {
    let advice = || format!("--for {text}: say a time such as `30m` or `1h`");
    let span: Span = text.parse().ok().with_context(advice)?;
    let time = SignedDuration::try_from(span).ok().with_context(advice)?;
    ensure!(
        time > SignedDuration::ZERO && time <= SignedDuration::from_hours(HOURS_MAX),
        "--for {text}: say a time of at most {HOURS_MAX} hours; without --for they are paused for \
         good"
    );
    Ok(time.as_secs().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_with_its_unit() {
        assert_eq!(seconds("30m").unwrap(), 1_800);
        assert_eq!(seconds("1h 30m").unwrap(), 5_400);
        for wrong in ["30", "soon", "-5m", "0s", "25h", "2d"] {
            let error = seconds(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--for {wrong}: say a time")), "{error}");
        }
    }
}
