//! The prior: the weights the gate starts with on its first day, with room to change. They were
//! fitted to what other people accepted and rejected. A rehearsal of the user's own
//! projects can replace them: `hone rehearse --adopt` leaves its prior next to the adapters.

use super::features::FEATURES;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    pub mean: [f64; FEATURES],
    pub deviation: [f64; FEATURES],
}

/// Mean and deviation of each weight. The means were fitted to 14 people's verdicts on another
/// model's offers of one line, by the log-probs of that model and by those of the served one, and
/// drawn towards what rehearsals had taught; the level and the deviations are those of the
/// rehearsals. `cargo xtask bench people --one-line --fit FILE` prints them
/// (docs/lab/people.md).
const SHIPPED: [(f64, f64); FEATURES] = [
    (-0.90, 0.34), // bias
    (0.75, 0.31),  // log-odds of the whole text
    (0.15, 0.35),  // mean log-prob of a token
    (-0.49, 0.36), // lowest log-prob of a token
    (0.35, 0.35),  // log-prob of the first token
    (0.43, 0.30),  // length
    (-0.04, 0.34), // the model chose to stop
    (0.25, 0.32),  // line is blank before the cursor
    (-0.07, 0.34), // line is empty after the cursor
    (0.56, 0.36),  // behind a word
    (0.77, 0.33),  // behind a dot or colons
    (0.96, 0.34),  // behind an opening bracket or a comma
    (1.00, 0.36),  // behind an equals sign
    (-0.97, 0.36), // closing marks alone
    (0.08, 0.32),  // starts with a word
    (-0.37, 0.36), // pause before the request
    (0.20, 0.36),  // rate of recent accepts
    (-0.60, 0.33), // rejects in a row
    (0.11, 0.34),  // rejects on this line
    (0.00, 0.36),  // prose or data
    (-0.99, 0.36), // few characters
];

pub fn shipped() -> Prior {
    Prior { mean: SHIPPED.map(|weight| weight.0), deviation: SHIPPED.map(|weight| weight.1) }
}

/// The prior that a fit starts from: the log-odds of the text, doubled, and little else.
pub fn assumed() -> Prior {
    let mut mean = [0.0; FEATURES];
    mean[1] = 2.0;
    Prior { mean, deviation: [0.3; FEATURES] }
}

#[cfg(test)]
mod tests {
    use crate::gate::features::{FEATURES_VERSION, Features, Surroundings, features};
    use crate::gate::{Gate, Recent};
    use feedback::episode::Label;
    use feedback::event::StopReason;

    const THRESHOLD: f64 = 0.25;

    fn offer(text: &str, logprob: f32, line_before: &str, rejects: u32) -> Features {
        features(&Surroundings {
            logprobs: &vec![logprob; text.len().div_ceil(4)],
            text,
            stop: StopReason::Newline,
            line_before,
            rest_of_line: "",
            language: "python",
            idle_ms: 100,
            rejects_here: 0,
            recent: Recent { rate: 0.25, rejects },
        })
    }

    fn probability(gate: &Gate, features: &Features) -> f32 {
        gate.judge(features, THRESHOLD).probability
    }

    const LONG: &str = "np.mean(values, axis=0)";

    #[test]
    fn at_first_the_gate_judges_as_people_do() {
        let gate = Gate::default();
        let judged = |text, logprob, line: &str, rejects| {
            probability(&gate, &offer(text, logprob, line, rejects))
        };
        let likely = judged(LONG, -0.1, "x = ", 0);
        assert!(likely > judged(LONG, -0.3, "x = ", 0), "likelier tokens");
        assert!(likely > judged("y", -0.1, "x = ", 0), "as likely by the token, and shorter");
        assert!(likely > judged(LONG, -0.1, "x = ", 5), "after rejects");
        assert!(judged(LONG, -0.1, "print(", 0) > judged(LONG, -0.1, "", 0), "in a call");
        assert!(judged(")", -0.1, "print(x", 0) < 0.25, "a closing mark alone");
    }

    /// Somebody whose habits are the opposite: short offers are accepted, long ones are not.
    #[test]
    fn a_hundred_verdicts_overtake_the_prior() {
        let mut gate = Gate::default();
        let (short, long) = (offer("y", -0.8, "", 0), offer(LONG, -0.1, "x = ", 0));
        assert!(probability(&gate, &short) < 0.2 && probability(&gate, &long) > 0.4);
        for number in 0..100 {
            let is_short = number % 2 == 0;
            let record = gate.judge(if is_short { &short } else { &long }, THRESHOLD);
            assert_eq!(record.features_version, FEATURES_VERSION);
            gate.learn(&Label {
                at_ms: number,
                adapter: 0,
                invoked: false,
                gate: Some(record),
                arm: None,
                accepted: is_short,
                reward: f32::from(u8::from(is_short)),
                weight: 1.0,
                before: None,
                offer_utf16: 10,
            });
        }
        let (short, long) = (probability(&gate, &short), probability(&gate, &long));
        assert!(short > 0.5 && long < 0.25, "{short} {long}");
    }
}
