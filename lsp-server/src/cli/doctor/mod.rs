//! `hone doctor`: what is here, what is wrong with it, and what to do about it. What it prints
//! can be pasted into a public report: it has no code, no name of the user, and no path but those
//! of Hone and of the editors' own folders.

mod api;
mod editors;
mod files;
mod machine;
mod model;
mod public;
mod screen;

use crate::cli::settings::Configured;
use crate::cli::surroundings::Surroundings;
use crate::cli::{ToldAlready, inspect, output};
use anyhow::Result;
use host::paths::Paths;
use public::Public;
use report::status::Status;
use serde::Serialize;
use std::time::Duration;

/// The time in which a running daemon must answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub struct DoctorArgs {
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// How one thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Good,
    /// Worth a look. Hone works all the same.
    Note,
    Wrong,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub state: State,
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    pub fn good(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, state: State::Good, found: found.into(), fix: None }
    }

    pub fn note(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name, state: State::Note, found: found.into(), fix: Some(fix.into()) }
    }

    pub fn wrong(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name, state: State::Wrong, found: found.into(), fix: Some(fix.into()) }
    }

    /// The same in words that may be made public.
    fn published(self, public: &Public) -> Check {
        let fix = self.fix.map(|fix| public.text(&fix));
        Check { found: public.text(&self.found), fix, ..self }
    }
}

/// What the doctor found.
#[derive(Debug, Serialize)]
pub struct Report {
    pub hone: &'static str,
    pub system: String,
    /// True if nothing is wrong.
    pub ok: bool,
    pub checks: Vec<Check>,
}

impl Report {
    fn count(&self, state: State) -> usize {
        self.checks.iter().filter(|check| check.state == state).count()
    }
}

/// What several checks look at.
struct Patient<'a> {
    home: &'a Paths,
    around: Surroundings,
    configured: Configured,
    /// The status, from the daemon or from the files; or why there is none.
    status: Result<Status, String>,
}

pub async fn run(home: &Paths, args: DoctorArgs) -> Result<()> {
    let around = Surroundings::of_process();
    let public = Public::new(home, &around);
    let status = tokio::time::timeout(ANSWER_LIMIT, inspect::current(home)).await;
    let status = match status {
        Ok(status) => status.map_err(|error| format!("{error:#}")),
        Err(_) => Err(machine::NO_ANSWER.into()),
    };
    let patient = Patient { home, around, configured: Configured::read(home), status };
    let checks = checks(&patient).await;
    let checks: Vec<_> = checks.into_iter().map(|check| check.published(&public)).collect();
    let ok = checks.iter().all(|check| check.state != State::Wrong);
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let report = Report { hone: env!("CARGO_PKG_VERSION"), system, ok, checks };
    if args.json {
        emit!("{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        say!("{}", screen::screen(&report, output::layout()))?;
    }
    if ok { Ok(()) } else { Err(ToldAlready.into()) }
}

async fn checks(patient: &Patient<'_>) -> Vec<Check> {
    let mut checks = files::program(patient);
    checks.extend(files::home(patient));
    checks.extend(files::settings(patient));
    checks.extend(machine::daemon(patient));
    checks.extend(model::model(patient));
    checks.extend(model::next_edit_model(patient));
    checks.extend(model::speed(patient).await);
    checks.push(machine::gpu(patient));
    checks.extend(editors::editors(&patient.around, machine::sessions(patient)));
    checks.extend(api::api(patient).await);
    checks.extend(machine::failures(patient));
    checks
}
