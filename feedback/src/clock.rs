//! Time as a parameter, so that a test or a rehearsal of a ten-second wait takes no
//! ten seconds.
//!
//! A clock tells two kinds of time. [`Clock::unix_ms`] is a date: it is stored, and
//! other processes compare it. [`Clock::elapsed_ms`] is for waits: only the difference
//! of two of its readings means anything. They are apart because a date leaps when
//! somebody sets the computer's clock, and a wait must not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub trait Clock: Send + Sync {
    /// The date, in milliseconds since the Unix epoch. It may leap in either direction.
    fn unix_ms(&self) -> u64;
    /// Milliseconds since this clock was made. It never goes back, and the hours that
    /// the machine sleeps do not count.
    fn elapsed_ms(&self) -> u64;
    /// Moves both of a clock's times. Returns false if the clock cannot be moved.
    fn advance(&self, ms: u64) -> bool {
        let _ = ms;
        false
    }
    /// Returns true if time passes by itself. If it does not, waiting achieves nothing.
    fn passes(&self) -> bool {
        true
    }
}

/// The computer's own clock.
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn unix_ms(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }

    fn elapsed_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

/// The computer's clock, which can be moved ahead. Tests use it where an editor needs time that
/// passes, and nobody wants to wait.
#[derive(Default)]
pub struct MovableClock {
    system: SystemClock,
    ahead_ms: AtomicU64,
}

impl Clock for MovableClock {
    fn unix_ms(&self) -> u64 {
        self.system.unix_ms() + self.ahead_ms.load(Ordering::SeqCst)
    }

    fn elapsed_ms(&self) -> u64 {
        self.system.elapsed_ms() + self.ahead_ms.load(Ordering::SeqCst)
    }

    fn advance(&self, ms: u64) -> bool {
        self.ahead_ms.fetch_add(ms, Ordering::SeqCst);
        true
    }
}

/// A clock for tests and rehearsals. It stands still until it is told to move.
pub struct ManualClock {
    unix_ms: AtomicU64,
    elapsed_ms: AtomicU64,
}

impl ManualClock {
    pub fn starting_at(unix_ms: u64) -> Self {
        ManualClock { unix_ms: AtomicU64::new(unix_ms), elapsed_ms: AtomicU64::new(0) }
    }

    /// Changes the date alone, as somebody does who sets the computer's clock.
    pub fn set_unix_ms(&self, unix_ms: u64) {
        self.unix_ms.store(unix_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn unix_ms(&self) -> u64 {
        self.unix_ms.load(Ordering::SeqCst)
    }

    fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms.load(Ordering::SeqCst)
    }

    fn advance(&self, ms: u64) -> bool {
        self.unix_ms.fetch_add(ms, Ordering::SeqCst);
        self.elapsed_ms.fetch_add(ms, Ordering::SeqCst);
        true
    }

    fn passes(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_both_times_and_setting_the_date_moves_no_wait() {
        let clock = ManualClock::starting_at(1000);
        assert!(clock.advance(7));
        assert_eq!((clock.unix_ms(), clock.elapsed_ms()), (1007, 7));
        clock.set_unix_ms(5);
        assert_eq!((clock.unix_ms(), clock.elapsed_ms()), (5, 7));
    }

    #[test]
    fn a_movable_clock_passes_and_moves_both_times() {
        const HOUR_MS: u64 = 3_600_000;
        let (clock, system) = (MovableClock::default(), SystemClock::default());
        let before_ms = system.unix_ms();
        assert!(clock.passes() && clock.advance(HOUR_MS));
        assert!(clock.elapsed_ms() >= HOUR_MS);
        assert!(clock.unix_ms() >= before_ms + HOUR_MS);
        assert!(!system.advance(HOUR_MS), "the system's clock stays");
    }

    #[test]
    fn the_system_clock_tells_a_date_and_its_own_age() {
        let clock = SystemClock::default();
        let before_ms = clock.elapsed_ms();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(clock.elapsed_ms() >= before_ms + 5 && clock.elapsed_ms() < 60_000);
        const YEAR_2020_MS: u64 = 1_577_836_800_000;
        assert!(clock.unix_ms() > YEAR_2020_MS);
    }
}
