//! What `hone forget` removes: the offers in a file or a folder, or since a day, with everything
//! that became of them. They are removed from the log and the disk, and adapters that learned from
//! them are withdrawn. Retention removes old events in the same way.

use crate::adapters::history::HistoryFiles;
use crate::adapters::registry::{Entry, Registry};
use crate::adapters::team::TeamFiles;
use crate::addresses;
use anyhow::Result;
use feedback::event::{AdapterVersion, Event, EventKind, OfferId};
use feedback::log::{EventLog, LogError};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;

/// The offers that are to be forgotten. An offer is forgotten together with everything that became
/// of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The offers in a file, under each name that it may be recorded by.
    File { names: Vec<String> },
    /// The offers in every file in a folder and below it.
    Folder { names: Vec<String> },
    /// The offers with an event at this time or later: an offer, a verdict, or what replaced the
    /// offer.
    Since { at_ms: u64 },
    /// The offers with an event before this time. Only retention uses it, and it withdraws no
    /// adapter.
    Before { at_ms: u64 },
    /// Every event, and every adapter of any model or source.
    All,
}

impl Scope {
    /// Whether the user asked for it. Retention is automatic.
    pub fn is_by_user(&self) -> bool {
        !matches!(self, Scope::Before { .. })
    }
}

/// What was forgotten, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    pub events: u64,
    pub offers: usize,
    /// The adapters that had learned from the offers and are removed.
    pub adapters: Vec<AdapterVersion>,
    /// The adapter that serves afterwards; 0 is the model alone.
    pub serves: AdapterVersion,
    /// The reason why adapters that may have learned from the offers are left, and what to do about
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapters_left: Option<String>,
    /// What contributions to a team's adapter have learned from the offers, and what can be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
}

impl Forgotten {
    pub fn is_nothing(&self) -> bool {
        self.events == 0 && self.adapters.is_empty()
    }
}

/// The offers within a scope.
pub struct OffersToForget {
    scope: Scope,
    offers: HashSet<OfferId>,
    events: u64,
}

impl OffersToForget {
    pub fn search(log: &dyn EventLog, scope: Scope) -> Result<OffersToForget, LogError> {
        let mut offers = OffersToForget { scope, offers: HashSet::new(), events: 0 };
        log.scan(0, &mut |event| {
            if offers.scope.holds(&event) {
                offers.offers.insert(event.kind.offer_id().clone());
            }
            ControlFlow::Continue(())
        })?;
        // Only now is it known of all offers; their first events may lie before.
        let mut events = 0;
        log.scan(0, &mut |event| {
            events += u64::from(offers.concerns(&event));
            ControlFlow::Continue(())
        })?;
        offers.events = events;
        Ok(offers)
    }

    pub fn offers(&self) -> &HashSet<OfferId> {
        &self.offers
    }

    /// Whether an event is about one of the offers. It is also called for events that were appended
    /// after the search.
    fn concerns(&self, event: &Event) -> bool {
        self.scope.holds(event) || self.offers.contains(event.kind.offer_id())
    }

    pub fn plan(&self, registry: &Registry, base_sha256: &str) -> Forgotten {
        let adapters = match self.scope {
            Scope::All => registry.kept(),
            Scope::Before { .. } => vec![],
            _ => registry.learned_from(&self.offers, |root, entry| self.scope.means(root, entry)),
        };
        let serves = registry.active_without(&adapters, base_sha256);
        let adapters_left = self.adapters_left(registry);
        let offers = self.offers.len();
        let team = match self.scope {
            Scope::Before { .. } => None,
            _ => TeamFiles::beside(registry.folder()).note(&self.offers, self.is_everything()),
        };
        Forgotten { events: self.events, offers, adapters, serves, adapters_left, team }
    }

    fn is_everything(&self) -> bool {
        self.scope == Scope::All
    }

    /// The note about adapters that are left because the registry cannot be read. It does not say
    /// which of them learned from which offers.
    fn adapters_left(&self, registry: &Registry) -> Option<String> {
        let may_have_learned = match self.scope {
            Scope::All => true,
            Scope::Before { .. } => false,
            _ => !self.offers.is_empty(),
        };
        let reason = registry.read_only_reason().filter(|_| may_have_learned)?;
        Some(format!(
            "the adapters in {} are left as they are, because Hone cannot read their registry \
             ({reason}). None of them serves, but any of them may have learned from it. To be \
             rid of them, run `hone stop` and delete that folder",
            registry.folder().display()
        ))
    }

    /// Whether forgetting would change nothing. [`Scope::All`] always changes something, because it
    /// also removes files that the plan does not count: the gate's prior, and files that an update
    /// left.
    pub fn changes_nothing(&self, plan: &Forgotten) -> bool {
        plan.is_nothing() && self.scope != Scope::All
    }

    /// Removes what an interrupted run has learned from a history, before anything else is
    /// forgotten. It may have learned from anything.
    pub fn drop_unfinished(scope: &Scope, registry: &Registry) -> Result<()> {
        match scope.is_by_user() {
            true => HistoryFiles::beside(registry.folder()).remove(),
            false => Ok(()),
        }
    }

    /// Withdraws the adapters that learned from the offers. This comes before the events are
    /// erased: as long as the log has the offers, another attempt finds the same adapters. A
    /// registry that cannot be read does not prevent forgetting; its adapters are left, as the plan
    /// says.
    pub fn withdraw(&self, registry: &mut Registry, plan: &Forgotten) -> Result<()> {
        if self.scope.is_by_user() {
            let team = TeamFiles::beside(registry.folder());
            team.forget(&self.offers, self.is_everything())?;
        }
        match self.scope {
            _ if registry.read_only_reason().is_some() => Ok(()),
            Scope::Before { .. } => Ok(()),
            Scope::All => {
                registry.forget(&plan.adapters, plan.serves)?;
                registry.clear_folder()
            }
            _ => registry.forget(&plan.adapters, plan.serves),
        }
    }

    pub fn erase(&self, log: &dyn EventLog) -> Result<(), LogError> {
        log.retain(&|event| !self.concerns(event))
    }
}

impl Scope {
    /// Whether an adapter that learned from the history of this repository may have learned from
    /// what is forgotten. It is not known from which of the repository's files it learned.
    fn means(&self, root: &Path, entry: &Entry) -> bool {
        let root = addresses::name_of_file(root);
        let root = Path::new(&*root);
        match self {
            Scope::File { names } => names.iter().any(|name| Path::new(name).starts_with(root)),
            Scope::Folder { names } => names.iter().any(|name| {
                let folder = Path::new(name);
                folder.starts_with(root) || root.starts_with(folder)
            }),
            Scope::Since { at_ms } => entry.created_at_ms >= *at_ms,
            Scope::Before { .. } => false,
            Scope::All => true,
        }
    }

    fn holds(&self, event: &Event) -> bool {
        // A prompt may quote other files than its own.
        let holds = |is_meant: &dyn Fn(&String) -> bool| match &event.kind {
            EventKind::Completion(made) => {
                is_meant(&made.path) || made.context.iter().any(is_meant)
            }
            EventKind::NextEdit(edit) => is_meant(&edit.path),
            _ => false,
        };
        match self {
            Scope::File { names } => holds(&|path| names.contains(path)),
            Scope::Folder { names } => {
                holds(&|path| names.iter().any(|name| Path::new(path).starts_with(name)))
            }
            Scope::Since { at_ms } => event.at_ms >= *at_ms && !is_later_measurement(&event.kind),
            Scope::Before { at_ms } => event.at_ms < *at_ms,
            Scope::All => true,
        }
    }
}

/// Whether an event is a later measurement of an older offer. Such an event brings the older offer
/// into no scope.
fn is_later_measurement(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Kept { .. } | EventKind::Compared { .. })
}

/// The names that a file or folder may be recorded by. `file` is a path, or the address that an
/// editor has for a document. The names are the given one, that of the address, the absolute path,
/// and the path behind its links.
pub fn names_of(file: &str) -> Vec<String> {
    let text = |path: std::path::PathBuf| addresses::name_of_file(&path).into_owned();
    let mut names = vec![file.to_owned()];
    let mut path = file.to_owned();
    if addresses::is_address(file) {
        path = addresses::name(file);
        names.push(path.clone());
    }
    names.extend(std::path::absolute(&path).map(text));
    names.extend(Path::new(&path).canonicalize().map(text));
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fixtures;
    use feedback::log::MemoryLog;
    use feedback::testing::accepted;

    /// A log with three offers, made at 100, 200 and 300 ms, with a verdict 50 ms later.
    fn log() -> MemoryLog {
        let log = MemoryLog::default();
        for (number, path) in ["/p/src/a.rs", "/p/src/sub/b.rs", "/p/srcs/c.rs"].iter().enumerate()
        {
            let at_ms = 100 * (number as u64 + 1);
            let id = format!("o{number}");
            log.append(at_ms, fixtures::completion(&id, path)).unwrap();
            log.append(at_ms + 50, accepted(&id)).unwrap();
        }
        log
    }

    /// Forgets a scope; answers the ids of the offers that are left. Nothing of the forgotten ones
    /// is left.
    fn left(scope: Scope) -> Vec<String> {
        let log = log();
        let offers = OffersToForget::search(&log, scope).unwrap();
        offers.erase(&log).unwrap();
        let mut ids = vec![];
        log.scan(0, &mut |event| {
            ids.push(event.kind.offer_id().clone());
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(offers.events, 6 - ids.len() as u64);
        ids.dedup();
        ids
    }

    #[test]
    fn an_offer_is_forgotten_with_each_file_that_its_prompt_quoted() {
        let EventKind::Completion(mut made) = fixtures::completion("o", "/p/a.rs") else {
            unreachable!("it makes completions")
        };
        made.context = vec!["/p/src/model.rs".into(), "/q/b.rs".into()];
        let event = Event { seq: 0, at_ms: 0, kind: EventKind::Completion(made) };
        let names = |name: &str| vec![name.to_owned()];
        assert!(Scope::File { names: names("/p/src/model.rs") }.holds(&event));
        assert!(Scope::Folder { names: names("/q") }.holds(&event));
        assert!(!Scope::File { names: names("/p/src") }.holds(&event));
        assert!(!Scope::Folder { names: names("/r") }.holds(&event));
    }

    /// Offers in documents of these names; answers the names that are left after one is forgotten.
    fn left_without(recorded: &[&str], forgotten: Scope) -> Vec<String> {
        let log = MemoryLog::default();
        for (number, name) in recorded.iter().enumerate() {
            log.append(0, fixtures::completion(&format!("o{number}"), name)).unwrap();
        }
        OffersToForget::search(&log, forgotten).unwrap().erase(&log).unwrap();
        let mut left = vec![];
        log.scan(0, &mut |event| {
            if let EventKind::Completion(made) = event.kind {
                left.push(made.path);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        left
    }

    #[test]
    fn a_document_is_forgotten_by_its_address() {
        const REMOTE: &str = "vscode-remote://ssh-remote%2Bbox/home/u/x.py";
        const NAMES: &[&str] =
            &["/home/u/x.py", REMOTE, "untitled:Untitled-7", "/p/[id].ts", "Untitled-8"];
        let left = |file: &str| left_without(NAMES, Scope::File { names: names_of(file) });
        let others = |gone: &str| -> Vec<String> {
            NAMES.iter().filter(|name| **name != gone).map(|name| name.to_string()).collect()
        };
        for (file, gone) in [
            (REMOTE, REMOTE),
            ("vscode-remote://ssh-remote+box/home/u/x.py", "none: another host"),
            ("/home/u/x.py", "/home/u/x.py"),
            ("file:///home/u/x.py", "/home/u/x.py"),
            ("untitled:Untitled-7", "untitled:Untitled-7"),
            ("Untitled-7", "none: an address has a scheme"),
            ("file:///p/[id].ts", "/p/[id].ts"),
            ("file:///p/%5Bid%5D.ts", "/p/[id].ts"),
            ("untitled:Untitled-8", "Untitled-8"),
            ("Untitled-8", "Untitled-8"),
        ] {
            assert_eq!(left(file), others(gone), "{file}");
        }
        let folder = names_of("vscode-remote://ssh-remote%2bbox/home/");
        assert_eq!(left_without(NAMES, Scope::Folder { names: folder }), others(REMOTE));
        let here = Scope::Folder { names: names_of("/home") };
        assert_eq!(left_without(NAMES, here), others("/home/u/x.py"));
    }

    #[test]
    fn a_history_is_meant_if_the_forgotten_files_may_be_in_it() {
        let made = Entry { created_at_ms: 100, ..fixtures::entry(1, String::new()) };
        let means = |scope: Scope| scope.means(Path::new("/p/app"), &made);
        let names = |name: &str| vec![name.to_owned()];
        assert!(means(Scope::File { names: names("/p/app/src/a.rs") }));
        assert!(!means(Scope::File { names: names("/p/application/a.rs") }));
        assert!(means(Scope::Folder { names: names("/p/app/src") }));
        assert!(means(Scope::Folder { names: names("/p") }));
        assert!(!means(Scope::Folder { names: names("/p/other") }));
        assert!(means(Scope::Since { at_ms: 100 }) && !means(Scope::Since { at_ms: 101 }));
        assert!(means(Scope::All) && !means(Scope::Before { at_ms: 200 }));
    }

    #[test]
    fn an_offer_is_forgotten_whole_or_not_at_all() {
        let names = |name: &str| vec![name.to_owned()];
        assert_eq!(left(Scope::File { names: names("/p/src/a.rs") }), ["o1", "o2"]);
        assert_eq!(
            left(Scope::Folder { names: names("/p/src") }),
            ["o2"],
            "a folder with a longer name stays"
        );
        assert_eq!(left(Scope::Folder { names: names("/p/src/") }), ["o2"]);
        assert_eq!(left(Scope::Since { at_ms: 200 }), ["o0"]);
        assert_eq!(left(Scope::Since { at_ms: 150 }), [""; 0], "o0 got its verdict since");
        assert_eq!(left(Scope::Before { at_ms: 300 }), ["o2"]);
        assert_eq!(left(Scope::Before { at_ms: 250 }), ["o2"]);
        assert_eq!(left(Scope::All), [""; 0]);
    }
}
