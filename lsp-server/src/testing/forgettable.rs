//! A home that holds something in each place that `hone forget` looks at, for tests of what becomes
//! of it when a write fails.

use crate::privacy::forget_scope::Scope;
use crate::privacy::forgotten::ForgottenFiles;
use adapters::history::{HistoryFiles, HistorySource};
use adapters::registry::{AdapterCandidate, Entry, Registry};
use adapters::team::{Contributed, TeamFiles};
use feedback::event::Event;
use feedback::log::EventLog;
use feedback::sled_log::SledLog;
use feedback::testing::accepted;
use host::paths::Paths;
use models::file::sha256;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The file that is to be forgotten.
const SECRET: &str = "/p/secret_plan.rs";

/// What stands in every file that may have learned from it.
const CANARY: &str = "canary7391";

pub fn scope() -> Scope {
    Scope::File { names: vec![SECRET.into()] }
}

/// Fills a new home. Its adapters are for this base model. The second one learned from the file.
pub fn fill(home: &Paths, base_sha256: &str) {
    home.create().unwrap();
    let log = SledLog::open(&home.event_log()).unwrap();
    for (id, path) in [("secret", SECRET), ("kept", "/p/kept.rs")] {
        log.append(0, fixtures::completion(id, path)).unwrap();
        log.append(0, accepted(id)).unwrap();
    }
    log.flush().unwrap();
    let listed = Scope::Folder { names: vec!["/p/other".into()] };
    ForgottenFiles::open(home.forgotten()).add(&listed).unwrap();
    let (mut registry, _) = Registry::open(&home.adapters(), base_sha256);
    for (offer, label) in [("kept", 3), ("secret", 1)] {
        let (adapter, optimizer) = registry.job_files("made");
        std::fs::write(&adapter, format!("adapter of {offer}")).unwrap();
        std::fs::write(&optimizer, "state").unwrap();
        let entry = Entry {
            parent: registry.active(),
            base_sha256: base_sha256.into(),
            labels: (label, label),
            offers: vec![offer.into()],
            ..adapters::testing::entry(registry.next_version(), sha256(&adapter).unwrap())
        };
        registry.promote(&AdapterCandidate { entry, adapter, optimizer: Some(optimizer) }).unwrap();
    }
    let team = TeamFiles::beside(&home.adapters());
    let mut ledger = team.ledger().unwrap();
    let offers = vec!["secret".into()];
    let made = Contributed { at_ms: 0, version: 1, offers, forgotten: false, elsewhere: false };
    ledger.add(made, 0.0, None);
    team.write_ledger(&ledger).unwrap();
    leave(home);
}

/// Adds what interrupted processes have left. A daemon removes some of it when it starts.
pub fn leave(home: &Paths) {
    let history = HistoryFiles::beside(&home.adapters());
    let source = HistorySource { folder: "/p".into(), author: None, model_sha256: "m".into() };
    history.begin(&source, "c0ffee").unwrap();
    let left: [PathBuf; 10] = [
        home.root().join("history/shared.core"),
        home.root().join("team/left.bin"),
        home.root().join("team/message-7.json"),
        home.root().join("team/ledger.json.7-0.tmp"),
        home.adapters().join("v0009.gguf"),
        home.adapters().join("job-x.gguf"),
        home.adapters().join("registry.json.7-0.tmp"),
        home.prompts().join("0123"),
        home.recordings().join("session-1.json"),
        home.data().join("events.sled.damaged-2/db"),
    ];
    for path in left {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, CANARY).unwrap();
    }
}

/// The events of a log and every other file of the home that is kept between two runs.
#[derive(Debug, PartialEq)]
pub struct Disk {
    events: Vec<Event>,
    files: BTreeMap<PathBuf, String>,
}

impl Disk {
    pub fn of(home: &Paths, log: &dyn EventLog) -> Disk {
        let (mut events, mut files) = (vec![], BTreeMap::new());
        log.scan(0, &mut |event| {
            events.push(event);
            ControlFlow::Continue(())
        })
        .unwrap();
        for folder in ["data", "adapters", "history", "team", "prompts", "recordings"] {
            read_below(&home.root().join(folder), &mut files);
        }
        files.retain(|path, _| !path.starts_with(home.event_log()));
        let files = files.into_iter().map(|(path, text)| {
            let name = path.strip_prefix(home.root()).unwrap().to_owned();
            (name, text)
        });
        Disk { events, files: files.collect() }
    }

    /// Returns true if nothing is left that may have learned from the file.
    pub fn has_forgotten(&self) -> bool {
        let is_left = |text: &String| text.contains(CANARY) || text.contains("secret");
        self.events.iter().all(|event| event.kind.offer_id() == "kept")
            && !self.files.values().any(is_left)
    }
}

fn read_below(folder: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_below(&path, files);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            files.insert(path, without_generation(&String::from_utf8_lossy(&bytes)));
        }
    }
}

/// A registry without what differs if something is forgotten twice.
fn without_generation(text: &str) -> String {
    let Ok(mut registry) = serde_json::from_str::<serde_json::Value>(text) else {
        return text.to_owned();
    };
    for key in ["generation", "checksum"] {
        registry.as_object_mut().and_then(|registry| registry.remove(key));
    }
    registry.to_string()
}
