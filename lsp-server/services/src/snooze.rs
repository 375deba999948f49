//! Completions that are switched off for a while: everywhere, in a file or in a folder. It is kept
//! in memory, so it ends with the daemon at the latest.

use arc_swap::ArcSwap;
use feedback::clock::Clock;
use host::addresses;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What is to be snoozed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Snooze {
    /// Everything for so many seconds, or until the daemon ends.
    Everything { seconds: Option<u64> },
    /// A file, by its path or its URI, until the daemon ends.
    File { path: String },
    /// All files below a folder, until the daemon ends.
    Folder { path: PathBuf },
    /// Nothing any more.
    Nothing,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    everything: Option<End>,
    files: Vec<String>,
    folders: Vec<PathBuf>,
}

/// The end of a snooze of everything. A time is by [`Clock::elapsed_ms`], because a date leaps when
/// somebody sets the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Restart,
    At(u64),
}

/// The end of a snooze, as a person reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Restart,
    /// Milliseconds since the Unix epoch.
    At(u64),
}

/// Files and folders that may be snoozed at a time. The oldest give way.
const NAMES_MAX: usize = 100;

pub struct Snoozes {
    clock: Arc<dyn Clock>,
    state: ArcSwap<State>,
    changed: watch::Sender<()>,
}

impl Snoozes {
    pub fn new(clock: Arc<dyn Clock>) -> Snoozes {
        Snoozes { clock, state: ArcSwap::default(), changed: watch::Sender::new(()) }
    }

    pub fn apply(&self, snooze: &Snooze) {
        self.state.rcu(|state| {
            let mut state = State::clone(state);
            match snooze {
                Snooze::Everything { seconds } => {
                    let end = |seconds: u64| {
                        let ms = seconds.saturating_mul(1000);
                        End::At(self.clock.elapsed_ms().saturating_add(ms))
                    };
                    state.everything = Some(seconds.map_or(End::Restart, end));
                }
                Snooze::File { path } => add(&mut state.files, recorded(path)),
                Snooze::Folder { path } => add(&mut state.folders, path.clone()),
                Snooze::Nothing => state = State::default(),
            }
            state
        });
        self.changed.send_replace(());
    }

    /// Until when nothing is completed in a document as the user types.
    pub fn until(&self, path: &str) -> Option<Until> {
        let state = self.state.load();
        let is_named = || {
            state.files.iter().any(|file| file == path)
                || state.folders.iter().any(|folder| Path::new(path).starts_with(folder))
        };
        self.everything_until().or_else(|| is_named().then_some(Until::Restart))
    }

    /// Returns the end of a snooze of everything, by today's date.
    pub fn everything_until(&self) -> Option<Until> {
        match self.state.load().everything? {
            End::Restart => Some(Until::Restart),
            End::At(_) => {
                let left_ms = self.ends_in()?.as_millis() as u64;
                Some(Until::At(self.clock.unix_ms().saturating_add(left_ms)))
            }
        }
    }

    /// Returns the time that is left of a snooze that ends by itself.
    pub fn ends_in(&self) -> Option<Duration> {
        let End::At(end_ms) = self.state.load().everything? else { return None };
        let left_ms = end_ms.checked_sub(self.clock.elapsed_ms()).filter(|left| *left > 0)?;
        Some(Duration::from_millis(left_ms))
    }

    /// A receiver that is notified of every change.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

impl Until {
    /// The end in a person's words, by the clock of this machine.
    pub fn sentence(self) -> String {
        let Until::At(at_ms) = self else { return "until the daemon ends".into() };
        let at =
            i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        let at =
            at.map(|at| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M").to_string());
        format!("until {}", at.unwrap_or_default())
    }
}

/// The name under which a file is recorded. An address may be that of a notebook's cell.
fn recorded(path: &str) -> String {
    if addresses::is_address(path) { addresses::name(path) } else { path.to_owned() }
}

fn add<T: PartialEq>(names: &mut Vec<T>, name: T) {
    names.retain(|known| *known != name);
    if names.len() == NAMES_MAX {
        names.remove(0);
    }
    names.push(name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::clock::ManualClock;

    #[test]
    fn a_snooze_ends_by_itself_or_when_the_user_says_so() {
        let clock = Arc::new(ManualClock::starting_at(1_000));
        let snoozes = Snoozes::new(clock.clone());
        assert_eq!(snoozes.until("/a.rs"), None);
        snoozes.apply(&Snooze::Everything { seconds: Some(60) });
        assert_eq!(snoozes.until("/a.rs"), Some(Until::At(61_000)));
        assert_eq!(snoozes.ends_in(), Some(Duration::from_secs(60)));
        clock.advance(60_000);
        assert_eq!((snoozes.until("/a.rs"), snoozes.ends_in()), (None, None));
        snoozes.apply(&Snooze::Everything { seconds: None });
        assert_eq!(snoozes.until("/a.rs"), Some(Until::Restart));
        snoozes.apply(&Snooze::Nothing);
        assert_eq!(snoozes.until("/a.rs"), None);
    }

    /// A clock that was set back by an hour made a snooze an hour longer.
    #[test]
    fn a_snooze_lasts_as_long_as_was_asked_whatever_the_date_is() {
        let clock = Arc::new(ManualClock::starting_at(10_000_000));
        let snoozes = Snoozes::new(clock.clone());
        snoozes.apply(&Snooze::Everything { seconds: Some(60) });
        for date in [1, 99_000_000] {
            clock.set_unix_ms(date);
            assert_eq!(snoozes.ends_in(), Some(Duration::from_secs(60)));
            assert_eq!(snoozes.everything_until(), Some(Until::At(date + 60_000)));
        }
        clock.advance(60_000);
        assert_eq!(snoozes.until("/a.rs"), None);
    }

    #[test]
    fn a_file_or_a_folder_can_be_snoozed_alone() {
        let snoozes = Snoozes::new(Arc::new(ManualClock::starting_at(0)));
        snoozes.apply(&Snooze::File { path: "/p/a.rs".into() });
        snoozes.apply(&Snooze::Folder { path: "/q".into() });
        let is_silent = |path| snoozes.until(path).is_some();
        assert!(is_silent("/p/a.rs") && is_silent("/q/deep/b.rs"));
        assert!(!is_silent("/p/b.rs") && !is_silent("/quiet/b.rs"));
        // A cell is recorded under the name of its notebook.
        snoozes.apply(&Snooze::File { path: "vscode-notebook-cell:/p/n.ipynb#W0sZmlsZQ".into() });
        assert!(is_silent("/p/n.ipynb"));
        assert_eq!(snoozes.everything_until(), None);
    }
}
