//! Monitors: they watch for behaviour that an adapter could learn because it pays without helping,
//! such as offering nothing, offering only what is safe, or longer or shorter texts than before.
//! Each monitor compares the candidate with the incumbent over the same requests, and an alarm ends
//! the trial.

use super::Arms;
use feedback::event::{Completion, Event, EventKind, KeptCheck, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};

/// Answers of each arm that an alarm needs.
const ANSWERS_MIN: u64 = 16;

/// Offers whose arm is remembered for their later outcome.
const REMEMBERED_OFFERS: usize = 1024;

/// An alarm is raised if the candidate offers something less than this often as the incumbent.
const OFFERING_SHARE: f64 = 0.5;

/// An alarm is raised if this share of the candidate's offers are closing marks alone, and if that
/// is so much more than the incumbent's share.
const MARKS_SHARE: f64 = 0.5;
const MARKS_MORE: f64 = 0.3;

/// The same limits for defective texts, and for texts that repeat one word again and again.
const DEFECTIVE_SHARE: f64 = 0.3;
const DEFECTIVE_MORE: f64 = 0.2;

/// Bounds of the mean length relative to the incumbent's.
const SHORTER: f64 = 1.0 / 3.0;
const LONGER: f64 = 3.0;

/// An alarm is raised if the mean −log-prob of the candidate's tokens is below this share of the
/// incumbent's, since it is then certain of everything.
const SURPRISE_SHARE: f64 = 0.1;

/// An alarm is raised if this share of the accepted offers was undone at once.
const UNDONE_SHARE: f64 = 0.5;
const UNDONE_ACCEPTED_MIN: u64 = 6;

/// The highest KL divergence from the base that an update may reach, in nats a token.
pub const KL_LIMIT: f32 = 2.0;

/// What one arm did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Conduct {
    pub answers: u64,
    pub offers: u64,
    pub characters: u64,
    pub marks_only: u64,
    pub defective: u64,
    pub repeating: u64,
    pub tokens: u64,
    /// The sum of −log-prob, in nats.
    pub surprise: f64,
    pub accepted: u64,
    pub undone: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Monitors {
    pub candidate: Conduct,
    pub incumbent: Conduct,
    arms: HashMap<String, bool>,
    order: VecDeque<String>,
}

impl Monitors {
    pub fn apply(&mut self, event: &Event, arms: Arms) {
        match &event.kind {
            EventKind::Completion(completion) => {
                let in_trial = |arm: &feedback::event::ArmRecord| arm.trial == arms.since;
                let is_incumbent = completion.adapter == arms.incumbent;
                let drawn = completion.decision.arm.as_ref().is_some_and(in_trial);
                if drawn && (is_incumbent || completion.adapter > 0) {
                    self.remember(completion.id.clone(), is_incumbent);
                    self.of(is_incumbent).note(completion);
                }
            }
            EventKind::Outcome { id, outcome: Outcome::Accepted, .. } => {
                if let Some(is_incumbent) = self.arms.get(id).copied() {
                    self.of(is_incumbent).accepted += 1;
                }
            }
            EventKind::Kept { id, check: KeptCheck::Undone, .. } => {
                if let Some(is_incumbent) = self.arms.get(id).copied() {
                    self.of(is_incumbent).undone += 1;
                }
            }
            _ => {}
        }
    }

    /// Returns whether the incumbent answered this request of the trial (or the candidate). `None`
    /// for a request of another trial.
    pub fn was_incumbent(&self, id: &str) -> Option<bool> {
        self.arms.get(id).copied()
    }

    fn of(&mut self, is_incumbent: bool) -> &mut Conduct {
        if is_incumbent { &mut self.incumbent } else { &mut self.candidate }
    }

    fn remember(&mut self, id: String, is_incumbent: bool) {
        if self.order.len() == REMEMBERED_OFFERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.arms.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.arms.insert(id, is_incumbent);
    }

    /// The reason why the candidate is dropped, in words for the user.
    pub fn alarm(&self) -> Option<String> {
        let (candidate, incumbent) = (&self.candidate, &self.incumbent);
        if candidate.accepted >= UNDONE_ACCEPTED_MIN
            && share(candidate.undone, candidate.accepted) >= UNDONE_SHARE
            && share(incumbent.undone, incumbent.accepted) < UNDONE_SHARE
        {
            let back = percent(candidate.undone, candidate.accepted);
            return Some(format!("{back} of what was accepted from it was undone at once"));
        }
        if candidate.answers.min(incumbent.answers) < ANSWERS_MIN {
            return None;
        }
        let offering = |conduct: &Conduct| share(conduct.offers, conduct.answers);
        if offering(candidate) < OFFERING_SHARE * offering(incumbent) {
            return Some(format!(
                "it seldom offers anything: it answers {} of the requests, what served before {}",
                percent(candidate.offers, candidate.answers),
                percent(incumbent.offers, incumbent.answers)
            ));
        }
        let is_alarming = |count: fn(&Conduct) -> u64, least: f64, more: f64| {
            let (own, before) = (
                share(count(candidate), candidate.answers),
                share(count(incumbent), incumbent.answers),
            );
            own >= least && own >= before + more
        };
        let of_its = |count: u64, what: &str| {
            Some(format!("{} of its answers are {what}", percent(count, candidate.answers)))
        };
        if is_alarming(|conduct| conduct.marks_only, MARKS_SHARE, MARKS_MORE) {
            return of_its(candidate.marks_only, "closing brackets and marks alone");
        }
        if is_alarming(|conduct| conduct.defective, DEFECTIVE_SHARE, DEFECTIVE_MORE) {
            return of_its(candidate.defective, "defective (blank, unbalanced, or there already)");
        }
        if is_alarming(|conduct| conduct.repeating, DEFECTIVE_SHARE, DEFECTIVE_MORE) {
            return of_its(candidate.repeating, "one word again and again");
        }
        if candidate.offers.min(incumbent.offers) < ANSWERS_MIN {
            return None;
        }
        let length = |conduct: &Conduct| share(conduct.characters, conduct.offers);
        let ratio = length(candidate) / length(incumbent).max(1e-9);
        if !(SHORTER..=LONGER).contains(&ratio) {
            let (own, before) = (length(candidate), length(incumbent));
            return Some(format!(
                "its offers have {own:.0} characters on average, {before:.0} before"
            ));
        }
        let surprise = |conduct: &Conduct| conduct.surprise / conduct.tokens.max(1) as f64;
        if surprise(candidate) < SURPRISE_SHARE * surprise(incumbent) {
            return Some("it has become certain of everything it offers".into());
        }
        None
    }
}

impl Conduct {
    fn note(&mut self, completion: &Completion) {
        self.answers += 1;
        self.defective += u64::from(completion.decision.defect.is_some());
        // An answer that the gate held back counts as an offer too.
        let held_back = completion.decision.gate.as_ref().and_then(|gate| gate.held_back.as_ref());
        let text = held_back.unwrap_or(&completion.shown);
        if text.is_empty() {
            return;
        }
        self.offers += 1;
        self.characters += text.chars().count() as u64;
        let is_mark = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '"' | '\'');
        self.marks_only += u64::from(text.chars().all(is_mark));
        self.repeating += u64::from(repeats(text));
        self.tokens += completion.tokens.len() as u64;
        self.surprise -=
            completion.tokens.iter().map(|token| f64::from(token.logprob.max(-20.0))).sum::<f64>();
    }
}

/// Returns whether a text has four words or more and most of them are the same.
fn repeats(text: &str) -> bool {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    let total: usize = counts.values().sum();
    total >= 4 && counts.values().any(|count| 2 * count > total)
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", 100.0 * share(part, whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::event::{
        ArmRecord, Decision, Defect, Evidence, Sampling, StopReason, TokenRecord, Typed,
    };

    const ARMS: Arms = Arms { candidate: 4, incumbent: 3, since: 10 };

    struct Scenario {
        monitors: Monitors,
        count: usize,
    }

    impl Scenario {
        fn new() -> Scenario {
            Scenario { monitors: Monitors::default(), count: 0 }
        }

        fn event(&mut self, kind: EventKind) {
            self.monitors.apply(&Event { seq: 11, at_ms: 0, kind }, ARMS);
        }

        fn answers(&mut self, adapter: u32, text: &str, defect: Option<Defect>) -> String {
            self.count += 1;
            let id = format!("o{}", self.count);
            let arm = Some(ArmRecord { trial: ARMS.since, propensity: 0.5 });
            self.event(EventKind::Completion(Box::new(Completion {
                id: id.clone(),
                path: String::new(),
                context: vec![],
                real_names: vec![],
                language: String::new(),
                model_sha256: String::new(),
                adapter,
                sampling: Sampling::GREEDY,
                prompt: vec![],
                adapter_from: 0,
                healing: String::new(),
                tokens: vec![TokenRecord { id: 1, logprob: -0.5 }; text.len() / 4 + 1],
                stop: StopReason::Newline,
                shown: text.into(),
                shown_from: 0,
                timing: Default::default(),
                decision: Decision { arm, defect, ..Decision::default() },
                typed: Typed::default(),
                experts: None,
            })));
            id
        }

        /// Compares twenty answers of each arm. The incumbent's answers are sound.
        fn against_sound(candidate: impl Fn(usize) -> &'static str) -> Option<String> {
            let mut scenario = Scenario::new();
            for i in 0..20 {
                scenario.answers(3, "let total = sum(values);", None);
                scenario.answers(4, candidate(i), None);
            }
            scenario.monitors.alarm()
        }
    }

    #[test]
    fn a_sound_candidate_raises_no_alarm() {
        assert_eq!(Scenario::against_sound(|_| "let count = values.len();"), None);
        assert_eq!(Scenario::against_sound(|i| if i < 8 { ");" } else { "return values;" }), None);
    }

    #[test]
    fn each_planted_hack_raises_its_alarm() {
        let brackets = Scenario::against_sound(|_| "})").unwrap();
        assert!(brackets.contains("closing brackets"), "{brackets}");
        let no_offer = Scenario::against_sound(|_| "").unwrap();
        assert!(no_offer.contains("seldom offers anything"), "{no_offer}");
        let again = Scenario::against_sound(|_| "self self self self self").unwrap();
        assert!(again.contains("again and again"), "{again}");
        let short = Scenario::against_sound(|_| "x1").unwrap();
        assert!(short.contains("characters on average"), "{short}");
    }

    #[test]
    fn defective_answers_and_undone_accepts_raise_an_alarm() {
        let mut scenario = Scenario::new();
        for i in 0..20 {
            scenario.answers(3, "let total = sum(values);", None);
            let defect = (i % 2 == 0).then_some(Defect::RepeatsSuffix);
            scenario.answers(4, "let total = sum(values);", defect);
        }
        let alarm = scenario.monitors.alarm().unwrap();
        assert!(alarm.contains("50 % of its answers are defective"), "{alarm}");

        let mut scenario = Scenario::new();
        for _ in 0..UNDONE_ACCEPTED_MIN {
            let id = scenario.answers(4, "value", None);
            let outcome = Outcome::Accepted;
            scenario.event(EventKind::Outcome {
                id: id.clone(),
                outcome,
                evidence: Evidence::Command,
            });
            scenario.event(EventKind::Kept { id, check: KeptCheck::Undone, share: 0.0 });
        }
        let alarm = scenario.monitors.alarm().unwrap();
        assert!(alarm.contains("100 % of what was accepted from it was undone"), "{alarm}");
    }

    #[test]
    fn answers_of_another_trial_are_not_counted() {
        let mut scenario = Scenario::new();
        let arms = Arms { since: 99, ..ARMS };
        let kind = EventKind::Kept { id: "o".into(), check: KeptCheck::Undone, share: 0.0 };
        scenario.answers(4, "x", None);
        let before = scenario.monitors.candidate;
        scenario.monitors.apply(&Event { seq: 100, at_ms: 0, kind }, arms);
        assert_eq!(scenario.monitors.candidate, before);
    }
}
