//! The weight of each text in the demonstration loss.
//!
//! Equal weights are maximum likelihood. The tokens that nobody could have guessed then have
//! the largest gradients, and lines that are right already become less likely because of
//! them.
//!
//! An offer is accepted if its line is right, so the aim is more lines that are right. For a
//! line y, ∂π(y) = π(y) ∂ln π(y). This is the policy gradient of the reward [offered = y],
//! with its expectation taken exactly. If each line has its own probability as its weight,
//! lines that are out of reach hardly change the adapter.

use feedback::job::Hyper;
use std::collections::BTreeMap;

/// The probability of a text under the parent.
#[derive(Debug, Clone, Copy, Default)]
pub struct DemonstratedText {
    /// The log-prob of the whole text, in nats.
    pub logprob: f64,
    pub tokens: usize,
}

/// The weight of each token of a text: π(y)^`demonstration_exponent`, scaled so that the
/// weights of all tokens of the minibatch add up to `demonstration_coefficient`. The
/// parent's probabilities are used for π(y), so that the weights stay the same during an
/// update.
pub fn token_weights(
    texts: &BTreeMap<usize, DemonstratedText>,
    hyper: &Hyper,
) -> BTreeMap<usize, f64> {
    let exponent = f64::from(hyper.demonstration_exponent);
    let likelihood = |text: &DemonstratedText| (exponent * text.logprob).exp();
    let total: f64 = texts.values().map(|text| likelihood(text) * text.tokens as f64).sum();
    // If all texts are out of reach, the total is below 1. The weights then add up to less
    // than the coefficient, and the step stays small.
    let scale = f64::from(hyper.demonstration_coefficient) / total.max(1.0);
    texts.iter().map(|(&sample, text)| (sample, scale * likelihood(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(exponent: f32, texts: &[(f64, usize)]) -> Vec<f64> {
        let hyper = Hyper {
            demonstration_exponent: exponent,
            demonstration_coefficient: 0.5,
            ..Hyper::default()
        };
        let texts = texts
            .iter()
            .map(|&(probability, tokens)| DemonstratedText { logprob: probability.ln(), tokens });
        token_weights(&texts.enumerate().collect(), &hyper).into_values().collect()
    }

    #[test]
    fn without_an_exponent_every_token_weighs_the_same() {
        let weights = of(0.0, &[(0.5, 3), (1e-9, 5)]);
        assert!(weights.iter().all(|weight| (weight - 0.5 / 8.0).abs() < 1e-12), "{weights:?}");
    }

    #[test]
    fn a_line_has_its_probability_as_its_weight() {
        let weights = of(1.0, &[(0.5, 4), (0.25, 4), (1e-9, 4)]);
        assert!((weights[0] / weights[1] - 2.0).abs() < 1e-9, "{weights:?}");
        assert!(weights[2] < 1e-8, "{weights:?}");
        assert!(
            (4.0 * weights.iter().sum::<f64>() - 0.5).abs() < 1e-9,
            "the weights add up to the coefficient"
        );
    }

    #[test]
    fn lines_out_of_reach_do_not_cause_a_full_step() {
        let weights = of(1.0, &[(1e-4, 4), (1e-5, 4)]);
        assert!(weights.iter().sum::<f64>() < 1e-3, "{weights:?}");
    }
}
