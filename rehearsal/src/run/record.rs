//! What happened in a rehearsal, line by line. Every number of the report comes from here.

use crate::developer::OfferOutcome;
use crate::run::ledger::{LabelCheck, LabelCounts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One typed line, with everything that happened on it in one arm.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LineRecord {
    /// Index in the stream of the file change that the line belongs to.
    pub file: usize,
    /// Places of the stream before this line.
    pub place: usize,
    /// Characters of the line, without indentation and line ending.
    pub chars: usize,
    /// The requests on this line. There are none where an accepted offer completed the line.
    pub requests: Vec<RequestRecord>,
}

impl LineRecord {
    /// Returns how many of `chars` came from offers.
    pub fn completed(&self) -> usize {
        self.requests
            .iter()
            .filter_map(|request| request.outcome)
            .map(OfferOutcome::completed)
            .sum()
    }
}

/// One request and its result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Its place in the stream.
    pub place: usize,
    pub latency_ms: f64,
    /// True if the developer would have typed on before the answer came.
    pub late: bool,
    /// The adapter version that served it; 0 is the base.
    pub version: u64,
    /// `None`: nothing was offered.
    pub outcome: Option<OfferOutcome>,
    /// The judge's rating of the offer, 0 to 10.
    pub rating: Option<f64>,
    /// The offer was accepted and closed a bracket or quote that the editor had closed already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubled: bool,
}

impl RequestRecord {
    pub fn is_accepted(&self) -> bool {
        self.outcome.is_some_and(OfferOutcome::is_accepted)
    }
}

/// An update of an arm's learner, and the place of the stream where it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Update {
    pub place: usize,
    pub number: u64,
    pub ms: Option<f64>,
}

/// An adapter version that began to serve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swap {
    pub place: usize,
    pub version: u64,
    pub ms: Option<f64>,
}

/// Everything that happened in one arm so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ArmRecord {
    pub lines: Vec<LineRecord>,
    pub updates: Vec<Update>,
    pub swaps: Vec<Swap>,
    pub learner_errors: Vec<String>,
    /// What the typist did with the offers.
    pub typist: LabelCounts,
    /// The way in which the daemon's verdicts differ from the typist's, offer by offer.
    pub labels: LabelCheck,
    /// How many requests ended for each reason.
    pub reasons: BTreeMap<String, u64>,
    /// Requests that ended without a reason.
    pub unexplained: u64,
    /// The daemon's counts when it was last asked. It counts swaps from its start on.
    pub updates_seen: u64,
    pub swaps_seen: u64,
    /// Offers about which the daemons of all stretches have stored nothing. Each daemon counts them
    /// from its start on.
    pub withheld: u64,
}

impl ArmRecord {
    /// A stretch is over, whose daemon has withheld so many offers. The next stretch has a new
    /// daemon, which counts from zero.
    pub fn end_stretch(&mut self, withheld: u64) {
        self.withheld += withheld;
        self.swaps_seen = 0;
    }

    /// Counts why a request ended.
    pub fn note_reason(&mut self, reason: Option<String>) {
        match reason {
            Some(reason) => *self.reasons.entry(reason).or_default() += 1,
            None => self.unexplained += 1,
        }
    }
}

/// What an arm's updates report about themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Mean KL(adapter‖base) of the newest adapter on its own batch, in nats per token. `None`
    /// before the first update.
    pub kl_base: Option<f64>,
    /// The references of each update: what was typed instead of offers. They are scored before they
    /// are learned from.
    pub references: Vec<ReferenceScores>,
}

/// Mean log-probability of a token of the references, in nats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReferenceScores {
    pub tokens: u64,
    pub base: f64,
    /// Under the adapter that the update started from.
    pub parent: f64,
}

impl Learned {
    /// Returns how much likelier the references were under the adapters than under the base model,
    /// in nats per token.
    pub fn gain(&self) -> Option<f64> {
        let tokens: u64 = self.references.iter().map(|reference| reference.tokens).sum();
        let gain = |references: &ReferenceScores| {
            references.tokens as f64 * (references.parent - references.base)
        };
        (tokens > 0).then(|| self.references.iter().map(gain).sum::<f64>() / tokens as f64)
    }
}

impl fmt::Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(kl) = self.kl_base {
            write!(f, " · KL to base {kl:.3}")?;
        }
        match self.gain() {
            Some(gain) => write!(f, " · references {gain:+.3} nats a token"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_every_daemon_are_in_the_record() {
        let mut record = ArmRecord { swaps_seen: 2, ..ArmRecord::default() };
        record.end_stretch(3);
        let saved = serde_json::to_string(&record).unwrap();
        let mut record: ArmRecord = serde_json::from_str(&saved).unwrap();
        record.swaps_seen = 1;
        record.end_stretch(1);
        assert_eq!((record.withheld, record.swaps_seen), (4, 0));
    }
}
