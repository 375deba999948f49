//! `registry.json`: its format, its checksum and its copy.

use super::{Entry, KEPT_FILES};
use anyhow::{Context, Result, anyhow};
use feedback::event::AdapterVersion;
use models::file::{sha256_of, write_atomic};
use policy::trial::Arms;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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
    /// The number of times that the user has forgotten something. Whatever began to learn before
    /// the last time is not registered.
    pub(super) generation: u64,
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

/// The number of entries that are kept. Older ones without a file go once nothing that they learned
/// from is recorded any more.
pub(super) const ENTRIES_MAX: usize = 1_000;

impl Index {
    /// Adds an entry. Old entries without a file keep their numbers alone, or go.
    pub(super) fn add(&mut self, entry: Entry) {
        let at = self.adapters.partition_point(|other| other.version < entry.version);
        self.adapters.insert(at, entry);
        let old: BTreeSet<AdapterVersion> =
            self.without_file().map(|at| self.adapters[at].version).collect();
        let mut surplus = self.adapters.len().saturating_sub(ENTRIES_MAX);
        self.adapters.retain_mut(|entry| {
            if !old.contains(&entry.version) {
                return true;
            }
            // The steps of an update are most of its report, and say nothing without its adapter.
            entry.report.steps_log = vec![];
            let names_nothing = entry.history.is_none() && entry.offers.is_empty();
            let goes = surplus > 0 && names_nothing;
            surplus -= usize::from(goes);
            !goes
        });
    }

    /// Finds the adapters that are too old to roll back to: neither in use nor among the newest of
    /// their base model.
    pub(super) fn without_file(&self) -> impl Iterator<Item = usize> {
        let in_use: HashSet<AdapterVersion> = self.in_use().collect();
        let mut newer: HashMap<&str, usize> = HashMap::new();
        let newest_first = self.adapters.iter().enumerate().rev();
        newest_first.filter_map(move |(at, entry)| {
            let newer = newer.entry(&entry.base_sha256).or_default();
            *newer += 1;
            (*newer > KEPT_FILES && !in_use.contains(&entry.version)).then_some(at)
        })
    }

    /// Drops the offers of entries that learned from nothing that is recorded any more: the log
    /// begins at `first_seq`. Returns true if there were any.
    pub(super) fn drop_offers_before(&mut self, first_seq: u64) -> bool {
        let mut any = false;
        for entry in self.adapters.iter_mut().filter(|entry| entry.labels.1 < first_seq) {
            any |= !(entry.offers.is_empty() && entry.report.left_out.is_empty());
            (entry.offers, entry.report.left_out) = (vec![], vec![]);
        }
        any
    }

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

    /// The versions that serve or that learning continues from, with any base model.
    pub(super) fn in_use(&self) -> impl Iterator<Item = AdapterVersion> {
        let resting = self.resting.values().flat_map(|other| [Some(other.active), other.head]);
        resting.chain([Some(self.active), self.head]).flatten()
    }

    pub(super) fn empty() -> Index {
        Index {
            format: REGISTRY_FORMAT,
            checksum: String::new(),
            generation: 0,
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
        let mut index = match serde_json::from_str::<Index>(&text) {
            Ok(index) if index.format <= REGISTRY_FORMAT => index,
            read => {
                let newer = serde_json::from_str::<Format>(&text).ok().map(|found| found.format);
                return Err(match newer.filter(|&found| found > u64::from(REGISTRY_FORMAT)) {
                    Some(found) => NewerFormat { path: path.to_owned(), found }.into(),
                    None => match read {
                        Err(error) => anyhow::Error::from(error).context(damaged()),
                        Ok(_) => anyhow!(damaged()),
                    },
                });
            }
        };
        if checksum(&text).as_ref() != Some(&index.checksum) {
            return Err(anyhow!("wrong checksum")).with_context(damaged);
        }
        index.adapters.sort_by_key(|entry| entry.version);
        Ok(index)
    }

    /// Replaces the file, and then its copy.
    pub(super) fn write(&mut self, folder: &Path) -> Result<()> {
        let text = self.write_first(folder)?;
        // The registry is already in place, so a copy that cannot be written fails no update.
        if let Err(error) = write_copy(folder, &text) {
            tracing::warn!("{error:#}");
        }
        Ok(())
    }

    /// Replaces the file alone and returns its text. If this fails, the file is as it was.
    pub(super) fn write_first(&mut self, folder: &Path) -> Result<String> {
        let path = folder.join(REGISTRY_FILE);
        let text = self.text()?;
        match write_atomic(&path, text.as_bytes()) {
            // The file was replaced before the failure, such as one to make the new name durable.
            Err(error) if std::fs::read(&path).is_ok_and(|found| found == text.as_bytes()) => {
                tracing::warn!("{}: may not survive a loss of power: {error}", path.display());
            }
            written => {
                written.with_context(|| format!("{}: cannot be written", path.display()))?;
            }
        }
        Ok(text)
    }

    /// Returns the text of the file, with its checksum. It is not made for people to read, because
    /// it is written at every change.
    pub(super) fn text(&mut self) -> Result<String> {
        self.checksum.clear();
        let text = serde_json::to_string(self)?;
        self.checksum = sha256_of(text.as_bytes());
        let (before, _, after) = around_checksum(&text).context("the text has no checksum")?;
        Ok([before, &self.checksum, after].concat())
    }
}

/// Any registry, as far as its format.
#[derive(Deserialize)]
struct Format {
    format: u64,
}

/// Replaces the copy of the registry.
pub(super) fn write_copy(folder: &Path, text: &str) -> Result<()> {
    let path = folder.join(REGISTRY_COPY);
    write_atomic(&path, text.as_bytes())
        .with_context(|| format!("{}: cannot be written", path.display()))
}

/// Returns the checksum in the text of a registry, with what stands before and behind it. It is the
/// first text in the file.
fn around_checksum(text: &str) -> Option<(&str, &str, &str)> {
    const KEY: &str = "\"checksum\"";
    let colon = text.find(KEY)? + KEY.len();
    let start = colon + text[colon..].find('"')? + 1;
    let end = start + text[start..].find('"')?;
    Some((&text[..start], &text[start..end], &text[end..]))
}

/// Computes the checksum that the text of a registry should have.
fn checksum(text: &str) -> Option<String> {
    let (before, _, after) = around_checksum(text)?;
    Some(sha256_of([before, after].concat().as_bytes()))
}
