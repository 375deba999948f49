//! The learned state: all that is derived from the log besides the episodes that an update learns
//! from. It holds the gates, the references, how each adapter fares, and the trial under way. It is
//! the same after a restart, and after events were forgotten.

use crate::gate::Gate;
use crate::gate::prior::Prior;
use crate::next_edit::EditGate;
use crate::references::{Reference, References};
use crate::trial::{Arms, Rewards, Trial};
use crate::written::Written;
use feedback::episode::Label;
use feedback::event::{AdapterVersion, Event};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Values that a sparkline is drawn from.
const TREND: usize = 320;

/// Rewards of offers made as the user typed, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    pub rewards: VecDeque<f32>,
}

impl Trend {
    fn push(&mut self, reward: f32) {
        if self.rewards.len() == TREND {
            self.rewards.pop_front();
        }
        self.rewards.push_back(reward);
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnedState {
    model_sha256: String,
    /// The prior that the gate started with.
    prior: Prior,
    pub gate: Gate,
    pub edit_gate: EditGate,
    pub references: References,
    /// Rewards of offers made as the user typed, for each adapter.
    pub rewards: BTreeMap<AdapterVersion, Rewards>,
    pub trend: Trend,
    pub written: Written,
    pub trial: Option<Trial>,
    /// A trial that begins with a later event.
    #[serde(skip)]
    announced: Option<Arms>,
    /// Log position of the next event.
    next_seq: u64,
}

impl LearnedState {
    pub fn new(model_sha256: &str, trial: Option<Arms>, prior: &Prior) -> LearnedState {
        LearnedState {
            model_sha256: model_sha256.to_owned(),
            prior: prior.clone(),
            gate: Gate::with_prior(prior),
            edit_gate: EditGate::default(),
            references: References::default(),
            rewards: BTreeMap::new(),
            trend: Trend::default(),
            written: Written::default(),
            trial: None,
            announced: trial,
            next_seq: 0,
        }
    }

    /// Returns whether the gate started with this prior.
    pub fn started_with(&self, prior: &Prior) -> bool {
        self.prior == *prior
    }

    /// Applies an event. Returns a reference that the arms of the trial should be compared on.
    pub fn apply(&mut self, event: &Event, label: Option<&Label>) -> Option<Reference> {
        if let Some(arms) = self.announced.take_if(|arms| event.seq >= arms.since) {
            self.trial = Some(self.begin(arms));
        }
        self.next_seq = event.seq + 1;
        if let Some(label) = label {
            self.gate.learn(label);
            if !label.invoked && label.before.is_none() {
                let reward = f64::from(label.reward.clamp(0.0, 1.0));
                self.rewards.entry(label.adapter).or_default().note(reward);
                self.trend.push(reward as f32);
            }
        }
        self.edit_gate.apply(event);
        self.written.apply(event);
        let reference = self.references.apply(event, &self.model_sha256);
        let trial = self.trial.as_mut()?;
        trial.apply(event, label);
        let since = trial.arms.since;
        reference.filter(|reference| reference.trial == Some(since))
    }

    fn begin(&self, arms: Arms) -> Trial {
        Trial::new(arms, self.rewards.get(&arms.incumbent).copied().unwrap_or_default())
    }

    /// Begins a trial with the next event, or makes the candidate take part in the trial under way.
    /// No event is applied in between, so that a trial that is replayed from the log begins with
    /// the same event.
    pub fn announce(&mut self, candidate: AdapterVersion, incumbent: AdapterVersion) -> Arms {
        let since = self.trial.as_ref().map_or(self.next_seq, |trial| trial.arms.since);
        let arms = Arms { candidate, incumbent, since };
        self.set_trial(Some(arms));
        arms
    }

    /// Sets the trial that runs now, or ends it.
    pub fn set_trial(&mut self, arms: Option<Arms>) {
        self.announced = None;
        self.trial = match (self.trial.take(), arms) {
            (_, None) => None,
            (Some(mut trial), Some(arms)) if trial.arms.since == arms.since => {
                trial.succeed(arms.candidate);
                Some(trial)
            }
            (_, Some(arms)) => Some(self.begin(arms)),
        };
    }

    /// Continues a stored state with the trial that runs now. Returns `false` if that trial began
    /// earlier and this state does not know it.
    pub fn resume_trial(&mut self, arms: Option<Arms>) -> bool {
        let known = self.trial.take();
        match (known, arms) {
            (_, None) => true,
            (_, Some(arms)) if arms.since >= self.next_seq => {
                self.announced = Some(arms);
                true
            }
            // Updates may have replaced the candidate; that changes the meaning of no event.
            (Some(mut trial), Some(arms))
                if (trial.arms.since, trial.arms.incumbent) == (arms.since, arms.incumbent) =>
            {
                trial.succeed(arms.candidate);
                self.trial = Some(trial);
                true
            }
            _ => false,
        }
    }

    /// Log position of the next event.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }
}
