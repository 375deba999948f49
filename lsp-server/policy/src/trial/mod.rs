//! A trial: a candidate adapter answers a part of the requests until the evidence says that it is
//! better or worse than the incumbent, which served before.
//!
//! The arm is drawn for each request with a recorded probability. Two kinds of evidence are kept,
//! and both stay valid however often one looks ([`betting`]):
//!
//! * **verdicts**: each reward less a baseline, weighted by the inverse of its arm's probability.
//!   The candidate's count for it, the incumbent's against it (the doubly robust score of
//!   Waudby-Smith et al. 2022 with the running mean as its baseline);
//! * **references**: for each text that the user has in the end, which of the two arms decodes just
//!   this text greedily. Both arms see every reference, so this is a paired comparison, which
//!   verdicts cannot be. (Log-probs are not compared: an adapter that learns lines that nobody
//!   could have guessed gains nats, and may lose lines that were right.)
//!
//! While a trial runs, updates start from the candidate, and their adapters take its place in the
//! trial. So the trial compares two lines of adapters. It is a fold over the log, from the event at
//! which it began.

mod arms;
pub mod betting;
pub mod monitors;
mod rewards;
mod status;

pub use arms::Arms;
use arms::SHARE_MIN;
use betting::Betting;
use feedback::episode::Label;
use feedback::event::{AdapterVersion, Event, EventKind};
use feedback::reward::VALUE;
use monitors::Monitors;
pub use rewards::Rewards;
use serde::{Deserialize, Serialize};
pub use status::TrialStatus;

/// Evidence of verdicts that promotes. It is false at most once in 25 trials.
pub const PROMOTING_VERDICTS: f64 = 25.0;

/// Evidence of references that promotes. It is false at most once in 100 trials, so that together
/// with the verdicts at most 5 % of candidates that are not better are promoted.
pub const PROMOTING_REFERENCES: f64 = 100.0;

/// Evidence of verdicts that drops: fewer of the candidate's offers are accepted than of the
/// incumbent's. To keep a bad candidate costs the user, and to drop a good one costs what was
/// learned from some hundred verdicts. With these values and those of [`KNOWN_RATE_BETS`] `hone-lab
/// trial` meets its two bounds.
pub const DROPPING: f64 = 20.0;

/// Evidence of references that drops: the candidate gives the reference less often than the
/// incumbent.
const DROPPING_REFERENCES: f64 = 20.0;

/// Evidence of verdicts against a candidate at which references do not promote it.
const BEHIND_VERDICTS: f64 = 3.0;

/// The highest factor by which references in favour of a candidate raise the evidence that is
/// needed to drop it. References detect small gains that a short run of rejected offers would hide.
const REFERENCES_FACTOR: f64 = 5.0;

/// Evidence that drops if the candidate's offers alone fall below the known rate of the incumbent.
pub const DROPPING_BELOW: f64 = 10.0;

/// Bets against a known rate. They are bolder, because they need no other arm.
const KNOWN_RATE_BETS: &[f64] = &[0.2, 0.5, 0.95];

/// Judged offers of candidate and incumbent after which a trial ends undecided.
pub const OFFERS_MAX: u64 = 600;

/// Judged offers of each arm before which nothing is promoted, however clear the evidence is,
/// because the monitors must have seen both arms.
const OFFERS_MIN: u64 = 20;

/// From this many judged offers on, a candidate is dropped without more evidence if its mean reward
/// is below this share of the incumbent's.
const FUTILE_OFFERS: u64 = 180;
const FUTILE_SHARE: f64 = 0.7;

/// The least room above the rate to reach, which is a divisor.
const ROOM_MIN: f64 = 0.1;

/// Verdicts on earlier versions that count for the rate that a candidate has to reach.
const HISTORY: f64 = 200.0;

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub end: End,
    /// The reason in words for the user.
    pub reason: String,
    /// Judged offers of candidate and incumbent.
    pub offers: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The candidate serves from now on.
    Promoted,
    /// The incumbent serves, and the candidate's line of adapters is given up.
    Dropped,
    /// The incumbent serves, and updates start from the candidate.
    Undecided,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub arms: Arms,
    pub candidate: Rewards,
    pub incumbent: Rewards,
    /// Verdicts on the adapters that served before the trial, at most [`HISTORY`] of them.
    history: Rewards,
    better: Betting,
    worse: Betting,
    /// Evidence against the known rate of the incumbent. It needs no draw of the other arm.
    below: Betting,
    references_better: Betting,
    references_worse: Betting,
    references: u64,
    /// References that only the candidate gives, and that only the incumbent gives.
    gained: u64,
    lost: u64,
    /// Sums over the references, and over gained less lost ones, each weighted by the inverse of
    /// its arm's share.
    weighted: f64,
    weighted_gain: f64,
    pub monitors: Monitors,
}

impl Trial {
    /// Begins a trial. `history` holds the verdicts on what served before.
    pub fn new(arms: Arms, history: Rewards) -> Trial {
        Trial {
            arms,
            candidate: Rewards::default(),
            incumbent: Rewards::default(),
            history: history.at_most(HISTORY),
            better: Betting::default(),
            worse: Betting::default(),
            below: Betting::with(KNOWN_RATE_BETS),
            references_better: Betting::default(),
            references_worse: Betting::default(),
            references: 0,
            gained: 0,
            lost: 0,
            weighted: 0.0,
            weighted_gain: 0.0,
            monitors: Monitors::default(),
        }
    }

    /// Puts a newer version in the candidate's place.
    pub fn succeed(&mut self, candidate: AdapterVersion) {
        self.arms.candidate = candidate;
    }

    /// Applies an event and the label that it brought.
    pub fn apply(&mut self, event: &Event, label: Option<&Label>) {
        self.monitors.apply(event, self.arms);
        if let EventKind::Compared { id, logprobs, greedy, .. } = &event.kind
            && let Some(by_incumbent) = self.monitors.was_incumbent(id)
        {
            let asked: Vec<_> = logprobs.iter().map(|(version, _)| *version).collect();
            self.compare(&asked, greedy, by_incumbent);
        }
        if let Some(label) = label
            && label.before.is_none()
            && let Some(arm) = label.arm.filter(|arm| arm.trial == self.arms.since)
        {
            self.observe_reward(label.adapter, f64::from(arm.propensity), f64::from(label.reward));
        }
    }

    /// Learns the reward of an offer, which was drawn with this propensity.
    pub fn observe_reward(&mut self, adapter: AdapterVersion, propensity: f64, reward: f64) {
        let reward = reward.clamp(0.0, 1.0);
        // Every version in this trial is the incumbent or belongs to the candidate's line. The
        // answers of the base as a third arm are not compared.
        let is_incumbent = adapter == self.arms.incumbent;
        if adapter == 0 && !is_incumbent {
            return;
        }
        let known = Rewards {
            offers: self.history.offers + self.candidate.offers + self.incumbent.offers,
            sum: self.history.sum + self.candidate.sum + self.incumbent.sum,
        };
        let baseline = known.mean().unwrap_or(f64::from(VALUE));
        // Neither arm is drawn less often than this share, so the value stays in [−1, 1].
        let weighted = (reward - baseline) * SHARE_MIN / propensity.max(SHARE_MIN);
        let gain = if is_incumbent { -weighted } else { weighted };
        self.better.observe(gain);
        self.worse.observe(-gain);
        if is_incumbent {
            self.incumbent.note(reward);
        } else {
            let reach = self.known_of_incumbent().low();
            self.below.observe((reach - reward) / (1.0 - reach).max(ROOM_MIN));
            self.candidate.note(reward);
        }
    }

    fn known_of_incumbent(&self) -> Rewards {
        Rewards {
            offers: self.history.offers + self.incumbent.offers,
            sum: self.history.sum + self.incumbent.sum,
        }
    }

    /// Compares both arms on a reference. `asked` holds the adapters that scored it, `greedy` those
    /// that decode it greedily, and `by_incumbent` says whether the incumbent had answered there.
    /// An accepted text is the answering arm's own, so the arm that answers more often would look
    /// better. Therefore each reference is weighted by the inverse of its arm's probability, as
    /// verdicts are.
    fn compare(&mut self, asked: &[AdapterVersion], greedy: &[AdapterVersion], by_incumbent: bool) {
        let candidate = asked.iter().max().filter(|version| **version > self.arms.incumbent);
        let Some(candidate) = candidate.filter(|_| asked.contains(&self.arms.incumbent)) else {
            return;
        };
        let (own, before) = (greedy.contains(candidate), greedy.contains(&self.arms.incumbent));
        let (of_candidate, of_incumbent) = self.arms.shares();
        let weight = SHARE_MIN / if by_incumbent { of_incumbent } else { of_candidate };
        let difference = weight * (f64::from(u8::from(own)) - f64::from(u8::from(before)));
        self.references += 1;
        self.gained += u64::from(own && !before);
        self.lost += u64::from(before && !own);
        self.weighted += weight;
        self.weighted_gain += difference;
        self.references_better.observe(difference);
        self.references_worse.observe(-difference);
    }

    pub fn offers(&self) -> u64 {
        self.candidate.offers + self.incumbent.offers
    }

    /// The verdict, once the trial ends.
    pub fn verdict(&self) -> Option<Verdict> {
        let ends = |end, reason| Some(Verdict { end, reason, offers: self.offers() });
        let rates = || self.rates();
        if let Some(alarm) = self.monitors.alarm() {
            return ends(End::Dropped, alarm);
        }
        let share = self.candidate.mean().zip(self.known_of_incumbent().mean());
        let futile = self.offers() >= FUTILE_OFFERS
            && share.is_some_and(|(candidate, incumbent)| candidate < FUTILE_SHARE * incumbent);
        let factor = self.references_better.evidence().clamp(1.0, REFERENCES_FACTOR);
        let worse = self.worse.evidence() >= DROPPING * factor;
        if worse || futile || self.below.evidence() >= DROPPING_BELOW * factor {
            return ends(End::Dropped, format!("fewer of its offers were accepted{}", rates()));
        }
        if self.references_worse.evidence() >= DROPPING_REFERENCES {
            return ends(End::Dropped, self.reference_reason("less"));
        }
        let may_pass = self.candidate.offers.min(self.incumbent.offers) >= OFFERS_MIN;
        if may_pass && self.better.evidence() >= PROMOTING_VERDICTS {
            return ends(End::Promoted, format!("more of its offers were accepted{}", rates()));
        }
        // A comparison of the means alone would refuse every second candidate that is as good.
        let not_behind = self.worse.evidence() < BEHIND_VERDICTS;
        if may_pass && not_behind && self.references_better.evidence() >= PROMOTING_REFERENCES {
            return ends(End::Promoted, self.reference_reason("more"));
        }
        if self.offers() >= OFFERS_MAX {
            let reason = format!("{OFFERS_MAX} offers could not tell them apart{}", rates());
            return ends(End::Undecided, reason);
        }
        None
    }

    /// How often the candidate's offers were accepted, and the incumbent's, in this trial and
    /// before. Nothing where both are the same in whole percent.
    fn rates(&self) -> String {
        let percent = |rewards: Rewards| rewards.mean().map(|mean| (100.0 * mean).round());
        match (percent(self.candidate), percent(self.known_of_incumbent())) {
            (Some(own), Some(before)) if own != before => {
                format!(": {own} %, against {before} % of what served before")
            }
            _ => String::new(),
        }
    }

    fn reference_reason(&self, how: &str) -> String {
        format!("it gives {how} often just what you write: {}", self.status().references_line())
    }

    pub fn status(&self) -> TrialStatus {
        TrialStatus {
            arms: self.arms,
            candidate: self.candidate,
            incumbent: self.incumbent,
            references: self.references,
            gained: self.gained,
            lost: self.lost,
            reference_gain: self.weighted_gain / self.weighted.max(f64::MIN_POSITIVE),
            evidence_better: self.better.evidence(),
            evidence_worse: self.worse.evidence(),
            evidence_below: self.below.evidence(),
            evidence_references: self.references_better.evidence(),
            longest: OFFERS_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::arms::CANDIDATE_SHARE;
    use super::*;

    /// A trial with this many offers and 200 references. One offer in five is the incumbent's, and
    /// 30 % of those are accepted. `difference` is the share of references that only the candidate
    /// gives, or below zero only the incumbent.
    fn trial(offers: u32, accepted: f64, difference: f64) -> Trial {
        let arms = Arms { candidate: 1, incumbent: 0, since: 0 };
        let mut trial = Trial::new(arms, Rewards { offers: 100, sum: 30.0 });
        for reference in 0..200 {
            let is_given = (f64::from(reference) * 0.3819) % 1.0 < difference.abs();
            let who = u32::from(difference > 0.0);
            let greedy: &[u32] = if is_given { std::slice::from_ref(&who) } else { &[] };
            trial.compare(&[1, 0], greedy, reference % 5 == 0);
            let reward =
                |of: u32, rate: f64| f64::from(u8::from((f64::from(of) * 0.3819) % 1.0 < rate));
            match reference % 5 {
                _ if reference >= offers => {}
                0 => trial.observe_reward(0, 1.0 - CANDIDATE_SHARE, reward(reference / 5, 0.3)),
                _ => trial.observe_reward(1, CANDIDATE_SHARE, reward(reference, accepted)),
            }
        }
        trial
    }

    fn end(trial: &Trial) -> Option<End> {
        trial.verdict().map(|verdict| verdict.end)
    }

    #[test]
    fn references_promote_unless_verdicts_are_against_the_candidate() {
        assert_eq!(end(&trial(100, 0.3, 0.15)), Some(End::Promoted));
        assert_eq!(end(&trial(95, 0.3, 0.15)), None, "19 offers of the incumbent are too few");
        assert_eq!(end(&trial(100, 0.28, 0.15)), Some(End::Promoted), "a little behind is chance");
        assert_eq!(end(&trial(100, 0.3, 0.0)), None);
        assert_eq!(end(&trial(100, 0.3, -0.15)), Some(End::Dropped));
    }

    /// The two arms never give the same text, and the user accepts every offer.
    #[test]
    fn the_arm_that_answers_more_often_does_not_look_better() {
        for incumbent in [0, 3] {
            let arms = Arms { candidate: 4, incumbent, since: 0 };
            let mut trial = Trial::new(arms, Rewards::default());
            for reference in 0..1_000 {
                let (version, _) = arms.draw((f64::from(reference) * 0.618) % 1.0);
                if version == 0 && incumbent > 0 {
                    continue;
                }
                trial.compare(&[4, incumbent], &[version], version == incumbent);
            }
            assert!(trial.gained > 3 * trial.lost, "{} {}", trial.gained, trial.lost);
            assert!(
                trial.status().reference_gain.abs() < 0.05,
                "{}",
                trial.status().reference_gain
            );
            assert!(
                trial.references_better.evidence() < 5.0 && trial.references_worse.evidence() < 5.0
            );
        }
    }

    /// A trial ended with "fewer were accepted: 0 % of its offers against 0 %", because the offers
    /// of the incumbent before the trial, which count, were left out.
    #[test]
    fn the_reason_compares_with_all_that_is_known_of_the_incumbent() {
        let reason = trial(60, 0.0, 0.0).verdict().unwrap().reason;
        let start = "fewer of its offers were accepted: 0 %, against 3";
        assert!(
            reason.starts_with(start) && reason.ends_with(" % of what served before"),
            "{reason}"
        );
        let arms = Arms { candidate: 1, incumbent: 0, since: 0 };
        let mut equal = Trial::new(arms, Rewards::default());
        equal.candidate.note(0.0);
        equal.incumbent.note(0.0);
        assert_eq!(equal.rates(), "");
    }

    #[test]
    fn references_for_a_candidate_delay_but_do_not_prevent_dropping_it() {
        let (alone, with) = (trial(60, 0.1, 0.0), trial(60, 0.1, 0.15));
        assert!(alone.worse.evidence() >= DROPPING || alone.below.evidence() >= DROPPING_BELOW);
        assert_eq!((end(&alone), end(&with)), (Some(End::Dropped), None));
        assert_eq!(end(&trial(60, 0.0, 0.15)), Some(End::Dropped), "nobody accepts it");
    }
}
