//! The log as it was read: the episodes, and all else that is folded from it. What
//! was read is written down beside the log now and then ([`keep`]), so that a start
//! reads only what is younger. That is a copy and nothing more: where it cannot be
//! used, all of the log is read, and the result is the same (ADR 0005).
//!
//! [`keep`]: DerivedState::keep

use crate::adapters::gate_prior;
use crate::adapters::registry::Registry;
use anyhow::{Context, Result, ensure};
use feedback::checkpoint::Checkpoint;
use feedback::episode::Fold;
use feedback::log::{EventLog, LogError};
use feedback::reward;
use policy::gate::prior::Prior;
use policy::learned_state::Knowledge;
use policy::trial::Arms;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// Events after which a checkpoint is written again: the most that a start has to read, about a
/// fifth of a second, and as much work each time.
pub const CHECKPOINT_EVENTS: u64 = 5_000;

/// Raised when what is written, or what is made of an event, becomes another.
const FORMAT: u32 = 5;

/// What beside the events decides what they mean.
#[derive(Debug, Clone)]
pub struct DerivedInputs {
    pub model_sha256: String,
    /// Log position of the last label that an update has learned from.
    pub learned_through: Option<u64>,
    pub trial: Option<Arms>,
    /// Where the gate starts.
    pub prior: Prior,
}

impl DerivedInputs {
    pub fn of(registry: &Registry, model_sha256: &str) -> DerivedInputs {
        DerivedInputs {
            model_sha256: model_sha256.to_owned(),
            learned_through: registry.learned_through(model_sha256),
            trial: registry.trial(),
            prior: gate_prior::load(registry.folder()),
        }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct DerivedState {
    pub fold: Fold,
    #[serde(rename = "knowledge")]
    pub learned_state: Knowledge,
    /// Events read since it was last written down.
    #[serde(skip)]
    pub young: u64,
}

impl DerivedState {
    fn new(inputs: &DerivedInputs) -> DerivedState {
        DerivedState {
            fold: Fold::new(reward::CURRENT, &inputs.model_sha256, inputs.learned_through),
            learned_state: Knowledge::new(&inputs.model_sha256, inputs.trial, &inputs.prior),
            young: 0,
        }
    }

    /// All that is in the log.
    pub fn of(log: &dyn EventLog, inputs: &DerivedInputs) -> Result<DerivedState, LogError> {
        let mut derived = match DerivedState::kept(log, inputs) {
            Ok(Some(derived)) => derived,
            Ok(None) => DerivedState::new(inputs),
            Err(error) => {
                tracing::info!("all of the event log is read: {error:#}");
                DerivedState::new(inputs)
            }
        };
        derived.go_on(log)?;
        if derived.learned_state.trial.is_none() {
            derived.learned_state.follow(inputs.trial);
        }
        Ok(derived)
    }

    /// What was appended since.
    pub fn go_on(&mut self, log: &dyn EventLog) -> Result<(), LogError> {
        log.scan(self.learned_state.next_seq(), &mut |event| {
            let judged = self.fold.apply(&event);
            self.learned_state.apply(&event, judged.as_ref());
            self.young += 1;
            ControlFlow::Continue(())
        })
    }

    /// What was written down last, in today's inputs.
    fn kept(log: &dyn EventLog, inputs: &DerivedInputs) -> Result<Option<DerivedState>> {
        let Some(checkpoint) = log.checkpoint()? else { return Ok(None) };
        ensure!(checkpoint.generation == log.generation(), "something was forgotten since");
        let json = checkpoint.content.strip_prefix(stamp().as_bytes());
        let json = json.context("what was made of it was made by another Hone")?;
        let mut derived: DerivedState = serde_json::from_slice(json)?;
        ensure!(derived.learned_state.next_seq() == checkpoint.next_seq, "it ends elsewhere");
        ensure!(
            derived.fold.is_of(reward::CURRENT, &inputs.model_sha256),
            "another model is served"
        );
        ensure!(derived.learned_state.began_with(&inputs.prior), "the gate starts from elsewhere");
        ensure!(derived.fold.learned_through(inputs.learned_through), "an update was taken back");
        ensure!(
            derived.learned_state.take_up(inputs.trial),
            "it does not know the trial under way"
        );
        Ok(Some(derived))
    }

    /// As it is written down; `generation` of the log that it was read from.
    pub fn checkpoint(&self, generation: u64) -> serde_json::Result<Checkpoint> {
        let mut content = stamp().into_bytes();
        serde_json::to_writer(&mut content, self)?;
        Ok(Checkpoint { generation, next_seq: self.learned_state.next_seq(), content })
    }

    /// A checkpoint, if so much was read that the next start should not read it again.
    pub fn checkpoint_if_worth(&self, generation: u64) -> serde_json::Result<Option<Checkpoint>> {
        let is_worth = self.young >= CHECKPOINT_EVENTS;
        is_worth.then(|| self.checkpoint(generation)).transpose()
    }

    /// Reads what there is, and writes it down.
    pub fn keep(log: &dyn EventLog, inputs: &DerivedInputs) -> Result<()> {
        let generation = log.generation();
        let checkpoint = DerivedState::of(log, inputs)?.checkpoint(generation)?;
        log.save_checkpoint(&checkpoint)?;
        Ok(())
    }
}

/// The first line: who may read the others.
fn stamp() -> String {
    format!("{FORMAT} {}\n", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod properties;
