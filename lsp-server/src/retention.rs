//! `privacy.retention_days`: what is older is forgotten, by the same means and as
//! really as by `hone forget`. Adapters stay; they hold no text.

use crate::daemon::{Daemon, lock};
use crate::forget::Scope;
use std::sync::{Arc, Mutex};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// When it was last looked for what is too old, and by which setting.
#[derive(Default)]
pub struct Retention(Mutex<Option<(u64, u32)>>);

impl Retention {
    /// The time before which everything is to be forgotten now, if it is time to:
    /// at the start, once a day, and when the setting was changed.
    fn due(&self, now_ms: u64, days: u32) -> Option<u64> {
        let mut last = lock(&self.0);
        let fresh = last.is_some_and(|(at, by)| by == days && now_ms.abs_diff(at) < DAY_MS);
        if fresh {
            return None;
        }
        *last = Some((now_ms, days));
        (days > 0).then(|| now_ms.saturating_sub(u64::from(days) * DAY_MS))
    }
}

/// Cheap to call often. It goes by the daemon's clock, which also counts the
/// hours that a machine sleeps.
pub fn tick(daemon: &Arc<Daemon>) {
    let days = daemon.config().privacy.retention_days;
    let Some(at_ms) = daemon.retention.due(daemon.clock.now_ms(), days) else { return };
    let daemon = daemon.clone();
    tokio::spawn(async move {
        // On most days there is nothing to do, and a long log to read for that.
        if daemon.oldest_event().await.is_none_or(|oldest| oldest >= at_ms) {
            return;
        }
        // Completions go on; it is tried again a day later.
        if let Err(error) = daemon.forget(Scope::Before { at_ms }).await {
            tracing::error!("what is older than {days} days could not be forgotten: {error:#}");
            lock(&daemon.learner).last_error = Some(format!("privacy.retention_days: {error:#}"));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_at_the_start_once_a_day_and_when_the_setting_changes() {
        let retention = Retention::default();
        let now = 1000 * DAY_MS;
        assert_eq!(retention.due(now, 180), Some(820 * DAY_MS));
        assert_eq!(retention.due(now + DAY_MS - 1, 180), None);
        assert_eq!(retention.due(now + DAY_MS, 180), Some(821 * DAY_MS));
        assert_eq!(retention.due(now + DAY_MS, 7), Some(994 * DAY_MS));
        assert_eq!(retention.due(now + DAY_MS, 0), None, "for ever");
        assert_eq!(retention.due(now, 180), Some(820 * DAY_MS), "a clock set back is a change");
    }

    #[test]
    fn a_young_clock_forgets_nothing() {
        assert_eq!(Retention::default().due(5, 180), Some(0));
    }
}
