//! How much other code a prompt may hold where the user has not said it: as much as this machine
//! computes while its user rests. A key hardly waits for it, because the engine leaves it out of
//! an answer if little of it is computed.

use engine::speed::PromptSpeed;
use feedback::clock::Clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time that the other code of a prompt may take to compute.
const REST: Duration = Duration::from_secs(4);

/// Characters of code in a token, about.
const TOKEN_CHARS: usize = 3;

/// The amount is a multiple of this.
const STEP: usize = 500;

/// Less shows hardly one function of other code.
const LEAST: usize = 1_000;

/// The tokens of a prompt a second that the least amount takes.
const LEAST_SPEED: u64 = (LEAST.div_ceil(TOKEN_CHARS) as u64).div_ceil(REST.as_secs());

/// What was measured to complete more. Many more do not fit next to the text around the cursor into
/// `lab.prompt_tokens`.
const MOST: usize = 3_000;

/// A speed that differs from the one in use by less than this factor changes nothing. Another
/// amount has the prompts of every document computed anew.
const CHANGE: u32 = 2;

pub struct ContextBudget {
    speed: PromptSpeed,
    /// The nanoseconds of a token by which the amount is chosen. 0 before the first choice.
    token: AtomicU64,
}

impl ContextBudget {
    /// Begins with the guess of a speed. In a rehearsal no time passes, so that there the amount
    /// does not depend on how busy the machine is.
    pub fn new(speed: &PromptSpeed, clock: &dyn Clock) -> ContextBudget {
        let speed = if clock.passes() { speed.clone() } else { PromptSpeed::default() };
        ContextBudget { speed, token: AtomicU64::new(0) }
    }

    /// Characters of other code in a prompt.
    pub fn chars(&self) -> usize {
        let tokens = REST.as_nanos() / self.token().as_nanos().max(1);
        let chars = usize::try_from(tokens).unwrap_or(MOST).saturating_mul(TOKEN_CHARS).min(MOST);
        if chars < LEAST { 0 } else { chars / STEP * STEP }
    }

    /// Returns why it is so many, for the user to read.
    pub fn reason(&self) -> String {
        if !self.speed.is_measured() {
            return "how fast this machine computes prompts is not known yet".into();
        }
        let speed = 1.0 / self.speed.token().as_secs_f64().max(1e-9);
        let computes = format!("this machine computes {speed:.0} tokens of a prompt a second");
        if self.chars() > 0 {
            return computes;
        }
        format!(
            "{computes}, and other code takes {LEAST_SPEED}; `completion.context_chars` overrides \
             this"
        )
    }

    fn token(&self) -> Duration {
        let (now, used) = (self.speed.token(), self.token.load(Ordering::Relaxed));
        let used = Duration::from_nanos(used);
        if now < used * CHANGE && used < now * CHANGE {
            return used;
        }
        let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.token.store(nanoseconds, Ordering::Relaxed);
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::clock::{ManualClock, SystemClock};

    fn at(token_ms: f64) -> (PromptSpeed, ContextBudget) {
        let speed = PromptSpeed::default();
        speed.note(1_000, Duration::from_secs_f64(token_ms));
        let budget = ContextBudget::new(&speed, &SystemClock::default());
        (speed, budget)
    }

    #[test]
    fn a_faster_machine_shows_the_model_more_code() {
        let unknown = ContextBudget::new(&PromptSpeed::default(), &SystemClock::default());
        assert_eq!(unknown.chars(), 3_000, "by the guess");
        assert!(unknown.reason().contains("not known yet"));
        assert_eq!(at(5.9).1.chars(), 2_000);
        assert_eq!(at(0.05).1.chars(), MOST);
        assert_eq!(at(11.9).1.chars(), LEAST);
        let slow = at(12.1).1;
        assert_eq!(slow.chars(), 0, "too slow for any");
        assert!(slow.reason().contains(" 83 tokens") && slow.reason().contains("takes 84;"));
        assert!(at(4.0).1.reason().contains(" 250 tokens"));
    }

    #[test]
    fn a_rehearsal_shows_as_much_on_every_machine() {
        let clock = ManualClock::starting_at(0);
        let speed = PromptSpeed::default();
        speed.note(1_000, Duration::from_secs(20));
        assert_eq!(ContextBudget::new(&speed, &clock).chars(), MOST);
    }

    #[test]
    fn a_busy_minute_does_not_change_every_prompt() {
        let (speed, budget) = at(4.0);
        assert_eq!(budget.chars(), 3_000);
        speed.note(1_000, Duration::from_secs(8));
        assert_eq!((speed.token().as_micros(), budget.chars()), (5_200, 3_000));
        (0..9).for_each(|_| speed.note(1_000, Duration::from_secs(10)));
        assert_eq!(budget.chars(), 1_000);
    }
}
