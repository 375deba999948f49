//! Whether anybody types or asks for completions. The periodic tasks rest while nobody does, so that
//! an idle daemon does not wake the processor.

use parking_lot::Mutex;
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
    last: Mutex<Instant>,
    woken: Notify,
}

impl Default for Activity {
    fn default() -> Activity {
        Activity { last: Mutex::new(Instant::now()), woken: Notify::new() }
    }
}

impl Activity {
    /// Somebody typed, or asked for a completion.
    pub fn touch(&self) {
        let before = std::mem::replace(&mut *self.last.lock(), Instant::now());
        if before.elapsed() >= RESTS_AFTER {
            self.woken.notify_one();
        }
    }

    /// Waits until the periodic tasks are due.
    pub async fn next_tick(&self) {
        let idle = self.last.lock().elapsed();
        if idle < RESTS_AFTER {
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
        let activity = Activity::default();
        *activity.last.lock() -= RESTS_AFTER;
        let waiting = activity.next_tick();
        tokio::pin!(waiting);
        let soon = Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, &mut waiting).await.is_err(), "they rest");
        activity.touch();
        tokio::time::timeout(INTERVAL, waiting).await.expect("they are woken");
        tokio::time::timeout(2 * INTERVAL, activity.next_tick()).await.expect("they work again");
    }
}
