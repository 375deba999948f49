//! Evidence that stays valid however often it is looked at.
//!
//! A gambler bets against the hypothesis that the mean is not above zero. If it is true, no way of
//! betting wins on average, so the probability that a fortune ever reaches 1/α is at most α,
//! whenever one looks (Ville's inequality). Sources: Waudby-Smith and Ramdas, *Estimating means of
//! bounded random variables by betting*, JRSS-B 2023, section 3; for means that change over time
//! Waudby-Smith et al., *Anytime-valid off-policy inference for contextual bandits*, 2022.

use serde::{Deserialize, Serialize};

/// Shares of the fortune that the gamblers bet, one gambler for each. The evidence is what they own
/// together, so that no share has to be chosen in advance.
const BETS: &[f64] = &[0.05, 0.1, 0.2, 0.35, 0.6, 0.9];

/// The fortunes of gamblers who bet that the mean of a value in [−1, 1] is above zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Betting {
    bets: Vec<f64>,
    /// ln of each gambler's fortune.
    fortunes: Vec<f64>,
}

impl Default for Betting {
    fn default() -> Betting {
        Betting::with(BETS)
    }
}

impl Betting {
    /// Each of `bets` lies in (0, 1).
    pub fn with(bets: &[f64]) -> Betting {
        Betting { bets: bets.to_vec(), fortunes: vec![0.0; bets.len()] }
    }

    /// Plays one round. `value` is cut to [−1, 1].
    pub fn observe(&mut self, value: f64) {
        let value = value.clamp(-1.0, 1.0);
        for (fortune, bet) in self.fortunes.iter_mut().zip(&self.bets) {
            *fortune += (1.0 + bet * value).ln();
        }
    }

    /// The mean fortune, which is an e-value at every moment.
    pub fn evidence(&self) -> f64 {
        self.fortunes.iter().map(|fortune| fortune.exp()).sum::<f64>() / self.bets.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// The evidence is looked at 1,000 times in each of 2,000 games without an edge.
    #[test]
    fn without_an_edge_strong_evidence_is_rare() {
        let mut rng = StdRng::seed_from_u64(1);
        let ever_rich = (0..2_000).filter(|_| {
            let mut betting = Betting::default();
            (0..1_000).any(|_| {
                betting.observe(if rng.random::<bool>() { 1.0 } else { -1.0 });
                betting.evidence() >= 20.0
            })
        });
        let share = ever_rich.count() as f64 / 2_000.0;
        assert!(share > 0.005 && share <= 0.05, "{share}");
    }

    #[test]
    fn an_edge_gives_strong_evidence() {
        let mut rng = StdRng::seed_from_u64(2);
        let mut betting = Betting::default();
        for _ in 0..400 {
            betting.observe(if rng.random::<f64>() < 0.65 { 1.0 } else { -1.0 });
        }
        assert!(betting.evidence() > 1e4, "{}", betting.evidence());
    }
}
