//! `privacy.retention_days`: what is older is forgotten, by the same means and as
//! really as by `hone forget`. Adapters stay; they hold no text.
//!
//! A clock that is wrong must not make a whole log old. So a time that lies more
//! than [`BELIEVED_MS`] after the last one that was believed is believed once a look a
//! day later finds it past. A machine that was off for months forgets a day later; a
//! clock that is put right in time costs nothing.

use crate::app::App;
use crate::privacy::forget_scope::Scope;
use crate::services::health::Source;
use anyhow::{Context, Result, ensure};
use models::file::write_atomic;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A leap ahead that is believed at once: a look a day, a machine that slept, and a
/// time zone that somebody had set by hand.
const BELIEVED_MS: u64 = 2 * DAY_MS;

/// Version of [`ClockHistory`] on disk.
const FORMAT: u32 = 1;

/// Which times the clock has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockHistory {
    format: u32,
    /// The last that was believed.
    believed_ms: u64,
    /// One that was not yet, at its first sight.
    doubted_ms: Option<u64>,
}

impl ClockHistory {
    /// The time to go by.
    fn look(&mut self, now_ms: u64) -> u64 {
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

    /// None, or one that nobody can read, has seen nothing yet.
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

/// When it was last looked for what is too old, and by which setting.
#[derive(Default)]
pub struct Retention(Option<(u64, u32)>);

impl Retention {
    /// Looks for what is too old, if it is time to. Cheap to call often. It goes by dates, which
    /// also count the hours that a machine sleeps.
    pub fn tick(&mut self, app: &Arc<App>) {
        let days = app.services.settings.current().privacy.retention_days;
        let now_ms = app.services.clock.unix_ms();
        if !self.is_due(now_ms, days) {
            return;
        }
        let app = app.clone();
        tokio::spawn(async move {
            let health = &app.services.health;
            // Completions go on. It is tried again a day later.
            match forget_older(&app, days, now_ms).await {
                Ok(()) => health.clear(Source::Retention),
                Err(error) => {
                    tracing::error!(
                        "what is older than {days} days could not be forgotten: {error:#}"
                    );
                    health.report(Source::Retention, format!("privacy.retention_days: {error:#}"));
                }
            }
        });
    }

    /// Whether it is time to look: at the start, once a day, and when the setting was changed.
    fn is_due(&mut self, now_ms: u64, days: u32) -> bool {
        let is_fresh = self.0.is_some_and(|(at, by)| by == days && now_ms.abs_diff(at) < DAY_MS);
        if !is_fresh {
            self.0 = Some((now_ms, days));
        }
        !is_fresh && days > 0
    }
}

async fn forget_older(app: &Arc<App>, days: u32, now_ms: u64) -> Result<()> {
    let believed_ms = believed(&app.paths.clock_history(), now_ms)?;
    let at_ms = believed_ms.saturating_sub(u64::from(days) * DAY_MS);
    // On most days there is nothing to do, and a long log to read for that.
    if app.services.recorder.oldest_event_ms().await.is_some_and(|oldest| oldest < at_ms) {
        app.forget(Scope::Before { at_ms }).await?;
    }
    Ok(())
}

fn believed(path: &Path, now_ms: u64) -> Result<u64> {
    let unseen = ClockHistory { format: FORMAT, believed_ms: 0, doubted_ms: None };
    let mut history = ClockHistory::read(path)?.unwrap_or(unseen);
    let believed_ms = history.look(now_ms);
    write_atomic(path, &serde_json::to_vec(&history)?)
        .with_context(|| path.display().to_string())?;
    Ok(believed_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_at_the_start_once_a_day_and_when_the_setting_changes() {
        let mut retention = Retention::default();
        let now = 1000 * DAY_MS;
        assert!(retention.is_due(now, 180));
        assert!(!retention.is_due(now + DAY_MS - 1, 180));
        assert!(retention.is_due(now + DAY_MS, 180));
        assert!(retention.is_due(now + DAY_MS, 7));
        assert!(!retention.is_due(now + DAY_MS, 0), "for ever");
        assert!(retention.is_due(now, 180), "a clock set back is a change");
    }

    /// Which day is gone by when each of these is looked at in turn.
    fn goes_by(days: &[u64]) -> Vec<u64> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("clock.json");
        days.iter().map(|day| believed(&path, day * DAY_MS).unwrap() / DAY_MS).collect()
    }

    #[test]
    fn a_leap_ahead_is_believed_once_it_has_lasted_a_day() {
        assert_eq!(goes_by(&[1000, 1001, 1002, 1004]), [0, 1001, 1002, 1004], "day by day");
        assert_eq!(goes_by(&[1000, 1001, 9000, 1001]), [0, 1001, 1001, 1001], "put right");
        assert_eq!(goes_by(&[1000, 1001, 9000, 9000, 9001]), [0, 1001, 1001, 1001, 9001]);
        assert_eq!(goes_by(&[1000, 9000, 1001]), [0, 1000, 1001], "from one doubt into another");
        assert_eq!(goes_by(&[1000, 1007, 1014, 1021]), [0, 1000, 1007, 1014], "on Sundays");
        assert_eq!(goes_by(&[1000, 1001, 3, 1002, 1003]), [0, 1001, 3, 3, 1003], "set back");
    }

    #[test]
    fn a_witness_of_a_newer_hone_is_refused_untouched_and_a_damaged_one_knows_nothing() {
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
