//! What a gate learns from the log of a home, and the files of priors.

pub use adapters::gate_prior::{read as read_prior, write as write_prior};

use crate::cli::event_log;
use anyhow::Result;
use feedback::episode::{Fold, Label};
use feedback::event::EventKind;
use feedback::log::EventLog;
use host::paths::Paths;
use policy::gate::Gate;
use policy::gate::prior::{self, Prior};
use std::ops::ControlFlow;
use std::path::Path;

/// Deviation that a weight is given next to what a fit leaves, because users differ.
pub const BETWEEN_USERS: f64 = 0.2;

/// The verdicts in the log of a home, in order, each with what the gate learns of it.
pub fn verdicts(home: &Path) -> Result<Vec<Label>> {
    let log = event_log::open(&Paths::at(home.to_owned()))?;
    let mut fold: Option<Fold> = None;
    let mut verdicts = vec![];
    log.scan(0, &mut |event| {
        if let (None, EventKind::Completion(first)) = (&fold, &event.kind) {
            fold = Some(Fold::new(&first.model_sha256, None));
        }
        verdicts.extend(fold.as_mut().and_then(|fold| fold.apply(&event)));
        ControlFlow::Continue(())
    })?;
    Ok(verdicts)
}

/// Returns what a gate has learned as the prior of another gate, and from how many verdicts it has
/// that. Each weight's deviation grows by `between_users`, because users differ.
pub fn as_prior(gate: &Gate, between_users: f64) -> (Prior, u64) {
    let status = gate.status();
    let mut prior = prior::assumed();
    for (i, weight) in status.weights.iter().enumerate() {
        prior.mean[i] = weight.mean;
        prior.deviation[i] = weight.deviation.hypot(between_users);
    }
    (prior, status.labels)
}
