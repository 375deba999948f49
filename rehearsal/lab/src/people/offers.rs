//! Decided offers as the gate would have seen them.

use super::scores::Scores;
use super::verdicts::{Recorded, Verdict};
use crate::lines::first_line;
use feedback::episode::Label;
use feedback::event::{GateRecord, Outcome, StopReason};
use feedback::reward::{HURRIED_WEIGHT, is_hurried};
use policy::gate::Recent;
use policy::gate::features::{Features, Surroundings, features};

/// Whose log-probs the gate sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Those of the model that is served.
    Served,
    /// Those of the model that made the offers. Where they are not recorded, the served model's, or
    /// without one the mean of those that are recorded.
    Recorded,
}

/// How long, in milliseconds, somebody has not typed who types, and somebody who has paused. The
/// data only tell the two apart.
const TYPING_MS: u64 = 100;
const PAUSED_MS: u64 = 2_000;

/// An offer of one person, with what the gate knows of it apart from the verdicts before.
#[derive(Debug, Clone)]
pub struct Offer {
    pub person: u64,
    pub accepted: bool,
    /// Seconds on screen.
    pub seconds: f64,
    pub shown_ms: u64,
    pub characters: usize,
    pub text: String,
    pub logprobs: Vec<f32>,
    before: String,
    idle_ms: u64,
    /// Offers that the person rejected on this line.
    rejects_here: u32,
}

impl Offer {
    /// The features of the offer after the verdicts so far.
    pub fn features(&self, recent: Recent) -> Features {
        let line_before = self.before.rsplit('\n').next().unwrap_or_default();
        features(&Surroundings {
            logprobs: &self.logprobs,
            text: first_line(&self.text),
            stop: StopReason::Newline,
            line_before,
            rest_of_line: "",
            language: "python",
            idle_ms: self.idle_ms,
            rejects_here: self.rejects_here,
            recent,
        })
    }

    /// The person typed on so soon that the reject says little.
    fn is_hurried(&self) -> bool {
        !self.accepted && is_hurried(Outcome::RejectedEdit, (self.seconds * 1000.0) as u64)
    }

    /// The verdict, for a gate that has judged the offer or not.
    pub fn label(&self, gate: Option<GateRecord>) -> Label {
        Label {
            at_ms: self.shown_ms,
            adapter: 0,
            invoked: false,
            gate,
            arm: None,
            accepted: self.accepted,
            reward: f32::from(u8::from(self.accepted)),
            weight: if self.is_hurried() { HURRIED_WEIGHT } else { 1.0 },
            before: None,
            offer_utf16: self.text.encode_utf16().count() as u32,
        }
    }
}

/// Bytes of a token, about.
const TOKEN_BYTES: usize = 4;

/// The offers of a view in the order in which they were made, one person after the other. The
/// served view leaves out offers that were not scored.
pub fn offers(verdicts: &[Verdict], view: View, scores: Option<&Scores>) -> Vec<Offer> {
    let recorded = || verdicts.iter().filter_map(|verdict| verdict.recorded);
    let sum: f32 = recorded().map(|recorded| recorded.mean).sum();
    let average = sum / recorded().count().max(1) as f32;
    let mut ordered: Vec<&Verdict> = verdicts.iter().collect();
    let by_time = |a: &Verdict, b: &Verdict| a.shown_s.total_cmp(&b.shown_s);
    ordered.sort_by(|a, b| a.person.cmp(&b.person).then(by_time(a, b)));
    let mut offers: Vec<Offer> = vec![];
    for verdict in ordered {
        let served = scores.and_then(|scores| scores.get(verdict));
        let logprobs = match (view, verdict.recorded, served) {
            (View::Recorded, Some(recorded), _) => recorded_logprobs(recorded, &verdict.offer),
            (_, _, Some(served)) => served.to_vec(),
            (View::Recorded, None, None) => {
                let tokens = first_line(&verdict.offer).len().div_ceil(TOKEN_BYTES);
                vec![average; tokens.max(1)]
            }
            (View::Served, _, None) => continue,
        };
        let last = offers.last().filter(|last| last.person == verdict.person);
        let rejects_here = last.map_or(0, |last| match is_same_line(last, &verdict.before) {
            true => last.rejects_here + u32::from(!last.accepted),
            false => 0,
        });
        offers.push(Offer {
            person: verdict.person,
            accepted: verdict.accepted,
            seconds: verdict.decided_s - verdict.shown_s,
            shown_ms: (verdict.shown_s * 1000.0).max(0.0) as u64,
            characters: verdict.offer.chars().count(),
            text: verdict.offer.clone(),
            logprobs,
            before: verdict.before.clone(),
            idle_ms: if verdict.paused { PAUSED_MS } else { TYPING_MS },
            rejects_here,
        });
    }
    offers
}

/// The text above two cursors is compared over this many bytes, because the window may have moved.
const COMPARED: usize = 200;

fn is_same_line(last: &Offer, before: &str) -> bool {
    let above = |text: &str| {
        let end = text.rfind('\n').map_or(0, |at| at + 1);
        text.as_bytes()[end.saturating_sub(COMPARED)..end].to_vec()
    };
    above(&last.before) == above(before)
}

/// Log-probs for the tokens of the first line, each of which has the recorded mean.
fn recorded_logprobs(recorded: Recorded, offer: &str) -> Vec<f32> {
    let share = first_line(offer).len() as f32 / offer.len().max(1) as f32;
    let count = (recorded.tokens as f32 * share).round() as usize;
    vec![recorded.mean; count.max(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_statistics_are_those_of_the_tokens() {
        let recorded = Recorded { mean: -0.5, tokens: 8 };
        assert_eq!(recorded_logprobs(recorded, "abcd\nefg"), [-0.5; 4], "half of the text");
        assert_eq!(recorded_logprobs(recorded, "abcdefg"), [-0.5; 8]);
    }
}
