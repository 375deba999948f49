//! All that is derived from the log, event by event, beside the episodes an
//! update learns from: the gate, the texts, how each adapter fares, and the
//! trial under way. The same after a restart, and after something was forgotten.

use crate::gate::Gate;
use crate::gate::prior::Prior;
use crate::references::{Text, Texts};
use crate::trial::{Arms, Rewards, Trial};
use feedback::episode::Judged;
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
pub struct Knowledge {
    model_sha256: String,
    /// Where the gate started.
    prior: Prior,
    pub gate: Gate,
    pub texts: Texts,
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

impl Knowledge {
    pub fn new(model_sha256: &str, trial: Option<Arms>, prior: &Prior) -> Knowledge {
        Knowledge {
            model_sha256: model_sha256.to_owned(),
            prior: prior.clone(),
            gate: Gate::with_prior(prior),
            texts: Texts::default(),
            rewards: BTreeMap::new(),
            trend: Trend::default(),
            trial: None,
            announced: trial,
            next_seq: 0,
        }
    }

    pub fn began_with(&self, prior: &Prior) -> bool {
        self.prior == *prior
    }

    /// Answers a text that the arms of the trial should be asked about.
    pub fn apply(&mut self, event: &Event, judged: Option<&Judged>) -> Option<Text> {
        if let Some(arms) = self.announced.take_if(|arms| event.seq >= arms.since) {
            self.trial = Some(self.begin(arms));
        }
        self.next_seq = event.seq + 1;
        if let Some(judged) = judged {
            self.gate.learn(judged);
            if !judged.by_hand && judged.before.is_none() {
                let reward = f64::from(judged.reward.clamp(0.0, 1.0));
                self.rewards.entry(judged.adapter).or_default().note(reward);
                Trend::push(&mut self.trend.rewards, reward as f32);
            }
        }
        if let EventKind::Kept { share, .. } = &event.kind {
            Trend::push(&mut self.trend.kept, *share);
        }
        let text = self.texts.apply(event, &self.model_sha256);
        let trial = self.trial.as_mut()?;
        trial.apply(event, judged);
        let since = trial.arms.since;
        text.filter(|text| text.trial == Some(since))
    }

    fn begin(&self, arms: Arms) -> Trial {
        Trial::new(arms, self.rewards.get(&arms.incumbent).copied().unwrap_or_default())
    }

    /// The trial is this one now, or over.
    pub fn follow(&mut self, arms: Option<Arms>) {
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
    pub fn take_up(&mut self, arms: Option<Arms>) -> bool {
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
