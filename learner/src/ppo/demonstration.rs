//! How much each text that is imitated counts.
//!
//! To raise every text's log-prob alike is maximum likelihood: the tokens that nobody
//! could have guessed have the largest gradients, and what is right already gives way
//! to them. An offer is taken if its line is right, so what is wanted is more right
//! lines: with y the line, ∂π(y) = π(y) ∂ln π(y), which is the policy gradient of the
//! reward [offered = y] with its expectation taken exactly. Weighted by its own
//! probability a line out of reach is left alone.

use feedback::job::Hyper;
use std::collections::BTreeMap;

/// A text in the eyes of the parent.
#[derive(Debug, Clone, Copy, Default)]
pub struct DemonstratedText {
    /// Of the whole, in nats.
    pub logprob: f64,
    pub tokens: usize,
}

/// What a token of each text weighs in its minibatch: π(y)^exponent, scaled so that
/// all together weigh `demonstration_coefficient`. The parent's probabilities stand
/// for π's: weights stay what they are while an update goes on.
pub fn token_weights(
    texts: &BTreeMap<usize, DemonstratedText>,
    hyper: &Hyper,
) -> BTreeMap<usize, f64> {
    let exponent = f64::from(hyper.demonstration_exponent);
    let likelihood = |text: &DemonstratedText| (exponent * text.logprob).exp();
    let total: f64 = texts.values().map(|text| likelihood(text) * text.tokens as f64).sum();
    // Less than one token's worth in all is out of reach: no reason for a full step.
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
    fn a_line_weighs_what_it_is_likely() {
        let weights = of(1.0, &[(0.5, 4), (0.25, 4), (1e-9, 4)]);
        assert!((weights[0] / weights[1] - 2.0).abs() < 1e-9, "{weights:?}");
        assert!(weights[2] < 1e-8, "{weights:?}");
        assert!((4.0 * weights.iter().sum::<f64>() - 0.5).abs() < 1e-9, "all of the coefficient");
    }

    #[test]
    fn lines_out_of_reach_are_no_reason_for_a_full_step() {
        let weights = of(1.0, &[(1e-4, 4), (1e-5, 4)]);
        assert!(weights.iter().sum::<f64>() < 1e-3, "{weights:?}");
    }
}
