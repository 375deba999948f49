//! What another eagerness would have meant for this user, by the gate's own predictions.

use feedback::event::Completion;
use serde::Serialize;
use settings::Eagerness;

/// The offers that are needed before anything is said. With fewer, a single one decides.
const OFFERS_MIN: u64 = 100;

/// The change against the balanced eagerness.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outlook {
    pub eagerness: Eagerness,
    /// The relative change of the number of offers.
    pub offers: f64,
    /// The relative change of the accepted characters.
    pub characters: f64,
}

#[derive(Debug, Default)]
pub struct OutlookBuilder {
    judged: u64,
    /// By [`Eagerness::ALL`].
    levels: [Level; 3],
}

#[derive(Debug, Default, Clone, Copy)]
struct Level {
    offers: f64,
    characters: f64,
}

impl OutlookBuilder {
    /// Adds an answer. `saved` are the characters that the user accepted of it, if it was shown.
    pub fn add(&mut self, completion: &Completion, saved: u64) {
        let decision = &completion.decision;
        let Some(gate) = decision.gate.as_ref().filter(|_| !decision.invoked) else { return };
        let text = gate.held_back.as_ref().unwrap_or(&completion.shown);
        if text.is_empty() {
            return;
        }
        self.judged += 1;
        let length = text.chars().count();
        // Of an answer that was held back, nobody knows whether it would have been accepted.
        let expected = match gate.held_back {
            Some(_) => f64::from(gate.probability) * length as f64,
            None => saved as f64,
        };
        for (level, eagerness) in self.levels.iter_mut().zip(Eagerness::ALL) {
            let is_likely = f64::from(gate.probability) >= eagerness.gate_threshold();
            if is_likely && length >= eagerness.least_chars() {
                level.offers += 1.0;
                level.characters += expected;
            }
        }
    }

    /// Returns what the other two would have meant; nothing while little is known.
    pub fn outlooks(&self) -> Vec<Outlook> {
        let balanced = self.levels[1];
        if self.judged < OFFERS_MIN || balanced.offers == 0.0 || balanced.characters == 0.0 {
            return vec![];
        }
        let all = Eagerness::ALL.into_iter().zip(self.levels);
        let others = all.filter(|(eagerness, _)| *eagerness != Eagerness::Balanced);
        let outlook = |(eagerness, level): (Eagerness, Level)| Outlook {
            eagerness,
            offers: level.offers / balanced.offers - 1.0,
            characters: level.characters / balanced.characters - 1.0,
        };
        others.map(outlook).collect()
    }
}

impl Outlook {
    /// The change in a person's words.
    pub fn sentence(&self) -> String {
        let change = |share: f64| {
            let more = if share < 0.0 { "fewer" } else { "more" };
            format!("{:.0} % {more}", 100.0 * share.abs())
        };
        format!(
            "{}: {} offers, {} accepted characters",
            self.eagerness.name(),
            change(self.offers),
            change(self.characters)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::event::{Decision, GateRecord};
    use feedback::testing;

    fn answer(probability: f32, held_back: bool) -> Completion {
        let text = "0123456789".to_owned();
        let gate = GateRecord {
            features_version: 0,
            features: vec![],
            probability,
            propensity: 1.0,
            held_back: held_back.then(|| text.clone()),
        };
        let shown = if held_back { String::new() } else { text };
        let decision = Decision { gate: Some(gate), ..Decision::default() };
        Completion { shown, decision, ..testing::completion("a") }
    }

    #[test]
    fn each_eagerness_is_compared_with_the_balanced_one() {
        let mut builder = OutlookBuilder::default();
        for _ in 0..50 {
            builder.add(&answer(0.5, false), 10);
            builder.add(&answer(0.3, false), 0);
        }
        assert_eq!(builder.outlooks().len(), 2);
        for _ in 0..50 {
            builder.add(&answer(0.2, true), 0);
        }
        let outlooks = builder.outlooks();
        assert_eq!(
            outlooks[0].sentence(),
            "quiet: 50 % fewer offers, 0 % more accepted characters"
        );
        // 50 answers of ten characters, of which the gate expects a fifth to be accepted.
        assert_eq!(
            outlooks[1].sentence(),
            "eager: 50 % more offers, 20 % more accepted characters"
        );
    }

    #[test]
    fn nothing_is_said_of_few_offers() {
        let mut builder = OutlookBuilder::default();
        builder.add(&answer(0.5, false), 10);
        assert_eq!(builder.outlooks(), []);
    }
}
