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
    /// Seconds on screen, where they are known.
    pub seconds: Option<f64>,
    pub shown_ms: u64,
    pub characters: usize,
    pub text: String,
    pub logprobs: Vec<f32>,
    before: String,
    after: String,
    idle_ms: u64,
    /// Offers that the person rejected on this line.
    rejects_here: u32,
}

impl Offer {
    /// The features of the offer after the verdicts so far.
    pub fn features(&self, recent: Recent) -> Features {
        let line_before = self.before.rsplit('\n').next().unwrap_or_default();
        let rest_of_line = self.after.split('\n').next().unwrap_or_default();
        features(&Surroundings {
            logprobs: &self.logprobs,
            text: first_line(&self.text),
            stop: StopReason::Newline,
            line_before,
            rest_of_line,
            language: "python",
            idle_ms: self.idle_ms,
            rejects_here: self.rejects_here,
            recent,
        })
    }

    /// The person typed on so soon that the reject says little.
    fn is_hurried(&self) -> bool {
        let after_ms = self.seconds.map(|seconds| (seconds * 1000.0) as u64);
        let is_hurried = |after_ms| is_hurried(Outcome::RejectedEdit, after_ms);
        !self.accepted && after_ms.is_some_and(is_hurried)
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
            (View::Recorded, Some(recorded), served) => {
                recorded_logprobs(recorded, &verdict.offer, served.map_or(0, <[f32]>::len))
            }
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
            seconds: verdict.decided_s.map(|decided| decided - verdict.shown_s),
            shown_ms: (verdict.shown_s * 1000.0).max(0.0) as u64,
            characters: verdict.offer.chars().count(),
            text: verdict.offer.clone(),
            logprobs,
            before: verdict.before.clone(),
            after: verdict.after.clone(),
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

/// Log-probs for the tokens of the first line that have the recorded mean, first and lowest.
fn recorded_logprobs(recorded: Recorded, offer: &str, served: usize) -> Vec<f32> {
    let line = first_line(offer);
    let share = line.len() as f32 / offer.len().max(1) as f32;
    let count = recorded.tokens.map_or(served, |tokens| (tokens as f32 * share).round() as usize);
    let mut logprobs = vec![recorded.mean; count.max(1)];
    if count > 2 && recorded.first != recorded.mean {
        logprobs[0] = recorded.first;
        if recorded.lowest < recorded.first {
            logprobs[1] = recorded.lowest;
        }
        let set: f32 = logprobs[..2].iter().sum();
        let rest = (recorded.mean * count as f32 - set) / (count - 2) as f32;
        logprobs[2..].fill(rest.min(0.0));
    }
    logprobs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_statistics_are_those_of_the_tokens() {
        let recorded = Recorded { mean: -0.5, first: -1.0, lowest: -2.0, tokens: None };
        let logprobs = recorded_logprobs(recorded, "abc", 10);
        assert_eq!((logprobs.len(), logprobs[0], logprobs[1]), (10, -1.0, -2.0));
        assert!((logprobs.iter().sum::<f32>() + 5.0).abs() < 1e-5);
        let plain = Recorded { mean: -0.5, first: -0.5, lowest: -0.5, tokens: Some(8) };
        assert_eq!(recorded_logprobs(plain, "abcd\nefg", 3), [-0.5; 4], "half of the text");
    }
}
