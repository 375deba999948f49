//! `hone forget`: what was offered in a file, what became of it, and what was
//! learned from it, gone from the log, the disk and the adapter that serves.

use crate::adapters::Registry;
use anyhow::Result;
use feedback::event::{AdapterVersion, Event, EventKind, OfferId};
use feedback::log::{EventLog, LogError};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;

/// What was, or would be, forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    pub events: u64,
    pub offers: usize,
    /// Adapters that had learned from them, removed.
    pub adapters: Vec<AdapterVersion>,
    /// The adapter that serves afterwards; 0 is the model alone.
    pub serves: AdapterVersion,
}

/// The offers that were made in some files.
pub struct Found {
    files: Vec<String>,
    offers: HashSet<OfferId>,
    events: u64,
}

impl Found {
    pub fn search(log: &dyn EventLog, files: Vec<String>) -> Result<Found, LogError> {
        let mut found = Found { files, offers: HashSet::new(), events: 0 };
        log.scan(0, &mut |event| {
            if found.tells(&event) {
                found.offers.insert(event.kind.offer_id().clone());
                found.events += 1;
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    fn tells(&self, event: &Event) -> bool {
        match &event.kind {
            EventKind::Completion(completion) => self.files.contains(&completion.path),
            other => self.offers.contains(other.offer_id()),
        }
    }

    pub fn plan(&self, registry: &Registry, base_sha256: &str) -> Forgotten {
        let adapters = registry.taught_by(&self.offers);
        let serves = registry.active_without(&adapters, base_sha256);
        Forgotten { events: self.events, offers: self.offers.len(), adapters, serves }
    }

    pub fn erase(&self, log: &dyn EventLog) -> Result<(), LogError> {
        log.retain(&|event| !self.tells(event))
    }
}

/// The names a file may be recorded under: as it was given (an editor's URI,
/// where there is no file), from the root, and where its links lead.
pub fn names_of(file: &str) -> Vec<String> {
    let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let mut names = vec![file.to_owned()];
    names.extend(std::path::absolute(file).map(text));
    names.extend(Path::new(file).canonicalize().map(text));
    names.sort();
    names.dedup();
    names
}
