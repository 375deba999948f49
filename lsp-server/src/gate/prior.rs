//! Where the gate starts on its first day: what offers in rehearsals of other
//! people's projects taught it, with room to change its mind; or a rehearsal of
//! the user's own, which `hone rehearse --keep` leaves beside the adapters.

use super::features::{FEATURES, FEATURES_VERSION};
use anyhow::{Context, Result, ensure};
use models::file::write_atomic;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

/// In the folder of the adapters: it came with one, and is forgotten with all.
const FILE: &str = "gate-prior.json";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    pub mean: [f64; FEATURES],
    pub deviation: [f64; FEATURES],
}

/// Mean and deviation of each weight, as `hone gate --fit HOME…` printed them
/// for rehearsals of fd, httpx, got and fzf (169 verdicts; docs/evidence.md). That was
/// by features version 1, where a line's end was less likely by what the tokenizer
/// merges with it.
const SHIPPED: [(f64, f64); FEATURES] = [
    (-0.08, 0.34), // bias
    (1.68, 0.31),  // log-odds of the whole text
    (-0.01, 0.35), // mean log-prob of a token
    (0.01, 0.36),  // lowest log-prob of a token
    (0.13, 0.35),  // log-prob of the first token
    (-0.10, 0.30), // length
    (-0.05, 0.34), // the model chose to stop
    (-0.16, 0.32), // line is blank before the cursor
    (-0.08, 0.34), // line is empty after the cursor
    (0.00, 0.36),  // behind a word
    (0.07, 0.33),  // behind a dot or colons
    (-0.05, 0.34), // behind an opening bracket or a comma
    (-0.02, 0.36), // behind an equals sign
    (-0.05, 0.36), // closing marks alone
    (0.03, 0.32),  // starts with a word
    (0.00, 0.36),  // pause before the request
    (-0.04, 0.36), // rate of recent takes
    (0.00, 0.33),  // rejects in a row
    (0.14, 0.34),  // rejects on this line
    (0.00, 0.36),  // prose or data
];

#[derive(Serialize, Deserialize)]
struct Kept {
    features_version: u32,
    #[serde(flatten)]
    prior: Prior,
}

impl Prior {
    /// What was left in this folder, else what is shipped.
    pub fn of(folder: &Path) -> Prior {
        let own = Prior::read(&folder.join(FILE)).unwrap_or_else(|error| {
            tracing::warn!("{error:#}; the gate starts from the prior that is shipped");
            None
        });
        own.unwrap_or_else(shipped)
    }

    fn read(path: &Path) -> Result<Option<Prior>> {
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("{}: cannot be read", path.display()))?,
        };
        let damaged = || format!("{}: damaged; delete it, or rehearse again", path.display());
        let Kept { features_version, prior } =
            serde_json::from_slice(&text).with_context(damaged)?;
        ensure!(
            features_version == FEATURES_VERSION,
            "{}: from another version of Hone; rehearse again",
            path.display()
        );
        let sound = prior.mean.iter().all(|mean| mean.is_finite())
            && prior.deviation.iter().all(|deviation| deviation.is_finite() && *deviation > 0.0);
        ensure!(sound, damaged());
        Ok(Some(prior))
    }

    /// Has the gate start from here, from the next reading of the log on.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let kept = Kept { features_version: FEATURES_VERSION, prior: self.clone() };
        let path = folder.join(FILE);
        write_atomic(&path, &serde_json::to_vec_pretty(&kept)?)
            .with_context(|| format!("{}: cannot be written", path.display()))
    }
}

pub fn shipped() -> Prior {
    Prior { mean: SHIPPED.map(|weight| weight.0), deviation: SHIPPED.map(|weight| weight.1) }
}

/// What a fit starts from: the text's own odds, doubled, and little else.
pub fn assumed() -> Prior {
    let mut mean = [0.0; FEATURES];
    mean[1] = 2.0;
    Prior { mean, deviation: [0.3; FEATURES] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prior_of_ones_own_is_used_unless_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(Prior::of(folder.path()), shipped());
        let own = Prior { mean: [0.5; FEATURES], deviation: [0.1; FEATURES] };
        own.write(folder.path()).unwrap();
        assert_eq!(Prior::of(folder.path()), own);
        let text = std::fs::read_to_string(&path).unwrap();
        for (broken, says) in [
            (text.replace("\"features_version\": 2", "\"features_version\": 9"), "another version"),
            (text.replace("0.1", "0.0"), "damaged"),
            (text[..text.len() / 2].to_owned(), "damaged"),
        ] {
            std::fs::write(&path, broken).unwrap();
            let error = format!("{:#}", Prior::read(&path).unwrap_err());
            assert!(error.contains(says) && error.contains(FILE), "{error}");
            assert_eq!(Prior::of(folder.path()), shipped());
        }
    }
}
