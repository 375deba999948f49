//! `hone forget`. The daemon does it if one runs; else this process does it in the files.

use crate::cli::confirm;
use crate::cli::event_log;
use crate::cli::settings::Configured;
use crate::daemon::client;
use crate::daemon::election;
use crate::daemon::handshake::Command;
use adapters::registry::Registry;
use anyhow::{Context, Result, bail, ensure};
use feedback::clock::{Clock, SystemClock};
use feedback::log::EventLog;
use host::paths::Paths;
use jiff::civil::DateTime;
use jiff::{Span, Timestamp, Zoned};
use privacy::forget_scope::{Forgotten, OffersToForget, Scope, names_of};
use privacy::forgotten::ForgottenFiles;
use services::handed_prompts::remove_prompts;
use services::recordings;
use std::io::IsTerminal;

#[derive(clap::Args)]
pub struct ForgetArgs {
    #[command(flatten)]
    what: What,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
    /// Print a JSON object: events, offers, adapters removed, adapter that serves, why adapters
    /// were left, if any were, and the damaged logs that went
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct What {
    /// What was offered in this file; it need not exist any more. A document that is no file of
    /// this machine is named by its address, as in `untitled:Untitled-1`
    #[arg(long, value_name = "PATH|URI")]
    file: Option<String>,
    /// What was offered in any file in this folder or below it
    #[arg(long, value_name = "PATH|URI")]
    folder: Option<String>,
    /// What was offered or judged since then: a duration back from now (`2h`, `3d`)
    /// or a time (`2026-01-31`, `2026-01-31T14:00`)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Everything that was recorded, and every adapter, imported ones included
    #[arg(long)]
    all: bool,
}

impl What {
    /// The scope, and how to call it when asking.
    fn scope(&self) -> Result<(Scope, String)> {
        let names = |path: &str| {
            // An empty path is the beginning of every path.
            ensure!(!path.is_empty(), "an empty path names nothing; --all forgets everything");
            Ok(names_of(path))
        };
        Ok(match (&self.file, &self.folder, &self.since) {
            (Some(file), ..) => (Scope::File { names: names(file)? }, file.clone()),
            (_, Some(folder), _) => (Scope::Folder { names: names(folder)? }, folder.clone()),
            (_, _, Some(text)) => {
                let at = since(text, &Zoned::now())?;
                let at_ms = at.as_millisecond().try_into().unwrap_or(0);
                let local = at.to_zoned(jiff::tz::TimeZone::system());
                (Scope::Since { at_ms }, local.strftime("since %F %H:%M").to_string())
            }
            _ => (Scope::All, "everything".into()),
        })
    }
}

pub async fn run(home: &Paths, args: ForgetArgs) -> Result<()> {
    let (scope, name) = args.what.scope()?;
    home.create()?;
    if !args.yes {
        let plan = forget(home, &scope, true).await?;
        if !plan.is_nothing() && !confirmed(&name, &plan)? {
            bail!("nothing was forgotten");
        }
    }
    let done = forget(home, &scope, false).await?;
    if args.json {
        emit!("{}", serde_json::to_string(&done)?)?;
    } else if done.is_nothing() {
        match scope {
            Scope::File { .. } | Scope::Folder { .. } => say!("nothing is recorded about {name}")?,
            Scope::Since { .. } => say!("nothing is recorded {name}")?,
            _ => say!("nothing is recorded")?,
        }
    } else {
        say!("forgotten: {}", sentence(&done))?;
    }
    for note in notes(&done).filter(|_| !args.json) {
        say!("note: {note}")?;
    }
    Ok(())
}

/// Returns what there is to say of what was forgotten, or would be, next to how much it is.
fn notes(forgotten: &Forgotten) -> impl Iterator<Item = String> {
    let damaged = forgotten.damaged_logs.iter().map(|log| {
        format!("{}: nobody can tell what this damaged log holds, so all of it goes", log.display())
    });
    let others = forgotten.adapters_left.iter().chain(&forgotten.team).cloned();
    damaged.chain(others).collect::<Vec<_>>().into_iter()
}

async fn forget(home: &Paths, scope: &Scope, plan: bool) -> Result<Forgotten> {
    let command = Command::Forget { scope: scope.clone(), plan };
    match client::question::<Result<Forgotten, String>>(home, command).await? {
        Some(answer) => answer.map_err(anyhow::Error::msg),
        None => in_files(home, scope, plan),
    }
}

fn in_files(home: &Paths, scope: &Scope, plan: bool) -> Result<Forgotten> {
    // No daemon runs, and none may start while its files change.
    let _elected = election::elect(home)?;
    // What is to be forgotten goes, whatever the settings are.
    let base_sha256 = &Configured::noted(home).base_sha256(home);
    let (mut registry, _) = Registry::open(&home.adapters(), base_sha256);
    let now_ms = SystemClock::default().unix_ms();
    if plan {
        let log = event_log::open(home)?;
        let found = OffersToForget::search(&log, scope.clone(), now_ms)?;
        return Ok(found.plan(&registry, base_sha256, log.set_aside()?));
    }
    // Each step is done whatever became of those before it, unless it needs them. So a file that
    // cannot be removed leaves nothing else, and the same command removes it later.
    let listed = ForgottenFiles::open(home.forgotten()).add(scope);
    let prompts = match scope.is_by_user() {
        true => remove_prompts(&home.prompts()).and(recordings::remove(&home.recordings())),
        false => Ok(()),
    };
    let log = event_log::open(home)?;
    let damaged = log.set_aside()?;
    let unsearchable = OffersToForget::remove_unsearchable(scope, &registry, &log);
    let found = OffersToForget::search(&log, scope.clone(), now_ms)?;
    let result = found.plan(&registry, base_sha256, damaged);
    found.withdraw(&mut registry, &result)?;
    let files = found.remove_files(&registry);
    found.erase(&log)?;
    listed.and(prompts).and(unsearchable).and(files)?;
    Ok(result)
}

/// Returns what `--since` says, by a clock that shows `now`.
fn since(text: &str, now: &Zoned) -> Result<Timestamp> {
    let at = if let Ok(at) = text.parse::<Timestamp>() {
        at
    } else if let Ok(local) = text.parse::<DateTime>() {
        local
            .to_zoned(now.time_zone().clone())
            .with_context(|| format!("--since {text}"))?
            .timestamp()
    } else {
        let span: Span = text.parse().ok().with_context(|| {
            format!(
                "--since {text}: neither a duration nor a time; say `2h`, `3d`, `2026-01-31` or \
                 `2026-01-31T14:00`"
            )
        })?;
        let back = now.checked_sub(span).with_context(|| format!("--since {text}"))?;
        back.timestamp()
    };
    ensure!(at <= now.timestamp(), "--since {text}: lies in the future; nothing is recorded then");
    Ok(at)
}

fn confirmed(name: &str, plan: &Forgotten) -> Result<bool> {
    ensure!(
        std::io::stdin().is_terminal(),
        "nothing was forgotten: this would remove {}; say --yes",
        sentence(plan)
    );
    for note in notes(plan) {
        tell!("note: {note}");
    }
    confirm::confirmed(&question(name, plan))
}

fn question(name: &str, plan: &Forgotten) -> String {
    let serves = serving(plan).map(|serves| format!(" From then on {serves} serves."));
    format!("{name}: forget {}?{} This cannot be undone.", named(plan), serves.unwrap_or_default())
}

fn sentence(forgotten: &Forgotten) -> String {
    let serves = serving(forgotten).map(|serves| format!("; {serves} serves from then on"));
    format!("{}{}", named(forgotten), serves.unwrap_or_default())
}

/// Names what serves afterwards, if adapters go.
fn serving(forgotten: &Forgotten) -> Option<String> {
    let serves = match forgotten.serves {
        0 => "the model alone".to_owned(),
        version => format!("v{version}"),
    };
    (!forgotten.adapters.is_empty()).then_some(serves)
}

/// Names what goes.
fn named(forgotten: &Forgotten) -> String {
    let offers = printable::count(forgotten.offers, "offer");
    let Some(last) = forgotten.adapters.last() else { return offers };
    let adapters = match forgotten.adapters.len() {
        1 => format!("adapter v{last}"),
        count => format!("{count} adapters up to v{last}"),
    };
    format!("{offers} and {adapters} that learned from them")
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::sled_log::SledLog;
    use fixtures::forgettable::{self, Disk};
    use models::file::faults::FailingWrite;

    #[test]
    fn since_is_a_duration_or_a_time_on_the_users_clock() {
        let now: Zoned = "2026-03-10T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let at = |text: &str| since(text, &now).map(|at| at.to_string());
        assert_eq!(at("2h").unwrap(), "2026-03-10T09:00:00Z");
        assert_eq!(at("3d").unwrap(), "2026-03-07T11:00:00Z");
        assert_eq!(at("1h 30m").unwrap(), "2026-03-10T09:30:00Z");
        assert_eq!(at("2026-03-01").unwrap(), "2026-02-28T23:00:00Z");
        assert_eq!(at("2026-03-01T14:00").unwrap(), "2026-03-01T13:00:00Z");
        assert_eq!(at("2026-03-01T14:00:00Z").unwrap(), "2026-03-01T14:00:00Z");
        for wrong in ["yesterday", "", "2026-31-01", "-2h", "2027-01-01"] {
            let error = at(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--since {wrong}: ")), "{error}");
        }
        assert!(at("3").unwrap_err().to_string().contains("say `2h`"));
    }

    /// The same without a daemon as with one (see the daemon's test of it): a registry that
    /// cannot be read refuses to withdraw an adapter, and the events stayed with it.
    #[test]
    fn events_are_forgotten_though_the_registry_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let home = Paths::at(folder.path().into());
        home.create().unwrap();
        let registry = home.adapters().join("registry.json");
        std::fs::write(&registry, "").unwrap();
        let log = SledLog::open(&home.event_log()).unwrap();
        log.append(0, fixtures::completion("o", "/secret.rs")).unwrap();
        log.flush().unwrap();
        drop(log);
        let scope = Scope::File { names: vec!["/secret.rs".into()] };
        let done = in_files(&home, &scope, false).unwrap();
        assert_eq!((done.events, done.offers), (1, 1));
        let note = done.adapters_left.unwrap();
        assert!(note.contains(&home.adapters().display().to_string()), "{note}");
        assert_eq!(in_files(&home, &scope, true).unwrap().events, 0, "it is gone");
        assert_eq!(std::fs::read_to_string(&registry).unwrap(), "");
    }

    /// The disk is full from each write on. The command fails unless it did everything, and the
    /// same command does what is left: the disk is that of a command that never failed. A single
    /// write fails in the daemon's test of the same.
    #[test]
    fn a_command_that_failed_anywhere_can_be_repeated() {
        let filled = || {
            let folder = tempfile::tempdir().unwrap();
            let home = Paths::at(folder.path().into());
            home.create().unwrap();
            let base_sha256 = Configured::noted(&home).base_sha256(&home);
            forgettable::fill(&home, &base_sha256);
            (folder, home)
        };
        let disk = |home: &Paths| Disk::of(home, &SledLog::open(&home.event_log()).unwrap());
        let scope = forgettable::scope();
        let (_folder, home) = filled();
        assert!(!disk(&home).has_forgotten(), "without this the test could not fail");
        let told = in_files(&home, &scope, false).unwrap();
        assert_eq!((told.offers, &*told.adapters), (1, &[2][..]));
        let expected = disk(&home);
        assert!(expected.has_forgotten(), "{expected:?}");
        for number in 0.. {
            let (folder, home) = filled();
            let fault = FailingWrite::arm_from(folder.path(), number);
            let first = in_files(&home, &scope, false);
            let has_failed = fault.has_failed();
            drop(fault);
            if first.is_ok() {
                assert_eq!(disk(&home), expected, "write {number} failed silently");
            }
            in_files(&home, &scope, false).unwrap();
            assert_eq!(disk(&home), expected, "write {number}");
            if !has_failed {
                assert!(number > 20, "there are too few writes to show anything: {number}");
                return;
            }
        }
    }

    #[test]
    fn what_serves_afterwards_is_no_part_of_the_question() {
        let plan = Forgotten {
            events: 4,
            offers: 2,
            adapters: vec![3],
            serves: 0,
            adapters_left: None,
            team: None,
            damaged_logs: vec![],
        };
        assert_eq!(
            question("a.py", &plan),
            "a.py: forget 2 offers and adapter v3 that learned from them? From then on the model \
             alone serves. This cannot be undone."
        );
        let done = "2 offers and adapter v3 that learned from them; v1 serves from then on";
        assert_eq!(sentence(&Forgotten { serves: 1, ..plan.clone() }), done);
        let none = Forgotten { offers: 1, adapters: vec![], ..plan };
        assert_eq!(question("a.py", &none), "a.py: forget 1 offer? This cannot be undone.");
    }

    #[test]
    fn an_empty_path_is_not_every_path() {
        let none = What { file: None, folder: None, since: None, all: false };
        let empty = What { folder: Some(String::new()), ..none };
        assert!(empty.scope().unwrap_err().to_string().contains("--all"));
    }
}
