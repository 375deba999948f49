//! The loss of one judged token, and its gradient.

use crate::limits::LOG_RATIO_NATS_MAX;
use feedback::job::Hyper;

/// The log-prob of one sampled token under each policy, in nats, and its advantage.
#[derive(Debug, Clone, Copy)]
pub struct TokenLogprobs {
    pub policy: f64,
    pub parent: f64,
    pub behaviour: f64,
    pub base: f64,
    pub advantage: f64,
}

/// The loss of one sampled token, its gradient, and what the report says of the token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenLoss {
    pub loss: f64,
    /// ∂loss/∂ ln π.
    pub d_policy: f64,
    /// True if the clip has set the policy gradient to zero.
    pub clipped: bool,
    /// The k3 estimate of KL(parent‖π), for a token of the parent.
    pub kl_parent: f64,
    /// The k3 estimate of KL(π‖base).
    pub kl_base: f64,
}

impl TokenLogprobs {
    /// −α·w · min(ρA, clip(ρ, 1 − clip_low, 1 + clip_high)·A) + β·k3, where ρ = π/parent,
    /// w = min(parent/behaviour, cap), α = `policy_coefficient` and β = `kl_coefficient`.
    pub fn loss(&self, hyper: &Hyper) -> TokenLoss {
        let log_ratio = clamp_log_ratio(self.policy - self.parent);
        let ratio = log_ratio.exp();
        let weight = clamp_log_ratio(self.parent - self.behaviour)
            .exp()
            .min(f64::from(hyper.max_importance_weight));
        let low = 1.0 - f64::from(hyper.clip_low);
        let high = 1.0 + f64::from(hyper.clip_high);
        let unclipped = ratio * self.advantage;
        let surrogate = unclipped.min(ratio.clamp(low, high) * self.advantage);
        // The clipped branch does not depend on π, so that its gradient is zero.
        let clipped = surrogate < unclipped;
        let moves = !clipped && log_ratio.abs() < LOG_RATIO_NATS_MAX;
        let d_surrogate = if moves { unclipped } else { 0.0 };

        // k3 = e^d − 1 − d with d = ln base − ln π (Schulman, "Approximating KL
        // Divergence", 2020). It is never negative, and unbiased for tokens drawn from π.
        let distance = clamp_log_ratio(self.base - self.policy);
        let kl_base = distance.exp() - 1.0 - distance;
        let d_kl = if distance.abs() < LOG_RATIO_NATS_MAX { 1.0 - distance.exp() } else { 0.0 };

        let alpha = f64::from(hyper.policy_coefficient);
        let beta = f64::from(hyper.kl_coefficient);
        TokenLoss {
            loss: -alpha * weight * surrogate + beta * kl_base,
            d_policy: -alpha * weight * d_surrogate + beta * d_kl,
            clipped,
            kl_parent: ratio - 1.0 - log_ratio,
            kl_base,
        }
    }

    /// The token's part of an estimate of KL(π‖base): k3, weighted by π/behaviour because
    /// the token was drawn from the behaviour. Without the weight a rejected token, which
    /// the update has made unlikely, would count e^d. A few of them would make the distance
    /// look far larger than it is.
    pub fn kl_base(&self, hyper: &Hyper) -> f64 {
        let weight = clamp_log_ratio(self.policy - self.behaviour)
            .exp()
            .min(f64::from(hyper.max_importance_weight));
        let distance = clamp_log_ratio(self.base - self.policy);
        weight * (distance.exp() - 1.0 - distance)
    }
}

/// Keeps the exponential of a log-ratio finite.
pub(super) fn clamp_log_ratio(log_ratio: f64) -> f64 {
    log_ratio.clamp(-LOG_RATIO_NATS_MAX, LOG_RATIO_NATS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token whose ratio to the parent is `ratio`, served by the parent.
    fn token(ratio: f64, advantage: f64) -> TokenLogprobs {
        let parent = -1.5;
        let policy = parent + ratio.ln();
        TokenLogprobs { policy, parent, behaviour: parent, base: policy, advantage }
    }

    fn without_kl() -> Hyper {
        Hyper { kl_coefficient: 0.0, ..Hyper::default() }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    /// −∂/∂ln π of min(ρA, clip(ρ)A) is −ρA, except where the minimum is the clipped branch.
    /// There it is 0: with ρ too high for A > 0, or too low for A < 0.
    #[test]
    fn the_policy_gradient_is_zero_only_where_it_would_move_further_away() {
        let cases = [
            (1.0, 0.75, -0.75, false),
            (1.0, -0.25, 0.25, false),
            (1.27, 0.75, -1.27 * 0.75, false),
            (1.29, 0.75, 0.0, true),
            (1.29, -0.25, 1.29 * 0.25, false),
            (0.79, 0.75, -0.79 * 0.75, false),
            (0.79, -0.25, 0.0, true),
            (0.81, -0.25, 0.81 * 0.25, false),
        ];
        for (ratio, advantage, gradient, clipped) in cases {
            let loss = token(ratio, advantage).loss(&without_kl());
            assert!(close(loss.d_policy, gradient), "ρ {ratio}, A {advantage}: {loss:?}");
            assert_eq!(loss.clipped, clipped, "ρ {ratio}, A {advantage}");
        }
    }

    #[test]
    fn the_clipped_loss_stays_at_the_edge_of_the_trust_region() {
        // The hyperparameters are f32, which has 1.28 and 0.8 to seven digits.
        assert!((token(2.0, 0.5).loss(&without_kl()).loss + 1.28 * 0.5).abs() < 1e-7);
        assert!((token(0.5, -0.5).loss(&without_kl()).loss - 0.8 * 0.5).abs() < 1e-7);
    }

    #[test]
    fn the_gradient_of_the_whole_loss_matches_central_differences() {
        const STEP: f64 = 1e-6;
        let hyper = Hyper { kl_coefficient: 0.3, ..Hyper::default() };
        for ratio in [0.5, 0.79, 0.9, 1.1, 1.29, 2.0] {
            for advantage in [0.75, -0.25] {
                for base in [-3.0, -1.4, -0.2] {
                    for behaviour in [-4.0, -1.6, -0.4] {
                        let at = TokenLogprobs { base, behaviour, ..token(ratio, advantage) };
                        let moved = |step: f64| {
                            TokenLogprobs { policy: at.policy + step, ..at }.loss(&hyper).loss
                        };
                        let numeric = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                        let analytic = at.loss(&hyper).d_policy;
                        assert!((numeric - analytic).abs() < 1e-7, "{at:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_importance_weight_corrects_the_behaviour_up_to_its_cap() {
        let hyper = without_kl();
        let gradient =
            |behaviour: f64| TokenLogprobs { behaviour, ..token(1.0, 0.5) }.loss(&hyper).d_policy;
        assert!(close(gradient(-1.5 - 1.5f64.ln()), -0.5 * 1.5), "parent 1.5 times likelier");
        assert!(close(gradient(-1.5 + 4f64.ln()), -0.5 / 4.0), "a quarter as likely");
        assert!(close(gradient(-9.0), -0.5 * 2.0), "capped");
    }

    #[test]
    fn the_kl_penalty_pulls_towards_the_base_from_either_side() {
        let hyper = Hyper { kl_coefficient: 1.0, ..Hyper::default() };
        let pull = |base: f64| TokenLogprobs { base, ..token(1.0, 0.0) }.loss(&hyper);
        assert_eq!(pull(-1.5).kl_base, 0.0);
        assert_eq!(pull(-1.5).d_policy, 0.0);
        assert!(pull(-1.0).d_policy < 0.0, "the base likes it more: raise it");
        assert!(pull(-2.0).d_policy > 0.0, "the base likes it less: lower it");
        assert!(pull(-1.0).kl_base > 0.0 && pull(-2.0).kl_base > 0.0);
    }

    /// There are two tokens. Base and behaviour have (1/2, 1/2), the policy (p, 1 − p). The
    /// expectation over the behaviour's draws is then KL(π‖base).
    #[test]
    fn the_reported_kl_is_exact_at_any_distance() {
        for p in [0.5, 0.9, 0.999, 1e-4] {
            let term = |policy: f64| {
                let half = 0.5f64.ln();
                let token = TokenLogprobs {
                    policy,
                    parent: half,
                    behaviour: half,
                    base: half,
                    advantage: 0.0,
                };
                token.kl_base(&Hyper::default())
            };
            let estimate = 0.5 * (term(f64::ln(p)) + term((1.0 - p).ln()));
            let exact = p * (2.0 * p).ln() + (1.0 - p) * (2.0 * (1.0 - p)).ln();
            assert!(close(estimate, exact), "{estimate} {exact}");
        }
    }

    #[test]
    fn no_distance_overflows() {
        for policy in [-1e4, -300.0, 0.0] {
            let far = TokenLogprobs {
                policy,
                parent: -150.0,
                behaviour: -1e4,
                base: -150.0,
                advantage: 0.75,
            };
            let loss = far.loss(&Hyper::default());
            assert!(loss.loss.is_finite() && loss.d_policy.is_finite(), "{loss:?}");
            assert!(loss.kl_parent.is_finite() && loss.kl_base.is_finite(), "{loss:?}");
        }
    }
}
