//! The file of a prior of the gate.

use anyhow::{Context, Result, ensure};
use policy::gate::features::FEATURES_VERSION;
use policy::gate::prior::Prior;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A prior as `hone gate --adopt` writes it.
#[derive(Serialize, Deserialize)]
struct Stored {
    features_version: u32,
    #[serde(flatten)]
    prior: Prior,
}

pub fn read(path: &Path) -> Result<Prior> {
    let name = path.display();
    let text = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let stored: Stored = serde_json::from_slice(&text)
        .with_context(|| format!("{name}: it is no prior of the gate"))?;
    let is_of_today = stored.features_version == FEATURES_VERSION;
    ensure!(is_of_today, "{name}: another version of Hone wrote it; fit it again");
    Ok(stored.prior)
}

pub fn write(path: &Path, prior: &Prior) -> Result<()> {
    let stored = Stored { features_version: FEATURES_VERSION, prior: prior.clone() };
    std::fs::write(path, serde_json::to_vec_pretty(&stored)?)
        .with_context(|| format!("cannot write {}", path.display()))
}
