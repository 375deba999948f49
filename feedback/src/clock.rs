//! Time as a parameter: outcomes depend on ten-second waits, and a test or a
//! rehearsal must not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch; never goes back.
    fn now_ms(&self) -> u64;
    /// Moves a manual clock; `false` where time is not ours to move.
    fn advance(&self, ms: u64) -> bool {
        let _ = ms;
        false
    }
    /// Whether time passes by itself: where it does not, waiting is for nothing.
    fn passes(&self) -> bool {
        true
    }
}

/// Wall time that never runs backwards: a clock set back stands still instead,
/// so that no offer times out early or late by the jump.
#[derive(Default)]
pub struct SystemClock {
    latest_ms: AtomicU64,
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as u64);
        self.latest_ms.fetch_max(wall, Ordering::Relaxed).max(wall)
    }
}

/// Stands still until it is told to move.
pub struct ManualClock {
    now_ms: AtomicU64,
}

impl ManualClock {
    pub fn starting_at(now_ms: u64) -> Self {
        ManualClock { now_ms: AtomicU64::new(now_ms) }
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn advance(&self, ms: u64) -> bool {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
        true
    }

    fn passes(&self) -> bool {
        false
    }
}
