//! Daemons in a row that ended before anybody could use them: when the next is not started any
//! more, and what the user is told.

use super::killed::Killed;
use super::loading;
use host::paths::Paths;
use host::platform::process::signal;
use std::process::ExitStatus;

/// The number of daemons in a row that may end before one answers. The next would not stay either.
pub const LIMIT: u32 = 5;

/// Why no further daemon is started, in one line for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct GivenUp(String);

/// The daemons in a row that ended unused.
#[derive(Debug, Default)]
pub struct Ends {
    count: u32,
    /// The signal that ended the last one that this process has started.
    signal: Option<i32>,
}

impl Ends {
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Counts one more. The status is known of a daemon that this process has started.
    ///
    /// # Errors
    /// There were as many as [`LIMIT`].
    pub fn add(&mut self, home: &Paths, status: Option<ExitStatus>) -> Result<(), GivenUp> {
        self.count += 1;
        self.signal = status.and_then(signal).or(self.signal);
        if self.count < LIMIT {
            return Ok(());
        }
        let note = loading::killed(home);
        Err(GivenUp(match (self.signal, note) {
            (None, None) => format!(
                "{}: {LIMIT} daemons in a row ended before they could be used; this log says why",
                home.daemon_log().display()
            ),
            (signal, note) => {
                let model = note.and_then(|note| note.model);
                Killed { times: self.count, signal, model }.to_string()
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemons_that_end_are_given_up_with_what_is_known() {
        let (_folder, home) = fixtures::home();
        let given_up = |status: Option<ExitStatus>| {
            let mut ends = Ends::default();
            for _ in 1..LIMIT {
                ends.add(&home, status).unwrap();
            }
            ends.add(&home, status).unwrap_err().to_string()
        };
        assert!(given_up(None).ends_with("this log says why"), "{}", given_up(None));
        std::fs::write(home.loading_note(), r#"{"model":"a-7b","died_before":4}"#).unwrap();
        let told = given_up(None);
        assert!(told.starts_with("5 daemons in a row were killed while a-7b was loaded"), "{told}");
        assert!(told.contains("want of memory") && told.contains("`hone model use`"), "{told}");
        #[cfg(unix)]
        {
            use std::os::unix::process::ExitStatusExt;
            let told = given_up(Some(ExitStatus::from_raw(9)));
            assert!(told.contains("killed (signal 9) while a-7b was loaded, perhaps"), "{told}");
            let told = given_up(Some(ExitStatus::from_raw(4)));
            assert!(told.contains("(signal 4)") && !told.contains("memory"), "{told}");
        }
        assert!(!told.contains('\n'));
    }
}
