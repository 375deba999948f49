//! Simulates trials of users with a known acceptance rate, to show which differences a trial can
//! detect.

use feedback::job::Distribution;
use policy::trial::{Arms, End, Rewards, Trial};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;

/// Relative differences between the candidate's and the incumbent's acceptance rate.
pub const EFFECTS: [f64; 6] = [-1.0, -0.5, -0.2, 0.0, 0.2, 0.5];

/// Verdicts on the incumbent that are known when a trial begins.
const KNOWN: u64 = 100;

/// The results of many trials with the same true effect. They leave out the evidence from
/// references, because nobody can know how that depends on acceptance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulatedTrials {
    pub effect: f64,
    pub promoted: f64,
    pub dropped: f64,
    pub undecided: f64,
    /// Judged offers of candidate and incumbent until the end.
    pub offers_p50: u64,
    pub offers_p95: u64,
}

pub fn simulate_trials(effect: f64, accept_rate: f64, runs: usize, seed: u64) -> SimulatedTrials {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut lengths = vec![];
    let mut ends = [0usize; 3];
    for _ in 0..runs {
        let (end, offers) = run(effect, accept_rate, &mut rng);
        lengths.push(offers as f32);
        ends[end as usize] += 1;
    }
    let share = |end: End| ends[end as usize] as f64 / runs as f64;
    let offers = Distribution::of(lengths);
    SimulatedTrials {
        effect,
        promoted: share(End::Promoted),
        dropped: share(End::Dropped),
        undecided: share(End::Undecided),
        offers_p50: offers.p50 as u64,
        offers_p95: offers.p95 as u64,
    }
}

fn run(effect: f64, accept_rate: f64, rng: &mut StdRng) -> (End, u64) {
    let arms = Arms { candidate: 1, incumbent: 0, since: 0 };
    let accepted = (0..KNOWN).filter(|_| rng.random::<f64>() < accept_rate).count();
    let mut trial = Trial::new(arms, Rewards { offers: KNOWN, sum: accepted as f64 });
    loop {
        let (version, arm) = arms.draw(rng.random());
        let rate = if version == 1 { accept_rate * (1.0 + effect) } else { accept_rate };
        let reward = f64::from(u8::from(rng.random::<f64>() < rate));
        trial.observe_reward(version, f64::from(arm.propensity), reward);
        if let Some(verdict) = trial.verdict() {
            return (verdict.end, verdict.offers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: usize = 1_000;

    #[test]
    fn a_candidate_that_is_not_better_is_rarely_promoted() {
        for effect in [-0.2, 0.0] {
            let trials = simulate_trials(effect, 0.3, RUNS, 1);
            assert!(trials.promoted <= 0.05, "{trials:?}");
        }
    }

    #[test]
    fn a_candidate_that_is_never_accepted_is_dropped_within_thirty_offers() {
        let trials = simulate_trials(-1.0, 0.3, RUNS, 2);
        assert!(trials.dropped == 1.0 && trials.offers_p95 <= 30, "{trials:?}");
    }

    #[test]
    fn a_candidate_that_halves_acceptance_is_dropped_within_two_hundred_offers() {
        let trials = simulate_trials(-0.5, 0.3, RUNS, 3);
        assert!(trials.dropped > 0.95 && trials.offers_p95 <= 200, "{trials:?}");
    }

    #[test]
    fn a_candidate_that_is_as_good_is_rarely_dropped_by_chance() {
        for (effect, at_most) in [(0.0, 0.15), (0.2, 0.03)] {
            let trials = simulate_trials(effect, 0.3, RUNS, 5);
            assert!(trials.dropped <= at_most, "{trials:?}");
        }
    }

    #[test]
    fn a_much_better_candidate_is_mostly_promoted() {
        let trials = simulate_trials(0.5, 0.3, RUNS, 4);
        assert!(trials.promoted > 0.6, "{trials:?}");
    }
}
