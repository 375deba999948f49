//! How readily Hone makes offers: one setting instead of several numbers.

use feedback::reward::VALUE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest wait for the next key, which the setting `lab.adaptive_debounce` promises.
const WAIT_MAX: Duration = Duration::from_millis(300);

#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Eagerness {
    /// Fewer offers, after a longer pause, and none of a few characters.
    Quiet,
    /// What suits most people.
    #[default]
    Balanced,
    /// More offers, and sooner. You accept fewer of them.
    Eager,
}

impl Eagerness {
    pub const ALL: [Eagerness; 3] = [Eagerness::Quiet, Eagerness::Balanced, Eagerness::Eager];

    pub fn name(self) -> &'static str {
        match self {
            Eagerness::Quiet => "quiet",
            Eagerness::Balanced => "balanced",
            Eagerness::Eager => "eager",
        }
    }

    /// P(accepted) from which on the gate shows an offer.
    pub fn gate_threshold(self) -> f64 {
        match self {
            Eagerness::Quiet => 0.4,
            Eagerness::Balanced => f64::from(VALUE),
            Eagerness::Eager => 0.12,
        }
    }

    /// P(right) from which on a next edit is offered.
    pub fn next_edit_threshold(self) -> f64 {
        match self {
            Eagerness::Quiet => 0.65,
            Eagerness::Balanced => 0.5,
            Eagerness::Eager => 0.35,
        }
    }

    /// The least number of characters of an offer that the user did not invoke.
    pub fn least_chars(self) -> usize {
        match self {
            Eagerness::Quiet => 4,
            Eagerness::Balanced | Eagerness::Eager => 1,
        }
    }

    /// Returns how long a request waits for the next key, given the wait that the user's typing
    /// suggests.
    pub fn wait(self, suggested: Duration) -> Duration {
        match self {
            Eagerness::Quiet => (suggested * 2).min(WAIT_MAX),
            Eagerness::Balanced => suggested,
            Eagerness::Eager => suggested / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wants_quiet_gets_less_and_later() {
        let wait = |eagerness: Eagerness| eagerness.wait(Duration::from_millis(100));
        for pair in Eagerness::ALL.windows(2) {
            assert!(pair[0].gate_threshold() > pair[1].gate_threshold());
            assert!(pair[0].next_edit_threshold() > pair[1].next_edit_threshold());
            assert!(pair[0].least_chars() >= pair[1].least_chars());
            assert!(wait(pair[0]) > wait(pair[1]));
        }
        assert_eq!(Eagerness::Balanced.gate_threshold(), 0.25);
    }

    #[test]
    fn the_names_are_those_of_the_setting() {
        for eagerness in Eagerness::ALL {
            let written = serde_json::to_value(eagerness).unwrap();
            assert_eq!(written, eagerness.name());
        }
    }
}
