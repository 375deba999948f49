//! The speed at which prompts are computed here, as far as was seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time of a token of a prompt before any was computed: about that of a model of half a billion
/// weights on two cores.
const FIRST_GUESS: Duration = Duration::from_millis(4);

/// Fewer tokens say little about the speed of many.
const TOKENS_MIN: u32 = 32;

/// The share of the newest measurement in the mean.
const NEWEST: f64 = 0.3;

/// The time that a token of a prompt takes, as a mean over the last prompts. The engine writes it
/// and everybody may read it, so a clone is the same measurement.
#[derive(Debug, Clone, Default)]
pub struct PromptSpeed {
    /// In nanoseconds. 0 means that nothing was measured.
    token: Arc<AtomicU64>,
}

impl PromptSpeed {
    /// Notes that a prompt's tokens took this time.
    pub fn note(&self, tokens: u32, time: Duration) {
        if tokens < TOKENS_MIN {
            return;
        }
        let newest = time / tokens;
        let mean = self
            .measured()
            .map_or(newest, |token| token.mul_f64(1.0 - NEWEST) + newest.mul_f64(NEWEST));
        let nanoseconds = u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.token.store(nanoseconds, Ordering::Relaxed);
    }

    /// The time of one token, or a guess.
    pub fn token(&self) -> Duration {
        self.measured().unwrap_or(FIRST_GUESS)
    }

    /// The time that this many tokens are expected to take.
    pub fn time_of(&self, tokens: usize) -> Duration {
        self.token() * u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    pub fn is_measured(&self) -> bool {
        self.measured().is_some()
    }

    fn measured(&self) -> Option<Duration> {
        let nanoseconds = self.token.load(Ordering::Relaxed);
        (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_a_guess_then_what_was_measured_then_a_mean() {
        let ms = Duration::from_millis;
        let speed = PromptSpeed::default();
        assert_eq!(speed.time_of(10), 10 * FIRST_GUESS);
        speed.note(TOKENS_MIN - 1, ms(9_999));
        assert_eq!(speed.time_of(10), 10 * FIRST_GUESS, "too few tokens");
        speed.note(100, ms(1_000));
        assert_eq!(speed.time_of(10), ms(100));
        speed.note(100, ms(2_000));
        assert_eq!(speed.time_of(10), ms(130));
        assert_eq!(speed.clone().token(), ms(13), "a clone reads the same");
    }
}
