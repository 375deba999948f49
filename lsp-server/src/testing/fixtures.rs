//! The values that many unit tests need: a home, an engine, an event, a registry entry.

use crate::adapters::registry::Entry;
use crate::paths::Paths;
use engine::scripted::ScriptedEngine;
use feedback::event::{AdapterVersion, Completion, EventKind};
use feedback::job::UpdateReport;
use feedback::testing;
use std::time::Duration;
use tempfile::TempDir;

/// A home with its folders in a temporary folder, which must outlive it.
pub fn home() -> (TempDir, Paths) {
    let folder = tempfile::tempdir().unwrap();
    let home = Paths::at(folder.path().into());
    home.create().unwrap();
    (folder, home)
}

/// An engine that answers every request at once with these texts, whatever the adapter is.
pub fn engine(answers: &'static [&'static str]) -> ScriptedEngine {
    ScriptedEngine { answers, learned: None, takes: Duration::ZERO }
}

/// The event of a completion in this file that offers ten characters.
pub fn completion(id: &str, path: &str) -> EventKind {
    testing::served(Completion { path: path.into(), ..testing::completion(id) })
}

/// The registry's entry of an adapter that was trained from the base and learned from no offer
/// that it names.
pub fn entry(version: AdapterVersion, sha256: String) -> Entry {
    Entry {
        version,
        parent: 0,
        sha256,
        base_sha256: "base".into(),
        created_at_ms: 0,
        labels: (0, 0),
        offers: None,
        forgotten: false,
        verdict: None,
        report: UpdateReport::default(),
    }
}
