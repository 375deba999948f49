//! What happened in a rehearsal, line by line: the one source of every number.

use crate::developer::OfferOutcome;
use crate::run::ledger::LabelCounts;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One typed line, with everything that happened on it in one arm.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LineRecord {
    /// The file change it belongs to, counted over the stream.
    pub file: usize,
    /// Places of the stream before this line.
    pub place: usize,
    /// Characters of the line, without indentation and line ending.
    pub chars: usize,
    /// Requests made on it; none where an accepted offer carried the arm past.
    #[serde(rename = "asked")]
    pub requests: Vec<RequestRecord>,
}

impl LineRecord {
    /// Of `chars`, those that came from offers.
    pub fn completed(&self) -> usize {
        self.requests
            .iter()
            .filter_map(|request| request.outcome)
            .map(OfferOutcome::completed)
            .sum()
    }
}

/// One request and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Its place in the stream.
    pub place: usize,
    pub latency_ms: f64,
    /// The developer would have typed on before the answer came.
    pub late: bool,
    /// The adapter version that served it; 0 is the base.
    pub version: u64,
    /// `None`: nothing was offered.
    #[serde(rename = "fate")]
    pub outcome: Option<OfferOutcome>,
    /// What a judge gave the offer, 0 to 10.
    #[serde(default)]
    pub rating: Option<f64>,
}

impl RequestRecord {
    pub fn is_accepted(&self) -> bool {
        self.outcome.is_some_and(OfferOutcome::is_accepted)
    }
}

/// An update of an arm's learner, at the place of the stream where it landed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Update {
    pub place: usize,
    pub number: u64,
    pub ms: Option<f64>,
}

/// An adapter version put into service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swap {
    pub place: usize,
    pub version: u64,
    pub ms: Option<f64>,
}

/// All of one arm so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ArmRecord {
    pub lines: Vec<LineRecord>,
    pub updates: Vec<Update>,
    pub swaps: Vec<Swap>,
    pub learner_errors: Vec<String>,
    /// What the typist did.
    pub typist: LabelCounts,
    /// As the daemon counted them when it was last asked; it counts swaps from
    /// its start on.
    pub updates_seen: u64,
    pub swaps_seen: u64,
}

/// What an arm's updates report of themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Mean KL(adapter‖base) of the newest adapter on its own batch, in nats a
    /// token; `None` before the first update.
    pub kl_base: Option<f64>,
    /// What was typed instead, by update, scored before it was learned from.
    #[serde(rename = "texts")]
    pub references: Vec<ReferenceScores>,
}

/// Mean log-probs of a token, in nats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReferenceScores {
    pub tokens: u64,
    pub base: f64,
    /// Of the adapter that the update went on from.
    pub parent: f64,
}

impl Learned {
    /// How much likelier than the base the adapters found the next references, in nats
    /// a token.
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
