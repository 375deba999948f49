//! The features that the gate decides by. They are cheap to compute, known before the offer is
//! shown, and of about unit size.

use super::Recent;
use feedback::event::{GateRecord, StopReason};

/// The version of the list. It is raised whenever a feature changes its meaning; the gate does not
/// learn from verdicts on another version.
pub const FEATURES_VERSION: u32 = 2;

pub const FEATURES: usize = 21;

pub type Features = [f64; FEATURES];

pub const NAMES: [&str; FEATURES] = [
    "bias",
    "log-odds of the whole text",
    "mean log-prob of a token",
    "lowest log-prob of a token",
    "log-prob of the first token",
    "length",
    "the model chose to stop",
    "line is blank before the cursor",
    "line is empty after the cursor",
    "behind a word",
    "behind a dot or colons",
    "behind an opening bracket or a comma",
    "behind an equals sign",
    "closing marks alone",
    "starts with a word",
    "pause before the request",
    "rate of recent accepts",
    "rejects in a row",
    "rejects on this line",
    "prose or data",
    "few characters",
];

/// One answer and its surroundings.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The log-probs, in nats, of the tokens that are new to the user, as the user sees them.
    pub logprobs: &'a [f32],
    pub text: &'a str,
    pub stop: StopReason,
    pub line_before: &'a str,
    pub rest_of_line: &'a str,
    pub language: &'a str,
    /// Milliseconds since the last edit.
    pub idle_ms: u64,
    pub rejects_here: u32,
    pub recent: Recent,
}

/// Log-probs are cut here, in nats: everything below is simply unlikely.
const LEAST_LOGPROB: f64 = -8.0;

/// So few characters are typed faster than an offer is read (docs/lab/people.md).
const FEW: usize = 10;

/// Languages for prose or data rather than programs.
const PROSE: &[&str] =
    &["markdown", "plaintext", "json", "jsonc", "yaml", "toml", "restructuredtext", "csv", "text"];

pub fn features(seen: &Surroundings) -> Features {
    let logprob = |value: f32| f64::from(value).max(LEAST_LOGPROB);
    let logprobs = || seen.logprobs.iter().map(|&value| logprob(value));
    let count = seen.logprobs.len().max(1) as f64;
    let sum = logprobs().sum::<f64>().max(LEAST_LOGPROB);
    // This is ln(p / (1 − p)), where p is the probability of the whole text.
    let odds = sum - (1.0 - sum.exp()).max(1e-3).ln();
    let characters = seen.text.chars().count();
    let is = |yes: bool| f64::from(u8::from(yes));
    let behind = |ends: &[&str]| {
        let before = seen.line_before.trim_end_matches(' ');
        is(ends.iter().any(|end| before.ends_with(end)))
    };
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let marks = |c: char| matches!(c, ')' | ']' | '}' | ';' | ',' | ' ' | '>' | '"' | '\'');
    [
        1.0,
        odds / 3.0,
        logprobs().sum::<f64>() / count,
        logprobs().fold(0.0, f64::min) / 3.0,
        logprobs().next().unwrap_or(0.0) / 2.0,
        (characters as f64 / 10.0).ln_1p(),
        is(seen.stop.is_policy_choice()),
        is(seen.line_before.trim().is_empty()),
        is(seen.rest_of_line.trim().is_empty()),
        is(seen.line_before.ends_with(word)),
        behind(&[".", "::", "->"]),
        behind(&["(", "[", ","]),
        behind(&["="]),
        is(seen.text.chars().all(marks)),
        is(seen.text.starts_with(word)),
        (seen.idle_ms.min(60_000) as f64 / 1000.0).ln_1p() / 2.0,
        2.0 * (seen.recent.rate - 0.25),
        f64::from(seen.recent.rejects).ln_1p() / 2.0,
        f64::from(seen.rejects_here).ln_1p(),
        is(PROSE.contains(&seen.language)),
        is(characters <= FEW),
    ]
}

/// Returns the features of a record, if they mean today what they meant when it was made.
pub fn recorded(gate: &GateRecord) -> Option<Features> {
    gate.features_of(FEATURES_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen<'a>(logprobs: &'a [f32], text: &'a str, line_before: &'a str) -> Surroundings<'a> {
        Surroundings {
            logprobs,
            text,
            stop: StopReason::Newline,
            line_before,
            rest_of_line: "",
            language: "rust",
            idle_ms: 0,
            rejects_here: 0,
            recent: Recent { rate: 0.25, rejects: 0 },
        }
    }

    fn named(features: &Features, name: &str) -> f64 {
        features[NAMES.iter().position(|known| *known == name).unwrap()]
    }

    #[test]
    fn every_value_is_finite_and_small_for_any_answer() {
        let endless = "x".repeat(100_000);
        let cases: [(&[f32], &str); 4] = [
            (&[], ""),
            (&[0.0], "x"),
            (&[f32::NEG_INFINITY, -0.1], "x"),
            (&[-1e-9; 300], &endless),
        ];
        for (logprobs, text) in cases {
            let mut seen = seen(logprobs, text, "größe = ");
            (seen.idle_ms, seen.rejects_here) = (u64::MAX, u32::MAX);
            let features = features(&seen);
            assert!(features.iter().all(|value| value.abs() < 25.0), "{features:?}");
        }
    }

    #[test]
    fn a_likely_text_has_better_odds_than_an_unlikely_one() {
        let odds = |logprobs: &[f32]| {
            named(&features(&seen(logprobs, "x", "")), "log-odds of the whole text")
        };
        assert!(odds(&[-0.01, -0.01]) > odds(&[-0.7]));
        assert!(odds(&[-0.7]) > odds(&[-0.7, -2.0]));
        assert!((odds(&[-std::f32::consts::LN_2])).abs() < 1e-6, "even odds are zero");
    }

    #[test]
    fn an_offer_of_ten_characters_has_few() {
        let few = |text: &str| named(&features(&seen(&[-0.1], text, "")), "few characters");
        assert_eq!((few("0123456789"), few("0123456789a"), few("größer als")), (1.0, 0.0, 1.0));
    }

    #[test]
    fn features_tell_what_stands_before_the_cursor() {
        let at = |line: &str, name: &str| named(&features(&seen(&[-0.1], "x", line)), name);
        assert_eq!(at("self.", "behind a dot or colons"), 1.0);
        assert_eq!(at("x = ", "behind an equals sign"), 1.0);
        assert_eq!(at("call(a, ", "behind an opening bracket or a comma"), 1.0);
        assert_eq!(at("   ", "line is blank before the cursor"), 1.0);
        assert_eq!(at("let", "behind a word"), 1.0);
        assert_eq!(at("let", "behind an equals sign"), 0.0);
    }
}
