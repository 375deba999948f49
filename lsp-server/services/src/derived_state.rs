//! The derived state: the episodes and everything else that is folded from the log. From time to
//! time it is written next to the log as a checkpoint, so that a start reads only the events after
//! it. The checkpoint is only a copy. If it cannot be used, the whole log is read, and the result
//! is the same (ADR 0005).

use adapters::gate_prior;
use adapters::registry::Registry;
use anyhow::{Context, Result, ensure};
use feedback::checkpoint::Checkpoint;
use feedback::episode::Fold;
use feedback::event::OfferId;
use feedback::log::{EventLog, LogError};
use policy::gate::prior::Prior;
use policy::learned_state::LearnedState;
use policy::trial::Arms;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The number of events after which a checkpoint is written again. A start reads at most that many,
/// in about a fifth of a second, and each checkpoint costs as much.
pub const CHECKPOINT_EVENTS: u64 = 5_000;

/// The version of a checkpoint. It is raised when the content changes, or what an event means.
const FORMAT: u32 = 2;

/// The inputs of the derived state besides the log.
#[derive(Debug, Clone)]
pub struct DerivedInputs {
    pub model_sha256: String,
    /// The log position of the last label that an update has learned from.
    pub learned_through: Option<u64>,
    /// The offers up to there that updates have left out.
    pub left_out: HashSet<OfferId>,
    pub trial: Option<Arms>,
    /// The prior that the gate starts from.
    pub prior: Prior,
}

impl DerivedInputs {
    pub fn of(registry: &Registry, model_sha256: &str) -> DerivedInputs {
        DerivedInputs {
            model_sha256: model_sha256.to_owned(),
            learned_through: registry.learned_through(model_sha256),
            left_out: registry.left_out(model_sha256),
            trial: registry.trial(),
            prior: gate_prior::load(registry.folder()),
        }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct DerivedState {
    pub fold: Fold,
    pub learned_state: LearnedState,
    /// The oldest date of an event, in milliseconds since the Unix epoch. The first event need not
    /// have it, because a clock may be set.
    pub oldest_ms: Option<u64>,
    /// The number of events read after the checkpoint.
    #[serde(skip)]
    pub new_events: u64,
}

impl DerivedState {
    fn new(inputs: &DerivedInputs) -> DerivedState {
        let mut fold = Fold::new(&inputs.model_sha256, None);
        fold.learned_through(inputs.learned_through, inputs.left_out.clone());
        DerivedState {
            fold,
            learned_state: LearnedState::new(&inputs.model_sha256, inputs.trial, &inputs.prior),
            oldest_ms: None,
            new_events: 0,
        }
    }

    /// Derives the state from the whole log, with the help of the checkpoint if it can be used.
    pub fn of(log: &dyn EventLog, inputs: &DerivedInputs) -> Result<DerivedState, LogError> {
        let mut derived = match DerivedState::from_checkpoint(log, inputs) {
            Ok(Some(derived)) => derived,
            Ok(None) => DerivedState::new(inputs),
            Err(error) => {
                tracing::info!("all of the event log is read: {error:#}");
                DerivedState::new(inputs)
            }
        };
        derived.catch_up(log)?;
        if derived.learned_state.trial.is_none() {
            derived.learned_state.set_trial(inputs.trial);
        }
        Ok(derived)
    }

    /// Applies the events that were appended since.
    pub fn catch_up(&mut self, log: &dyn EventLog) -> Result<(), LogError> {
        log.scan(self.learned_state.next_seq(), &mut |event| {
            let label = self.fold.apply(&event);
            self.learned_state.apply(&event, label.as_ref());
            self.oldest_ms = Some(older(self.oldest_ms, event.at_ms));
            self.new_events += 1;
            ControlFlow::Continue(())
        })
    }

    /// Reads the checkpoint, if there is one that these inputs can use.
    fn from_checkpoint(log: &dyn EventLog, inputs: &DerivedInputs) -> Result<Option<DerivedState>> {
        let Some(checkpoint) = log.checkpoint()? else { return Ok(None) };
        ensure!(
            checkpoint.generation == log.generation(),
            "something was forgotten since the checkpoint"
        );
        let json = checkpoint.content.strip_prefix(stamp().as_bytes());
        let json = json.context("another version of Hone wrote the checkpoint")?;
        let mut derived: DerivedState = serde_json::from_slice(json)?;
        ensure!(
            derived.learned_state.next_seq() == checkpoint.next_seq,
            "the checkpoint ends at another event than it says"
        );
        ensure!(derived.fold.is_of(&inputs.model_sha256), "another model is served");
        ensure!(
            derived.learned_state.started_with(&inputs.prior),
            "the gate starts from another prior"
        );
        ensure!(
            derived.fold.learned_through(inputs.learned_through, inputs.left_out.clone()),
            "an update was rolled back"
        );
        ensure!(
            derived.learned_state.resume_trial(inputs.trial),
            "the checkpoint does not know the running trial"
        );
        Ok(Some(derived))
    }

    /// Makes a checkpoint; `generation` is that of the log.
    pub fn checkpoint(&self, generation: u64) -> serde_json::Result<Checkpoint> {
        let mut content = stamp().into_bytes();
        serde_json::to_writer(&mut content, self)?;
        Ok(Checkpoint { generation, next_seq: self.learned_state.next_seq(), content })
    }

    /// Makes a checkpoint if the next start should not read this many events again.
    pub fn checkpoint_if_worth(&self, generation: u64) -> serde_json::Result<Option<Checkpoint>> {
        let is_worth = self.new_events >= CHECKPOINT_EVENTS;
        is_worth.then(|| self.checkpoint(generation)).transpose()
    }

    /// Derives the state from the log and writes a checkpoint.
    pub fn write_checkpoint(log: &dyn EventLog, inputs: &DerivedInputs) -> Result<()> {
        let generation = log.generation();
        let checkpoint = DerivedState::of(log, inputs)?.checkpoint(generation)?;
        log.save_checkpoint(&checkpoint)?;
        Ok(())
    }
}

/// Returns the older of two dates, of which the first may not be known.
pub fn older(oldest_ms: Option<u64>, at_ms: u64) -> u64 {
    oldest_ms.map_or(at_ms, |oldest_ms| oldest_ms.min(at_ms))
}

/// The first line of a checkpoint. It says which format and which Hone wrote the rest.
fn stamp() -> String {
    format!("{FORMAT} {}\n", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod properties;
