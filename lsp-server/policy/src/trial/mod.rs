//! A trial: a candidate answers a part of the requests until the evidence says
//! that it is better than what served before, or worse.
//!
//! The arms are drawn per request with recorded probabilities. Two kinds of
//! evidence are kept, both valid however often one looks ([`betting`]):
//!
//! * **verdicts**: each reward less a baseline, weighted by the inverse of its
//!   arm's probability, candidate for, incumbent against (the doubly robust score
//!   of Waudby-Smith et al. 2022, its baseline the running mean);
//! * **texts**: what the user wrote in the end, in the eyes of both arms: which of
//!   them would have said just this. Both see every text, so this pairs what the
//!   verdicts cannot. (Not their log-probs: an adapter that learns what nobody could
//!   have guessed gains nats, and may lose the lines that were right.)
//!
//! While a trial runs, updates go on from the candidate and take its place in
//! it: the trial is between two lines of adapters. It is a fold over the log,
//! from the event on at which it began.

pub mod betting;
pub mod monitors;
pub mod simulation;

use betting::Betting;
use feedback::episode::Label;
use feedback::event::{AdapterVersion, ArmRecord, Event, EventKind};
use feedback::reward::VALUE;
use monitors::Monitors;
use serde::{Deserialize, Serialize};

/// Evidence of verdicts that promotes: false at most once in 25 trials.
pub const PROMOTING_VERDICTS: f64 = 25.0;

/// Evidence of texts that promotes, false at most once in 100: with the above,
/// 5 % of trials of a candidate that is no better.
pub const PROMOTING_TEXTS: f64 = 100.0;

/// Evidence that fewer of the candidate's offers are taken than of the
/// incumbent's, at which the trial ends. To keep a bad one costs the user, to drop a
/// good one costs what was learned from some hundred verdicts. These values and those
/// of [`REACH_BETS`] are where `hone lab trial` meets its two bounds.
pub const DROPPING: f64 = 20.0;

/// The same of texts: it says less often than the incumbent what is written.
const DROPPING_TEXTS: f64 = 20.0;

/// Evidence of verdicts against a candidate at which texts do not promote it.
const BEHIND: f64 = 3.0;

/// What texts say for a candidate raises the bar above and the one below by this
/// factor at most: they see small differences, which a run of bad luck outshouts.
const TEXTS_SAY: f64 = 5.0;

/// The same of the candidate's offers alone, held against what served before.
pub const DROPPING_BELOW: f64 = 10.0;

/// Bets against a rate that is known: bolder, for they need no other arm.
const REACH_BETS: &[f64] = &[0.2, 0.5, 0.95];

/// Judged offers of candidate and incumbent after which a trial ends undecided.
pub const LONGEST: u64 = 600;

/// Judged offers of each arm before which nothing is promoted, however clear it
/// looks: the monitors want to have seen both.
const EARLIEST: u64 = 20;

/// From this many judged offers on, a candidate whose reward is less than this
/// share of what is known of the incumbent's is given up without more evidence.
const PATIENCE: u64 = 180;
const FUTILE: f64 = 0.7;

/// Share of the requests that the base answers where it is neither.
const BASE_SHARE: f64 = 0.1;

/// Of the other requests, the share that the candidate answers: what was learned is
/// the user's at once, and the rest is what it is held against.
const CANDIDATE_SHARE: f64 = 0.8;

/// What the incumbent answers at the least.
const LEAST_SHARE: f64 = (1.0 - BASE_SHARE) * (1.0 - CANDIDATE_SHARE);

/// Room above the rate to reach, at the least: it divides.
const LEAST_ROOM: f64 = 0.1;

/// Verdicts on earlier versions that tell what a candidate has to reach.
const HISTORY: f64 = 200.0;

/// Standard errors by which the rate to reach lies below the incumbent's: its
/// lower quartile.
const CAUTION: f64 = 0.6745;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arms {
    pub candidate: AdapterVersion,
    pub incumbent: AdapterVersion,
    /// Log position from which on it runs: its name.
    pub since: u64,
}

impl Arms {
    /// Shares of the requests that candidate and incumbent answer; the base the rest.
    fn shares(&self) -> (f64, f64) {
        let base = if self.incumbent == 0 { 0.0 } else { BASE_SHARE };
        let candidate = (1.0 - base) * CANDIDATE_SHARE;
        (candidate, 1.0 - base - candidate)
    }

    /// Which arm answers, by a uniform draw from [0, 1).
    pub fn draw(&self, draw: f64) -> (AdapterVersion, ArmRecord) {
        let (candidate, incumbent) = self.shares();
        let (version, propensity) = match draw {
            draw if draw < candidate => (self.candidate, candidate),
            draw if draw < candidate + incumbent => (self.incumbent, incumbent),
            _ => (0, 1.0 - candidate - incumbent),
        };
        (version, ArmRecord { trial: self.since, propensity: propensity as f32 })
    }
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub end: End,
    /// In words for a person.
    pub reason: String,
    /// Judged offers of candidate and incumbent.
    pub offers: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The candidate serves from now on.
    Promoted,
    /// The incumbent does, and the candidate's line is given up.
    Dropped,
    /// The incumbent does; updates go on from the candidate.
    Undecided,
}

/// Rewards of one arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Rewards {
    pub offers: u64,
    pub sum: f64,
}

impl Rewards {
    pub fn note(&mut self, reward: f64) {
        self.offers += 1;
        self.sum += reward;
    }

    pub fn mean(&self) -> Option<f64> {
        (self.offers > 0).then(|| self.sum / self.offers as f64)
    }

    /// What a mean must reach not to lie below this one, with [`CAUTION`].
    fn low(&self) -> f64 {
        let count = self.offers.max(1) as f64;
        let mean = (self.sum + 1.0) / (count + 4.0);
        (mean - CAUTION * (mean * (1.0 - mean) / count).sqrt()).max(0.0)
    }

    /// The same, as if it were known from fewer.
    fn at_most(self, offers: f64) -> Rewards {
        let share = (offers / self.offers.max(1) as f64).min(1.0);
        Rewards { offers: (self.offers as f64 * share) as u64, sum: self.sum * share }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub arms: Arms,
    pub candidate: Rewards,
    pub incumbent: Rewards,
    /// What served before the trial, as far back as is looked at.
    history: Rewards,
    better: Betting,
    worse: Betting,
    /// Against the rate of what served before: it needs no draw of the other arm.
    below: Betting,
    texts_better: Betting,
    texts_worse: Betting,
    texts: u64,
    /// Texts that the candidate alone would have said, and the incumbent alone.
    gained: u64,
    lost: u64,
    /// Of texts, and of those gained less those lost, each weighted by the inverse of
    /// its arm's share.
    weighted: f64,
    weighted_gain: f64,
    pub monitors: Monitors,
}

impl Trial {
    /// `history`: verdicts on what served before it.
    pub fn new(arms: Arms, history: Rewards) -> Trial {
        Trial {
            arms,
            candidate: Rewards::default(),
            incumbent: Rewards::default(),
            history: history.at_most(HISTORY),
            better: Betting::default(),
            worse: Betting::default(),
            below: Betting::with(REACH_BETS),
            texts_better: Betting::default(),
            texts_worse: Betting::default(),
            texts: 0,
            gained: 0,
            lost: 0,
            weighted: 0.0,
            weighted_gain: 0.0,
            monitors: Monitors::default(),
        }
    }

    /// A newer version takes the candidate's place.
    pub fn succeed(&mut self, candidate: AdapterVersion) {
        self.arms.candidate = candidate;
    }

    /// An event, and the verdict it brought.
    pub fn apply(&mut self, event: &Event, judged: Option<&Label>) {
        self.monitors.apply(event, self.arms);
        if let EventKind::Compared { id, logprobs, greedy: says, .. } = &event.kind
            && let Some(by_incumbent) = self.monitors.was_incumbent(id)
        {
            let asked: Vec<_> = logprobs.iter().map(|(version, _)| *version).collect();
            self.compare(&asked, says, by_incumbent);
        }
        if let Some(judged) = judged
            && judged.before.is_none()
            && let Some(arm) = judged.arm.filter(|arm| arm.trial == self.arms.since)
        {
            self.judge(judged.adapter, f64::from(arm.propensity), f64::from(judged.reward));
        }
    }

    fn judge(&mut self, adapter: AdapterVersion, propensity: f64, reward: f64) {
        let reward = reward.clamp(0.0, 1.0);
        // Every version that was in this trial is the incumbent or of the
        // candidate's line; the base arm beside them is looked at by nobody.
        let is_incumbent = adapter == self.arms.incumbent;
        if adapter == 0 && !is_incumbent {
            return;
        }
        let known = Rewards {
            offers: self.history.offers + self.candidate.offers + self.incumbent.offers,
            sum: self.history.sum + self.candidate.sum + self.incumbent.sum,
        };
        let baseline = known.mean().unwrap_or(f64::from(VALUE));
        // Neither is drawn less often than that, so this stays in [−1, 1].
        let weighted = (reward - baseline) * LEAST_SHARE / propensity.max(LEAST_SHARE);
        let gain = if is_incumbent { -weighted } else { weighted };
        self.better.observe(gain);
        self.worse.observe(-gain);
        if is_incumbent {
            self.incumbent.note(reward);
        } else {
            let reach = self.known_of_incumbent().low();
            self.below.observe((reach - reward) / (1.0 - reach).max(LEAST_ROOM));
            self.candidate.note(reward);
        }
    }

    fn known_of_incumbent(&self) -> Rewards {
        Rewards {
            offers: self.history.offers + self.incumbent.offers,
            sum: self.history.sum + self.incumbent.sum,
        }
    }

    /// `asked`: the adapters that saw a text; `says`: those that would have said it;
    /// `by_incumbent`: who of the two had answered there. What is taken is the taker's
    /// own, so who answers more often would seem to be the better one: each text is
    /// weighted by the inverse of its arm's probability, as verdicts are.
    fn compare(&mut self, asked: &[AdapterVersion], says: &[AdapterVersion], by_incumbent: bool) {
        let candidate = asked.iter().max().filter(|version| **version > self.arms.incumbent);
        let Some(candidate) = candidate.filter(|_| asked.contains(&self.arms.incumbent)) else {
            return;
        };
        let (own, before) = (says.contains(candidate), says.contains(&self.arms.incumbent));
        let (of_candidate, of_incumbent) = self.arms.shares();
        let weight = LEAST_SHARE / if by_incumbent { of_incumbent } else { of_candidate };
        let difference = weight * (f64::from(u8::from(own)) - f64::from(u8::from(before)));
        self.texts += 1;
        self.gained += u64::from(own && !before);
        self.lost += u64::from(before && !own);
        self.weighted += weight;
        self.weighted_gain += difference;
        self.texts_better.observe(difference);
        self.texts_worse.observe(-difference);
    }

    pub fn offers(&self) -> u64 {
        self.candidate.offers + self.incumbent.offers
    }

    /// How it ends, once it does.
    pub fn verdict(&self) -> Option<Verdict> {
        let ends = |end, reason| Some(Verdict { end, reason, offers: self.offers() });
        let rate = |rewards: Rewards| format!("{:.0} %", 100.0 * rewards.mean().unwrap_or(0.0));
        let rates =
            || format!("{} of its offers against {}", rate(self.candidate), rate(self.incumbent));
        if let Some(alarm) = self.monitors.alarm() {
            return ends(End::Dropped, alarm);
        }
        let share = self.candidate.mean().zip(self.known_of_incumbent().mean());
        let futile = self.offers() >= PATIENCE
            && share.is_some_and(|(candidate, incumbent)| candidate < FUTILE * incumbent);
        let texts_say = self.texts_better.evidence().clamp(1.0, TEXTS_SAY);
        let worse = self.worse.evidence() >= DROPPING * texts_say;
        if worse || futile || self.below.evidence() >= DROPPING_BELOW * texts_say {
            return ends(End::Dropped, format!("fewer were taken: {}", rates()));
        }
        if self.texts_worse.evidence() >= DROPPING_TEXTS {
            return ends(End::Dropped, self.text_reason("less"));
        }
        let may_pass = self.candidate.offers.min(self.incumbent.offers) >= EARLIEST;
        if may_pass && self.better.evidence() >= PROMOTING_VERDICTS {
            return ends(End::Promoted, format!("more were taken: {}", rates()));
        }
        // Means alone would refuse every other candidate that is as good.
        let not_behind = self.worse.evidence() < BEHIND;
        if may_pass && not_behind && self.texts_better.evidence() >= PROMOTING_TEXTS {
            return ends(End::Promoted, self.text_reason("more"));
        }
        if self.offers() >= LONGEST {
            let reason = format!("{LONGEST} offers could not tell them apart: {}", rates());
            return ends(End::Undecided, reason);
        }
        None
    }

    fn text_reason(&self, how: &str) -> String {
        format!("it says {how} often just what you write: {}", self.status().texts_line())
    }

    pub fn status(&self) -> TrialStatus {
        TrialStatus {
            arms: self.arms,
            candidate: self.candidate,
            incumbent: self.incumbent,
            texts: self.texts,
            gained: self.gained,
            lost: self.lost,
            text_gain: self.weighted_gain / self.weighted.max(f64::MIN_POSITIVE),
            evidence_better: self.better.evidence(),
            evidence_worse: self.worse.evidence(),
            evidence_below: self.below.evidence(),
            evidence_texts: self.texts_better.evidence(),
            longest: LONGEST,
        }
    }
}

/// What `hone status` tells of a running trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialStatus {
    pub arms: Arms,
    pub candidate: Rewards,
    pub incumbent: Rewards,
    /// Texts that both arms were asked about.
    pub texts: u64,
    /// Of these, what the candidate alone would have said, and the incumbent alone:
    /// what is taken is the taker's own, and the candidate answers more often.
    pub gained: u64,
    pub lost: u64,
    /// The share of texts gained less that lost, as if both had answered as often.
    pub text_gain: f64,
    /// e-values: promotes at [`PROMOTING_VERDICTS`].
    pub evidence_better: f64,
    /// Drops at [`DROPPING`].
    pub evidence_worse: f64,
    /// Drops at [`DROPPING_BELOW`].
    pub evidence_below: f64,
    /// Promotes at [`PROMOTING_TEXTS`].
    pub evidence_texts: f64,
    pub longest: u64,
}

impl TrialStatus {
    /// What the texts say, for a person.
    pub fn texts_line(&self) -> String {
        let TrialStatus { texts, gained, lost, text_gain, .. } = self;
        let how = if *text_gain < 0.0 { "fewer" } else { "more" };
        format!(
            "of {texts} texts it says {:.1} % {how} than the other, weighed by how often each \
             answers ({gained} that the other misses, not {lost} that it says)",
            100.0 * text_gain.abs()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many offers, one of five the incumbent's, 30 % of these taken; and 200 texts, of
    /// which this share is said by the candidate alone, or below zero by the incumbent.
    fn trial(offers: u32, taken: f64, difference: f64) -> Trial {
        let arms = Arms { candidate: 1, incumbent: 0, since: 0 };
        let mut trial = Trial::new(arms, Rewards { offers: 100, sum: 30.0 });
        for text in 0..200 {
            let one_says = (f64::from(text) * 0.3819) % 1.0 < difference.abs();
            let who = u32::from(difference > 0.0);
            let says: &[u32] = if one_says { std::slice::from_ref(&who) } else { &[] };
            trial.compare(&[1, 0], says, text % 5 == 0);
            let reward =
                |of: u32, rate: f64| f64::from(u8::from((f64::from(of) * 0.3819) % 1.0 < rate));
            match text % 5 {
                _ if text >= offers => {}
                0 => trial.judge(0, 1.0 - CANDIDATE_SHARE, reward(text / 5, 0.3)),
                _ => trial.judge(1, CANDIDATE_SHARE, reward(text, taken)),
            }
        }
        trial
    }

    fn end(trial: &Trial) -> Option<End> {
        trial.verdict().map(|verdict| verdict.end)
    }

    #[test]
    fn texts_promote_unless_the_verdicts_speak_against_it() {
        assert_eq!(end(&trial(100, 0.3, 0.15)), Some(End::Promoted));
        assert_eq!(end(&trial(95, 0.3, 0.15)), None, "19 offers of the incumbent are too few");
        assert_eq!(end(&trial(100, 0.28, 0.15)), Some(End::Promoted), "a little behind is chance");
        assert_eq!(end(&trial(100, 0.3, 0.0)), None);
        assert_eq!(end(&trial(100, 0.3, -0.15)), Some(End::Dropped));
    }

    /// Two arms that never say the same, to a user who takes whatever is offered.
    #[test]
    fn who_answers_more_often_is_not_the_better_one_for_that() {
        for incumbent in [0, 3] {
            let arms = Arms { candidate: 4, incumbent, since: 0 };
            let mut trial = Trial::new(arms, Rewards::default());
            for text in 0..1_000 {
                let (version, _) = arms.draw((f64::from(text) * 0.618) % 1.0);
                if version == 0 && incumbent > 0 {
                    continue;
                }
                trial.compare(&[4, incumbent], &[version], version == incumbent);
            }
            assert!(trial.gained > 3 * trial.lost, "{} {}", trial.gained, trial.lost);
            assert!(trial.status().text_gain.abs() < 0.05, "{}", trial.status().text_gain);
            assert!(trial.texts_better.evidence() < 5.0 && trial.texts_worse.evidence() < 5.0);
        }
    }

    #[test]
    fn texts_have_verdicts_say_more_but_not_nothing() {
        let (alone, with) = (trial(60, 0.1, 0.0), trial(60, 0.1, 0.15));
        assert!(alone.worse.evidence() >= DROPPING || alone.below.evidence() >= DROPPING_BELOW);
        assert_eq!((end(&alone), end(&with)), (Some(End::Dropped), None));
        assert_eq!(end(&trial(60, 0.0, 0.15)), Some(End::Dropped), "nobody takes it");
    }
}
