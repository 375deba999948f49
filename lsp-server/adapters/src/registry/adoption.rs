//! Adapters that were trained outside of the daemon and are to serve at once. They were compared
//! with what served then, which takes minutes, so that all of it is asked again when one is
//! registered.

use super::{Origin, Registry};
use anyhow::Result;
use feedback::event::AdapterVersion;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What an adapter stands on that is to serve at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The version that it was compared with, because it served; 0 is the model alone.
    pub compared_with: AdapterVersion,
    /// [`Registry::generation`] when it began to learn.
    pub generation: u64,
}

/// Why an adapter does not serve although it was worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Outdated {
    #[error(
        "something was forgotten in the meantime, so nothing is adopted; the same command begins \
         anew"
    )]
    Forgotten,
    #[error("v{0} serves since, with which it was not compared, so nothing is adopted")]
    Serves(AdapterVersion),
    #[error(
        "v{0} is on trial, so nothing is adopted; run the same command once the trial has ended \
         (`hone adapter show`)"
    )]
    OnTrial(AdapterVersion),
}

impl Registry {
    /// Returns the number of times that the user has forgotten something.
    pub fn generation(&self) -> u64 {
        self.index.generation
    }

    /// # Errors
    /// What the adapter stands on has changed.
    pub fn check_basis(&self, basis: Basis) -> Result<(), Outdated> {
        if self.index.generation != basis.generation {
            return Err(Outdated::Forgotten);
        }
        if let Some(trial) = self.index.trial {
            return Err(Outdated::OnTrial(trial.candidate));
        }
        match self.index.active {
            active if active == basis.compared_with => Ok(()),
            active => Err(Outdated::Serves(active)),
        }
    }

    /// Registers an adapter and makes it serve, in one write. The caller must have checked its
    /// basis under the lock that keeps others from changing the registry.
    pub fn adopt(
        &mut self,
        file: &Path,
        sha256: String,
        base_sha256: &str,
        origin: Option<Origin>,
        now_ms: u64,
    ) -> Result<AdapterVersion> {
        let candidate = self.imported(file, sha256, base_sha256, origin, now_ms);
        self.promote(&candidate)?;
        Ok(candidate.entry.version)
    }
}
