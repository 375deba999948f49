//! The file `gate-prior.json` holds the prior that the gate starts from for this user. A rehearsal
//! of the user's own history can leave it. It lies next to the adapters, because it comes with an
//! adapter and is forgotten together with all of them.

use anyhow::{Context, Result, ensure};
use models::file::write_atomic;
use policy::gate::features::FEATURES_VERSION;
use policy::gate::prior::{Prior, shipped};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

const FILE: &str = "gate-prior.json";

#[derive(Serialize, Deserialize)]
struct StoredPrior {
    features_version: u32,
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl StoredPrior {
    /// Returns the prior, unless it is one of other features.
    fn prior(&self) -> Option<Prior> {
        let mean = self.mean.as_slice().try_into().ok()?;
        let deviation = self.deviation.as_slice().try_into().ok()?;
        (self.features_version == FEATURES_VERSION).then_some(Prior { mean, deviation })
    }
}

/// The prior in this folder, or the shipped one if the folder has none.
pub fn load(folder: &Path) -> Prior {
    let own = read(&folder.join(FILE)).unwrap_or_else(|error| {
        tracing::warn!("{error:#}; the gate starts from the prior that is shipped");
        None
    });
    own.unwrap_or_else(shipped)
}

/// Reads the prior of a file; `None` if there is no such file.
pub fn read(path: &Path) -> Result<Option<Prior>> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("{}: cannot be read", path.display()))?,
    };
    let damaged = || format!("{}: damaged; delete it, or rehearse again", path.display());
    let stored: StoredPrior = serde_json::from_slice(&text).with_context(damaged)?;
    let prior = stored.prior().with_context(|| {
        format!("{}: from another version of Hone; rehearse again", path.display())
    })?;
    let sound = prior.mean.iter().all(|mean| mean.is_finite())
        && prior.deviation.iter().all(|deviation| deviation.is_finite() && *deviation > 0.0);
    ensure!(sound, damaged());
    Ok(Some(prior))
}

/// Makes the gate start from this prior when the log is read the next time.
pub fn save(prior: &Prior, folder: &Path) -> Result<()> {
    write(prior, &folder.join(FILE))
}

/// Writes a file of a prior.
pub fn write(prior: &Prior, path: &Path) -> Result<()> {
    let stored = StoredPrior {
        features_version: FEATURES_VERSION,
        mean: prior.mean.to_vec(),
        deviation: prior.deviation.to_vec(),
    };
    write_atomic(path, &serde_json::to_vec_pretty(&stored)?)
        .with_context(|| format!("{}: cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::gate::features::FEATURES;

    #[test]
    fn the_users_own_prior_is_used_unless_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(load(folder.path()), shipped());
        let own = Prior { mean: [0.5; FEATURES], deviation: [0.1; FEATURES] };
        save(&own, folder.path()).unwrap();
        assert_eq!(load(folder.path()), own);
        let text = std::fs::read_to_string(&path).unwrap();
        let version = |version: u32| format!("\"features_version\": {version}");
        for (damaged, part) in [
            (text.replace(&version(FEATURES_VERSION), &version(9)), "another version"),
            (text.replace("0.1", "0.0"), "damaged"),
            (text[..text.len() / 2].to_owned(), "damaged"),
        ] {
            std::fs::write(&path, damaged).unwrap();
            let error = format!("{:#}", read(&path).unwrap_err());
            assert!(error.contains(part) && error.contains(FILE), "{error}");
            assert_eq!(load(folder.path()), shipped());
        }
    }
}
