//! Which adapters learned from what is to be forgotten, and their removal.

use super::index::write_copy;
use super::{Entry, Registry};
use anyhow::Result;
use feedback::event::{AdapterVersion, OfferId};
use std::collections::{BTreeSet, HashSet};
use std::path::Path;

impl Registry {
    /// The versions that learned from any of these offers, or from a history that is meant,
    /// themselves or through an ancestor.
    pub fn learned_from(
        &self,
        offers: &HashSet<OfferId>,
        is_meant: impl Fn(&Path, &Entry) -> bool,
    ) -> Vec<AdapterVersion> {
        let mut learned = BTreeSet::new();
        // A parent comes before its children in this list.
        for entry in self.index.adapters.iter().filter(|entry| !entry.forgotten) {
            let by_offer = entry.offers.iter().any(|offer| offers.contains(offer));
            let by_history = entry.history.as_ref().is_some_and(|root| is_meant(root, entry));
            if by_offer || by_history || learned.contains(&entry.parent) {
                learned.insert(entry.version);
            }
        }
        learned.into_iter().collect()
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

    /// Marks these versions as forgotten, and makes `active` serve. It is written even if there are
    /// none, because an earlier attempt may have failed before all of it was on disk. The files are
    /// removed by [`Registry::remove_unused`].
    pub fn forget(&mut self, learned: &[AdapterVersion], active: AdapterVersion) -> Result<()> {
        self.check_writable()?;
        let mut index = self.index.clone();
        index.generation += 1;
        let head_goes = index.head.is_some_and(|head| learned.contains(&head));
        if active != index.active || head_goes {
            index.serve(active);
        }
        for entry in index.adapters.iter_mut().filter(|entry| learned.contains(&entry.version)) {
            entry.forget();
        }
        let text = index.write_first(&self.folder)?;
        self.index = index;
        // A registry that was damaged later would be replaced by a copy that knows nothing of this.
        write_copy(&self.folder, &text)
    }
}

impl Entry {
    /// Keeps the numbers of an adapter alone. What it learned from is not named any more.
    fn forget(&mut self) {
        (self.forgotten, self.offers, self.history) = (true, vec![], None);
        self.report.left_out.clear();
        self.report.steps_log.clear();
    }
}
