//! All that is derived from the log, event by event, beside the episodes an
//! update learns from: the gate, the texts, how each adapter fares, and the
//! trial under way. The same after a restart, and after something was forgotten.

use crate::gate::Gate;
use crate::gate::prior::Prior;
use crate::references::{Reference, References};
use crate::trial::{Arms, Rewards, Trial};
use feedback::episode::Label;
use feedback::event::{AdapterVersion, Event, EventKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Verdicts and looks that a sparkline is drawn from.
const TREND: usize = 320;

/// Rewards and shares kept, oldest first, of what was offered as the user typed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    pub rewards: VecDeque<f32>,
    pub kept: VecDeque<f32>,
}

impl Trend {
    fn push(values: &mut VecDeque<f32>, value: f32) {
        if values.len() == TREND {
            values.pop_front();
        }
        values.push_back(value);
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnedState {
    model_sha256: String,
    /// Where the gate started.
    prior: Prior,
    pub gate: Gate,
    #[serde(rename = "texts")]
    pub references: References,
    /// Rewards of offers made as the user typed, by the adapter that made them.
    pub rewards: BTreeMap<AdapterVersion, Rewards>,
    pub trend: Trend,
    pub trial: Option<Trial>,
    /// A trial whose first event has not been reached yet.
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
            references: References::default(),
            rewards: BTreeMap::new(),
            trend: Trend::default(),
            trial: None,
            announced: trial,
            next_seq: 0,
        }
    }

    pub fn started_with(&self, prior: &Prior) -> bool {
        self.prior == *prior
    }

    /// Answers a text that the arms of the trial should be asked about.
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
                Trend::push(&mut self.trend.rewards, reward as f32);
            }
        }
        if let EventKind::Kept { share, .. } = &event.kind {
            Trend::push(&mut self.trend.kept, *share);
        }
        let reference = self.references.apply(event, &self.model_sha256);
        let trial = self.trial.as_mut()?;
        trial.apply(event, label);
        let since = trial.arms.since;
        reference.filter(|reference| reference.trial == Some(since))
    }

    fn begin(&self, arms: Arms) -> Trial {
        Trial::new(arms, self.rewards.get(&arms.incumbent).copied().unwrap_or_default())
    }

    /// Begins a trial with the next event, or has the candidate take part in the one under
    /// way. Nothing else is applied in between, so that a trial that is read from the log
    /// begins with the same event.
    pub fn announce(&mut self, candidate: AdapterVersion, incumbent: AdapterVersion) -> Arms {
        let since = self.trial.as_ref().map_or(self.next_seq, |trial| trial.arms.since);
        let arms = Arms { candidate, incumbent, since };
        self.set_trial(Some(arms));
        arms
    }

    /// The trial is this one now, or over.
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

    /// Goes on from what was written down, now that this is the trial. `false` if
    /// that one began before, and is not known here.
    pub fn resume_trial(&mut self, arms: Option<Arms>) -> bool {
        let known = self.trial.take();
        match (known, arms) {
            (_, None) => true,
            (_, Some(arms)) if arms.since >= self.next_seq => {
                self.announced = Some(arms);
                true
            }
            // Updates may have succeeded the candidate; no event means another thing for it.
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
