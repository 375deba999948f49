//! Plays verdicts to the gate: each offer is judged before its verdict is learned.

use super::offers::Offer;
use policy::gate::Gate;
use policy::gate::prior::Prior;

/// An offer as it was judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    pub probability: f64,
    pub accepted: bool,
    pub characters: usize,
}

/// The threshold does not change the probability.
pub const ANY_THRESHOLD: f64 = 0.25;

/// Judges the offers of people, each of whom has a new gate.
pub fn play(offers: &[Offer], prior: &Prior) -> Vec<Judged> {
    let mut gate = Gate::with_prior(prior);
    let mut person = None;
    let judge = |offer: &Offer| {
        if person.replace(offer.person) != Some(offer.person) {
            gate = Gate::with_prior(prior);
        }
        let record = gate.judge(&offer.features(gate.recent()), ANY_THRESHOLD);
        let probability = f64::from(record.probability);
        gate.learn(&offer.label(Some(record)));
        Judged { probability, accepted: offer.accepted, characters: offer.characters }
    };
    offers.iter().map(judge).collect()
}
