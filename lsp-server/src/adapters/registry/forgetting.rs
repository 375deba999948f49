//! Which adapters learned from what is to be forgotten, and their removal.

use super::{Entry, Registry};
use anyhow::{Context, Result};
use feedback::event::{AdapterVersion, OfferId};
use models::file::gone;
use std::collections::HashSet;
use std::path::Path;

impl Registry {
    /// The versions that learned from any of these offers, or from a history that is meant,
    /// themselves or through an ancestor.
    pub fn learned_from(
        &self,
        offers: &HashSet<OfferId>,
        is_meant: impl Fn(&Path, &Entry) -> bool,
    ) -> Vec<AdapterVersion> {
        let mut learned = vec![];
        // A parent comes before its children in this list.
        for entry in self.index.adapters.iter().filter(|entry| !entry.forgotten) {
            let by_offer = entry.offers.iter().any(|offer| offers.contains(offer));
            let by_history = entry.history.as_ref().is_some_and(|root| is_meant(root, entry));
            if by_offer || by_history || learned.contains(&entry.parent) {
                learned.push(entry.version);
            }
        }
        learned
    }

    /// The version that may serve once these versions are forgotten: the active one or its nearest
    /// undamaged ancestor.
    pub fn active_without(&self, learned: &[AdapterVersion], base_sha256: &str) -> AdapterVersion {
        let mut version = self.index.active;
        while let Some(entry) = self.entry(version) {
            if !learned.contains(&version) && self.usable(entry, base_sha256).is_ok() {
                break;
            }
            version = entry.parent;
        }
        version
    }

    /// The versions that are not forgotten.
    pub fn kept(&self) -> Vec<AdapterVersion> {
        let kept = self.index.adapters.iter().filter(|entry| !entry.forgotten);
        kept.map(|entry| entry.version).collect()
    }

    /// Removes these versions for good, and makes `active` serve.
    pub fn forget(&mut self, learned: &[AdapterVersion], active: AdapterVersion) -> Result<()> {
        self.check_writable()?;
        let mut index = self.index.clone();
        let head_goes = index.head.is_some_and(|head| learned.contains(&head));
        if active != index.active || head_goes {
            index.serve(active);
        }
        for entry in index.adapters.iter_mut().filter(|entry| learned.contains(&entry.version)) {
            entry.forgotten = true;
        }
        self.replace(index)?;
        // An earlier removal may have been interrupted, so the files of all forgotten versions are
        // removed.
        for entry in self.index.adapters.iter().filter(|entry| entry.forgotten) {
            for path in [self.adapter_file(entry.version), self.optimizer_file(entry.version)] {
                gone(std::fs::remove_file(&path))
                    .with_context(|| format!("{}: cannot be removed", path.display()))?;
            }
        }
        Ok(())
    }
}
