//! What a verdict says by the time for which the offer was on screen.

use super::verdicts::Verdict;
use serde::Serialize;

/// An offer that is decided sooner was hardly judged, in seconds (`feedback: reward.rs`).
const HURRIED_S: f64 = 0.7;

/// An offer that is open for longer counts as rejected until it is accepted, in seconds (`offers:
/// tracker.rs`).
const TIMEOUT_S: f64 = 10.0;

#[derive(Debug, Serialize, PartialEq)]
pub struct Looks {
    pub hurried: Decided,
    pub in_time: Decided,
    pub late: Decided,
    /// The weight of a hurried reject that makes the hurried verdicts a mixture of judgements,
    /// accepted as often as all later ones, and of typing on.
    pub hurried_weight: f64,
}

#[derive(Debug, Default, Clone, Copy, Serialize, PartialEq)]
pub struct Decided {
    pub offers: usize,
    pub accepted: usize,
}

impl Looks {
    /// Counts the verdicts by the time that they took.
    pub fn of(verdicts: &[Verdict]) -> Looks {
        let mut counts = [Decided::default(); 3];
        for verdict in verdicts {
            let open = verdict.decided_s - verdict.shown_s;
            let count =
                &mut counts[usize::from(open >= HURRIED_S) + usize::from(open >= TIMEOUT_S)];
            count.offers += 1;
            count.accepted += usize::from(verdict.accepted);
        }
        let [hurried, in_time, late] = counts;
        let rate = |accepted: usize, offers: usize| accepted as f64 / offers.max(1) as f64;
        let fast = rate(hurried.accepted, hurried.offers);
        let slow = rate(in_time.accepted + late.accepted, in_time.offers + late.offers);
        // Of the hurried ones so many were judged, and of those so many rejected.
        let judged = (fast / slow.max(f64::MIN_POSITIVE)).min(1.0);
        let hurried_weight = judged * (1.0 - slow) / (1.0 - fast).max(f64::MIN_POSITIVE);
        Looks { hurried, in_time, late, hurried_weight }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hurried_reject_weighs_as_much_as_there_are_judgements_among_them() {
        let verdict = |open_s: f64, accepted| Verdict {
            person: 0,
            shown_s: 1.0,
            decided_s: 1.0 + open_s,
            accepted,
            before: String::new(),
            offer: "x".into(),
            paused: false,
            recorded: None,
        };
        // Half of the slow verdicts accept, and a fifth of the hurried ones: two fifths of those
        // were judged, and half of them rejected, which is a fifth in four fifths.
        let slow = [1.0, 20.0].map(|open_s| [verdict(open_s, true), verdict(open_s, false)]);
        let hurried = (0..5).map(|number| verdict(0.5, number == 0));
        let all: Vec<Verdict> = slow.into_iter().flatten().chain(hurried).collect();
        let looks = Looks::of(&all);
        assert_eq!(looks.hurried, Decided { offers: 5, accepted: 1 });
        assert_eq!(looks.in_time, Decided { offers: 2, accepted: 1 });
        assert_eq!(looks.late, Decided { offers: 2, accepted: 1 });
        assert!((looks.hurried_weight - 0.25).abs() < 1e-9, "{looks:?}");
        assert_eq!(Looks::of(&[]).hurried_weight, 0.0);
    }
}
