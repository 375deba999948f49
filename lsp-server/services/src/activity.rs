//! Whether anybody types or asks for completions. The periodic tasks rest while nobody does, so
//! that an idle daemon does not wake the processor.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The interval of the periodic tasks, such as the timeout of open offers.
const INTERVAL: Duration = Duration::from_millis(250);

/// The interval while nobody does anything.
const RESTING_INTERVAL: Duration = Duration::from_secs(5);

/// The time without activity after which the periodic tasks rest. The last look at accepted text
/// comes ten minutes after it was accepted.
const RESTS_AFTER: Duration = Duration::from_secs(11 * 60);

pub struct Activity {
    started: Instant,
    /// The time of the last activity, in milliseconds since the start.
    last_ms: AtomicU64,
    woken: Notify,
}

impl Default for Activity {
    fn default() -> Activity {
        let last_ms = AtomicU64::default();
        Activity { started: Instant::now(), last_ms, woken: Notify::new() }
    }
}

impl Activity {
    /// Somebody typed, or asked for a completion.
    pub fn touch(&self) {
        let now = self.started.elapsed();
        let before = self.last_ms.swap(now.as_millis() as u64, Ordering::Relaxed);
        if now.saturating_sub(Duration::from_millis(before)) >= RESTS_AFTER {
            self.woken.notify_one();
        }
    }

    fn idle(&self) -> Duration {
        let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(last)
    }

    /// Waits until the periodic tasks are due.
    pub async fn next_tick(&self) {
        if self.idle() < RESTS_AFTER {
            tokio::time::sleep(INTERVAL).await;
        } else {
            let _ = tokio::time::timeout(RESTING_INTERVAL, self.woken.notified()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_wakes_the_tasks_that_rest() {
        // The last key was long ago. No pause of a busy machine is as long as the time until the
        // tasks rest, and `timeout` looks at its task before it looks at the clock.
        let started = Instant::now().checked_sub(2 * RESTS_AFTER).unwrap();
        let activity = Activity { started, ..Activity::default() };
        let waiting = activity.next_tick();
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::ZERO, &mut waiting).await.is_err(), "they rest");
        activity.touch();
        tokio::time::timeout(INTERVAL, waiting).await.expect("they are woken");
        tokio::time::timeout(2 * INTERVAL, activity.next_tick()).await.expect("they work again");
    }
}
