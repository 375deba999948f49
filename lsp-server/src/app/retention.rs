//! Retention: events that are older than `privacy.retention_days` are forgotten in the same way as
//! by `hone forget`. Adapters stay, because they hold no text.
//!
//! A wrong clock must not make a whole log look old. A time that lies more than [`BELIEVED_MS`]
//! after the last believed time is doubted at first. It is believed when a check at least a day
//! later finds the clock past it. So a machine that was off for months forgets a day late, and a
//! clock that is corrected in time costs nothing.

use crate::app::App;
use anyhow::{Context, Result, ensure};
use models::file::write_atomic;
use parking_lot::Mutex;
use privacy::forget_scope::Scope;
use serde::{Deserialize, Serialize};
use services::health::TroubleSource;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The time from a check that failed, such as on a full disk, to the next one. It passes while the
/// clock of a test or of a rehearsal stands still.
const RETRY: Duration = Duration::from_secs(5);

/// The largest leap ahead that is believed at once. It leaves room for the day between two checks,
/// a machine that slept, and a wrong time zone.
const BELIEVED_MS: u64 = 2 * DAY_MS;

/// The version of [`ClockHistory`] on disk.
const FORMAT: u32 = 1;

/// The times that the clock has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockHistory {
    format: u32,
    /// The last time that was believed.
    believed_ms: u64,
    /// The first time that is still doubted.
    doubted_ms: Option<u64>,
}

impl ClockHistory {
    /// The time that retention uses when the clock shows `now_ms`.
    fn observe(&mut self, now_ms: u64) -> u64 {
        let is_past = |doubted: &mut u64| now_ms >= doubted.saturating_add(DAY_MS);
        if let Some(past) = self.doubted_ms.take_if(is_past) {
            self.believed_ms = past;
        }
        if now_ms <= self.believed_ms.saturating_add(BELIEVED_MS) {
            (self.believed_ms, self.doubted_ms) = (now_ms, None);
        } else {
            self.doubted_ms = Some(self.doubted_ms.map_or(now_ms, |doubted| doubted.min(now_ms)));
        }
        self.believed_ms
    }

    /// Reads the history. A missing or unreadable file counts as a clock that has shown no time
    /// yet.
    fn read(path: &Path) -> Result<Option<ClockHistory>> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| path.display().to_string())?,
        };
        let Ok(history) = serde_json::from_str::<ClockHistory>(&text) else { return Ok(None) };
        ensure!(
            history.format <= FORMAT,
            "{}: format {}, this Hone knows up to {FORMAT}; update Hone",
            path.display(),
            history.format
        );
        Ok(Some(history))
    }
}

/// When old events are looked for.
#[derive(Default)]
pub struct Retention {
    last: Option<Check>,
    /// When the last check failed, if it has.
    failed: Arc<Mutex<Option<Instant>>>,
}

/// A check for old events: its time, and the setting that it used.
#[derive(Clone, Copy)]
struct Check {
    at_ms: u64,
    days: u32,
}

impl Retention {
    /// Forgets old events when a check is due. It is cheap to call often. It uses dates, which also
    /// count the hours that a machine sleeps.
    pub fn tick(&mut self, app: &Arc<App>) {
        let days = app.services.settings.current().privacy.retention_days;
        let now_ms = app.services.clock.unix_ms();
        if !self.is_due(now_ms, days) {
            return;
        }
        let (app, failed) = (app.clone(), self.failed.clone());
        tokio::spawn(async move {
            let health = &app.services.health;
            // Completions continue, whatever the check finds.
            match forget_older(&app, days, now_ms).await {
                Ok(()) => health.clear(TroubleSource::Retention),
                Err(error) => {
                    let reason = format!("privacy.retention_days: {error:#}");
                    if health.report(TroubleSource::Retention, reason) {
                        tracing::error!(
                            "what is older than {days} days could not be forgotten: {error:#}"
                        );
                    }
                    *failed.lock() = Some(Instant::now());
                }
            }
        });
    }

    /// Returns whether a check is due: at the start, once a day, when the setting has changed, and
    /// soon after a check that failed.
    fn is_due(&mut self, now_ms: u64, days: u32) -> bool {
        let is_fresh = |last: Check| last.days == days && now_ms.abs_diff(last.at_ms) < DAY_MS;
        let is_known = self.last.is_some_and(is_fresh);
        let mut failed = self.failed.lock();
        let is_retried = failed.is_some_and(|at| at.elapsed() >= RETRY);
        if is_known && !is_retried {
            return false;
        }
        self.last = Some(Check { at_ms: now_ms, days });
        *failed = None;
        days > 0
    }
}

pub(super) async fn forget_older(app: &Arc<App>, days: u32, now_ms: u64) -> Result<()> {
    let believed_ms = believed(&app.paths.clock_history(), now_ms)?;
    let at_ms = believed_ms.saturating_sub(u64::from(days) * DAY_MS);
    // On most days nothing is old, and this avoids reading a long log.
    if app.services.recorder.oldest_event_ms().is_some_and(|oldest| oldest < at_ms) {
        app.forget(Scope::Before { at_ms }).await?;
    }
    tidy_registry(app).await
}

/// Drops what the registry of adapters knows of offers that are gone, and removes files that could
/// not be removed earlier, such as one that another program had open.
async fn tidy_registry(app: &Arc<App>) -> Result<()> {
    let recorder = app.services.recorder.clone();
    let change = app.services.adapters.change().await;
    let tidied = change.commit(move |registry| {
        registry.drop_offers_before(recorder.first_seq()?)?;
        registry.remove_unused()
    });
    tidied.await.map(drop)
}

fn believed(path: &Path, now_ms: u64) -> Result<u64> {
    let unseen = ClockHistory { format: FORMAT, believed_ms: 0, doubted_ms: None };
    let mut history = ClockHistory::read(path)?.unwrap_or(unseen);
    let believed_ms = history.observe(now_ms);
    write_atomic(path, &serde_json::to_vec(&history)?)
        .with_context(|| path.display().to_string())?;
    Ok(believed_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_due_at_the_start_once_a_day_and_when_the_setting_changes() {
        let mut retention = Retention::default();
        let now = 1000 * DAY_MS;
        assert!(retention.is_due(now, 180));
        assert!(!retention.is_due(now + DAY_MS - 1, 180));
        assert!(retention.is_due(now + DAY_MS, 180));
        assert!(retention.is_due(now + DAY_MS, 7));
        assert!(!retention.is_due(now + DAY_MS, 0), "for ever");
        assert!(retention.is_due(now, 180), "a clock set back is a change");
    }

    #[test]
    fn a_check_that_failed_is_done_again_soon() {
        let mut retention = Retention::default();
        let now = 1000 * DAY_MS;
        assert!(retention.is_due(now, 180));
        *retention.failed.lock() = Some(Instant::now());
        assert!(!retention.is_due(now, 180), "not at once");
        *retention.failed.lock() = Instant::now().checked_sub(RETRY);
        assert!(retention.is_due(now, 180), "soon, whatever the clock shows");
        assert!(!retention.is_due(now, 180), "this one has not failed");
    }

    /// The days that retention uses when the clock shows each of these days in turn.
    fn believed_days(days: &[u64]) -> Vec<u64> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clock.json");
        days.iter().map(|day| believed(&path, day * DAY_MS).unwrap() / DAY_MS).collect()
    }

    #[test]
    fn a_leap_ahead_is_believed_once_it_has_lasted_a_day() {
        assert_eq!(believed_days(&[1000, 1001, 1002, 1004]), [0, 1001, 1002, 1004], "day by day");
        assert_eq!(believed_days(&[1000, 1001, 9000, 1001]), [0, 1001, 1001, 1001], "corrected");
        assert_eq!(believed_days(&[1000, 1001, 9000, 9000, 9001]), [0, 1001, 1001, 1001, 9001]);
        assert_eq!(
            believed_days(&[1000, 9000, 1001]),
            [0, 1000, 1001],
            "one doubted time replaces another"
        );
        assert_eq!(believed_days(&[1000, 1007, 1014, 1021]), [0, 1000, 1007, 1014], "on Sundays");
        assert_eq!(believed_days(&[1000, 1001, 3, 1002, 1003]), [0, 1001, 3, 3, 1003], "set back");
    }

    #[test]
    fn a_newer_history_is_refused_and_a_damaged_one_counts_as_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clock.json");
        let newer = r#"{"format":2,"believed_ms":1,"doubted_ms":null}"#;
        std::fs::write(&path, newer).unwrap();
        let refused = believed(&path, 5 * DAY_MS).unwrap_err().to_string();
        assert!(refused.contains("clock.json: format 2"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
        std::fs::write(&path, "?").unwrap();
        assert_eq!(believed(&path, 5 * DAY_MS).unwrap(), 0);
        assert_eq!(believed(&path, 6 * DAY_MS).unwrap(), 6 * DAY_MS);
    }
}
