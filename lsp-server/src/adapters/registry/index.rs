//! `registry.json`: its format, its checksum and its copy.

use super::Entry;
use anyhow::{Context, Result, anyhow};
use feedback::event::AdapterVersion;
use models::file::{sha256_of, write_atomic};
use policy::trial::Arms;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The version of `registry.json`.
const REGISTRY_FORMAT: u32 = 1;

pub(super) const REGISTRY_FILE: &str = "registry.json";

/// A copy of the registry, which is read when the first file is damaged.
pub(super) const REGISTRY_COPY: &str = "registry.copy.json";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Index {
    pub(super) format: u32,
    /// The SHA-256 of the file, computed with this field empty.
    pub(super) checksum: String,
    /// The SHA-256 of the base model for which the next three fields hold.
    base: Option<String>,
    /// 0: the base.
    pub(super) active: AdapterVersion,
    /// The adapter that the next update starts from, if it is not the active one.
    pub(super) head: Option<AdapterVersion>,
    /// The trial under way.
    pub(super) trial: Option<Arms>,
    /// The same of other base models, until they serve again.
    resting: BTreeMap<String, Resting>,
    pub(super) adapters: Vec<Entry>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Resting {
    active: AdapterVersion,
    head: Option<AdapterVersion>,
    trial: Option<Arms>,
}

#[derive(Debug, thiserror::Error)]
#[error("{}: format {found}, this Hone knows up to {REGISTRY_FORMAT}; update Hone", path.display())]
struct NewerFormat {
    path: PathBuf,
    found: u64,
}

impl Index {
    /// Makes this version the one that serves and that the next update starts from. A running trial
    /// ends.
    pub(super) fn serve(&mut self, version: AdapterVersion) {
        (self.active, self.head, self.trial) = (version, None, None);
    }

    /// Takes up what served with this base model, and puts what serves with another one aside.
    pub(super) fn switch_to(&mut self, base_sha256: &str) {
        if let Some(other) = self.base.take().filter(|base| base != base_sha256) {
            let own = self.resting.remove(base_sha256).unwrap_or_default();
            let resting = Resting {
                active: std::mem::replace(&mut self.active, own.active),
                head: std::mem::replace(&mut self.head, own.head),
                trial: std::mem::replace(&mut self.trial, own.trial),
            };
            self.resting.insert(other, resting);
        }
        self.base = Some(base_sha256.to_owned());
    }

    /// The versions that serve or that learning goes on from, with any base model.
    pub(super) fn in_use(&self) -> impl Iterator<Item = AdapterVersion> {
        let resting = self.resting.values().flat_map(|other| [Some(other.active), other.head]);
        resting.chain([Some(self.active), self.head]).flatten()
    }

    pub(super) fn empty() -> Index {
        Index {
            format: REGISTRY_FORMAT,
            checksum: String::new(),
            base: None,
            active: 0,
            head: None,
            trial: None,
            resting: BTreeMap::new(),
            adapters: vec![],
        }
    }

    /// The index in a folder, and what was wrong with its files.
    pub(super) fn of(folder: &Path) -> (Result<Index>, Option<String>) {
        let (path, copy) = (folder.join(REGISTRY_FILE), folder.join(REGISTRY_COPY));
        // Hone never writes only the copy. If only the copy exists, the registry file has been
        // lost.
        let first = if copy.exists() && !path.exists() {
            Err(anyhow!("{}: missing; move the folder away to learn anew", path.display()))
        } else {
            Index::read(&path)
        };
        match first {
            Err(error) if copy.exists() && !error.is::<NewerFormat>() => match Index::read(&copy) {
                Ok(index) => {
                    let trouble = format!("{error:#}; its copy {} is used", copy.display());
                    (Ok(index), Some(trouble))
                }
                Err(_) => (Err(error), None),
            },
            read => (read, None),
        }
    }

    pub(super) fn read(path: &Path) -> Result<Index> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Index::empty());
            }
            read => read.with_context(|| path.display().to_string())?,
        };
        let damaged = || format!("{}: damaged; move the folder away to learn anew", path.display());
        let value: serde_json::Value = serde_json::from_str(&text).with_context(damaged)?;
        let format = value["format"].as_u64();
        if let Some(newer) = format.filter(|&found| found > u64::from(REGISTRY_FORMAT)) {
            return Err(NewerFormat { path: path.to_owned(), found: newer }.into());
        }
        let index: Index = serde_json::from_value(value).with_context(damaged)?;
        if checksum(&text, &index.checksum) != index.checksum {
            return Err(anyhow!("wrong checksum")).with_context(damaged);
        }
        Ok(index)
    }

    /// Replaces the file, and then its copy.
    pub(super) fn write(&mut self, folder: &Path) -> Result<()> {
        let path = folder.join(REGISTRY_FILE);
        let text = self.text()?;
        write_atomic(&path, text.as_bytes())
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        // The registry is already in place, so a copy that cannot be written fails no update.
        if let Err(error) = write_atomic(&folder.join(REGISTRY_COPY), text.as_bytes()) {
            tracing::warn!("{}: not copied: {error}", path.display());
        }
        Ok(())
    }

    /// The text of the file, with its checksum.
    fn text(&mut self) -> Result<String> {
        self.checksum.clear();
        let text = serde_json::to_string_pretty(self)?;
        self.checksum = sha256_of(text.as_bytes());
        // The checksum is the first text field, so the first match is the right one.
        Ok(text.replacen(&checksum_field(""), &checksum_field(&self.checksum), 1))
    }
}

fn checksum_field(checksum: &str) -> String {
    format!("\"checksum\": \"{checksum}\"")
}

/// Computes the checksum that a registry's text should have. `found` is the one that it has.
fn checksum(text: &str, found: &str) -> String {
    sha256_of(text.replacen(&checksum_field(found), &checksum_field(""), 1).as_bytes())
}
