//! What `hone forget` removes: the offers in a file or a folder, or since a day, with everything
//! that became of them. They are removed from the log and the disk, and adapters that learned from
//! them are withdrawn. Retention removes old events in the same way.

mod dated;
mod matching;

use crate::names::real_name;
use adapters::history::HistoryFiles;
use adapters::registry::Registry;
use adapters::team::TeamFiles;
use anyhow::Result;
use dated::{Dated, Range};
use feedback::event::{AdapterVersion, Event, EventKind, OfferId};
use feedback::log::{EventLog, LogError};
use host::addresses;
use matching::NamedDocuments;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::PathBuf;

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
    /// Returns whether the user asked for it. Retention is automatic.
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
    /// The logs that could not be opened. They cannot be searched, so all of them go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged_logs: Vec<PathBuf>,
}

impl Forgotten {
    pub fn is_nothing(&self) -> bool {
        self.events == 0 && self.adapters.is_empty() && self.damaged_logs.is_empty()
    }
}

/// The offers within a scope.
pub struct OffersToForget {
    scope: Scope,
    documents: Option<NamedDocuments>,
    now_ms: u64,
    offers: HashSet<OfferId>,
    events: u64,
    /// The number of the first event that came after the search.
    searched_to: u64,
}

impl OffersToForget {
    /// Searches the log. `now_ms` is the date of today.
    pub fn search(
        log: &dyn EventLog,
        scope: Scope,
        now_ms: u64,
    ) -> Result<OffersToForget, LogError> {
        let documents = NamedDocuments::of(&scope);
        let mut dated = scope.range().map(|range| Dated::new(range, now_ms));
        let (mut offers, mut searched_to) = (HashSet::new(), 0);
        log.scan(0, &mut |event| {
            searched_to = event.seq + 1;
            let offer = event.kind.offer_id();
            if let Some(dated) = &mut dated {
                dated.next(event.at_ms, scope.counts(&event.kind).then(|| offer.clone()));
            } else if documents.as_ref().is_none_or(|documents| documents.concern(&event)) {
                offers.insert(offer.clone());
            }
            ControlFlow::Continue(())
        })?;
        offers.extend(dated.into_iter().flat_map(Dated::within));
        let mut found = OffersToForget { scope, documents, now_ms, offers, events: 0, searched_to };
        // Only now is it known of all offers; their first events may lie before.
        let mut events = 0;
        log.scan(0, &mut |event| {
            events += u64::from(found.concerns(&event));
            ControlFlow::Continue(())
        })?;
        found.events = events;
        Ok(found)
    }

    pub fn offers(&self) -> &HashSet<OfferId> {
        &self.offers
    }

    /// Returns true if an event is about one of the offers. It is also called for events that were
    /// appended after the search.
    fn concerns(&self, event: &Event) -> bool {
        let is_new = event.seq >= self.searched_to;
        self.offers.contains(event.kind.offer_id())
            || match (&self.documents, &self.scope) {
                (Some(documents), _) => documents.concern(event),
                (None, Scope::Since { .. }) => is_new && self.scope.counts(&event.kind),
                (None, Scope::Before { .. }) => false,
                (None, _) => true,
            }
    }

    /// `set_aside`: the logs that could not be opened.
    pub fn plan(
        &self,
        registry: &Registry,
        base_sha256: &str,
        set_aside: Vec<PathBuf>,
    ) -> Forgotten {
        let adapters = match self.scope {
            Scope::All => registry.kept(),
            Scope::Before { .. } => vec![],
            _ => self.learned(registry),
        };
        let serves = registry.active_without(&adapters, base_sha256);
        let adapters_left = self.adapters_left(registry);
        let offers = self.offers.len();
        let team = match self.scope {
            Scope::Before { .. } => None,
            _ => TeamFiles::next_to(registry.folder()).note(&self.offers, self.is_everything()),
        };
        let damaged_logs = if self.scope.is_by_user() { set_aside } else { vec![] };
        let events = self.events;
        Forgotten { events, offers, adapters, serves, adapters_left, team, damaged_logs }
    }

    /// Finds the adapters that learned from the offers, and those that learned from a history of
    /// which it is not known from which of its files.
    fn learned(&self, registry: &Registry) -> Vec<AdapterVersion> {
        let since = match self.scope.range() {
            Some(range) => {
                let mut dated = Dated::new(range, self.now_ms);
                for entry in registry.entries() {
                    dated.next(entry.created_at_ms, Some(entry.version));
                }
                dated.within()
            }
            None => vec![],
        };
        registry.learned_from(&self.offers, |root, entry| match &self.documents {
            Some(documents) => documents.may_lie_in(root),
            None => since.contains(&entry.version),
        })
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

    /// Returns true if there is nothing to erase. [`Scope::All`] always erases, because the log may
    /// keep what was removed from it until it is written anew.
    pub fn is_nothing(&self) -> bool {
        self.events == 0 && self.scope != Scope::All
    }

    /// Removes what cannot be searched and may hold anything, before anything else is forgotten:
    /// what an interrupted run has learned from a history, messages and files that were not written
    /// to their end, adapters that no registry names, and logs that could not be opened.
    ///
    /// # Errors
    /// Something cannot be removed. The rest is.
    pub fn remove_unsearchable(
        scope: &Scope,
        registry: &Registry,
        log: &dyn EventLog,
    ) -> Result<()> {
        if !scope.is_by_user() {
            return Ok(());
        }
        let history = HistoryFiles::next_to(registry.folder()).remove();
        let team = TeamFiles::next_to(registry.folder()).remove_unfinished();
        let unnamed = registry.remove_unnamed();
        let logs = log.remove_others().map_err(anyhow::Error::from);
        history.and(team).and(unnamed).and(logs)
    }

    /// Withdraws the adapters that learned from the offers. This comes before the events are
    /// erased: as long as the log has the offers, another attempt finds the same adapters. It is
    /// done even if none is found, because an earlier attempt may have failed in the middle. A
    /// registry that cannot be read does not prevent forgetting; its adapters are left, as the plan
    /// says.
    pub fn withdraw(&self, registry: &mut Registry, plan: &Forgotten) -> Result<()> {
        if !self.scope.is_by_user() {
            return Ok(());
        }
        let team = TeamFiles::next_to(registry.folder());
        team.forget(&self.offers, self.is_everything())?;
        match registry.read_only_reason() {
            Some(_) => Ok(()),
            None => registry.forget(&plan.adapters, plan.serves),
        }
    }

    /// Removes the files of the adapters that are withdrawn, now or by an earlier attempt. Their
    /// failure prevents nothing else, because the registry knows what is to be removed.
    pub fn remove_files(&self, registry: &Registry) -> Result<()> {
        if !self.scope.is_by_user() || registry.read_only_reason().is_some() {
            return Ok(());
        }
        let unused = registry.remove_unused();
        let rest = if self.is_everything() { registry.clear_folder() } else { Ok(()) };
        unused.and(rest)
    }

    /// Erases the events from the log and the disk.
    pub fn erase(&self, log: &dyn EventLog) -> Result<(), LogError> {
        if self.is_nothing() {
            return Ok(());
        }
        log.retain(&|event| !self.concerns(event))
    }
}

impl Scope {
    fn range(&self) -> Option<Range> {
        match self {
            Scope::Since { at_ms } => Some(Range::Since(*at_ms)),
            Scope::Before { at_ms } => Some(Range::Before(*at_ms)),
            Scope::File { .. } | Scope::Folder { .. } | Scope::All => None,
        }
    }

    /// Returns true if an event with a date in the scope brings its offer into it.
    fn counts(&self, kind: &EventKind) -> bool {
        matches!(self, Scope::Before { .. }) || !is_later_measurement(kind)
    }
}

/// Returns true if an event is a later measurement of an older offer. Such an event brings the
/// older offer into no scope that begins at a time.
fn is_later_measurement(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Kept { .. } | EventKind::Compared { .. })
}

/// The names that a file or folder may be recorded by. `file` is a path, or the address that an
/// editor has for a document. The names are the given one, that of the address, the absolute path,
/// and the path behind its links, as far as it is there.
pub fn names_of(file: &str) -> Vec<String> {
    let text = |path: std::path::PathBuf| addresses::name_of_file(&path).into_owned();
    let mut names = vec![file.to_owned()];
    let mut path = file.to_owned();
    if addresses::is_address(file) {
        path = addresses::name(file);
        names.push(path.clone());
    }
    if let Ok(absolute) = std::path::absolute(&path).map(text) {
        names.extend(real_name(&absolute));
        names.push(absolute);
    }
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use adapters::registry::Origin;
    use feedback::log::MemoryLog;
    use feedback::testing::accepted;

    const NOW_MS: u64 = 1_000;

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

    /// Forgets a scope. Returns the ids of the offers that are left. Nothing of the forgotten ones
    /// is left.
    fn left(scope: Scope) -> Vec<String> {
        let log = log();
        let offers = OffersToForget::search(&log, scope, NOW_MS).unwrap();
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
        let concerns = |scope: Scope| NamedDocuments::of(&scope).unwrap().concern(&event);
        assert!(concerns(Scope::File { names: names("/p/src/model.rs") }));
        assert!(concerns(Scope::Folder { names: names("/q") }));
        assert!(!concerns(Scope::File { names: names("/p/src") }));
        assert!(!concerns(Scope::Folder { names: names("/r") }));
    }

    /// Makes offers in documents of these names. Returns the names that are left after one is
    /// forgotten.
    fn left_without(recorded: &[&str], forgotten: Scope) -> Vec<String> {
        let log = MemoryLog::default();
        for (number, name) in recorded.iter().enumerate() {
            log.append(0, fixtures::completion(&format!("o{number}"), name)).unwrap();
        }
        OffersToForget::search(&log, forgotten, NOW_MS).unwrap().erase(&log).unwrap();
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
            ("untitled:Untitled-8", "none: there is no such document"),
            ("Untitled-8", "Untitled-8"),
        ] {
            assert_eq!(left(file), others(gone), "{file}");
        }
        let folder = names_of("vscode-remote://ssh-remote%2bbox/home/");
        assert_eq!(left_without(NAMES, Scope::Folder { names: folder }), others(REMOTE));
        let here = Scope::Folder { names: names_of("/home") };
        assert_eq!(left_without(NAMES, here), others("/home/u/x.py"));
    }

    /// VS Code opens `code clients/new.py` so, and saves it there later.
    #[cfg(unix)]
    #[test]
    fn a_document_that_is_not_saved_yet_is_forgotten_with_its_folder() {
        const UNSAVED: &str = "untitled:/nowhere/clients/new.py";
        let recorded = [UNSAVED, "untitled:Untitled-7"];
        let file = Scope::File { names: names_of("/nowhere/clients/new.py") };
        for scope in [Scope::Folder { names: names_of("/nowhere/clients") }, file] {
            assert_eq!(left_without(&recorded, scope), ["untitled:Untitled-7"]);
        }
        let other = Scope::Folder { names: names_of("/nowhere/other") };
        assert_eq!(left_without(&recorded, other), recorded);
    }

    /// The adapters that are forgotten, of one that learned from the history of this folder at 100.
    fn withdrawn(root: &str, scope: Scope) -> Vec<AdapterVersion> {
        let folder = tempfile::tempdir().unwrap();
        let (mut registry, _) = Registry::open(&folder.path().join("adapters"), "base");
        std::fs::create_dir(registry.folder()).unwrap();
        let file = registry.folder().join("import-x");
        std::fs::write(&file, "adapter").unwrap();
        let origin = Origin { history: root.into(), report: Box::default() };
        registry.import(&file, "sha".into(), "base", Some(origin), 100).unwrap();
        OffersToForget::search(&MemoryLog::default(), scope, NOW_MS)
            .unwrap()
            .plan(&registry, "base", vec![])
            .adapters
    }

    #[test]
    fn a_history_is_meant_if_the_forgotten_files_may_be_in_it() {
        let names = |name: &str| vec![name.to_owned()];
        let means = |scope: Scope| !withdrawn("/p/app", scope).is_empty();
        assert!(means(Scope::File { names: names("/p/app/src/a.rs") }));
        assert!(!means(Scope::File { names: names("/p/application/a.rs") }));
        assert!(means(Scope::Folder { names: names("/p/app/src") }));
        assert!(means(Scope::Folder { names: names("/p") }));
        assert!(!means(Scope::Folder { names: names("/p/other") }));
        assert!(means(Scope::Since { at_ms: 100 }) && !means(Scope::Since { at_ms: 101 }));
        assert!(means(Scope::All) && !means(Scope::Before { at_ms: 200 }));
    }

    /// Two names of one file, in both directions: for a file, for a folder, for the list of what is
    /// not read any more, and for an adapter that learned from a history.
    #[cfg(unix)]
    #[test]
    fn a_file_is_forgotten_by_each_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name).to_string_lossy().into_owned();
        std::fs::create_dir_all(root.join("real/app")).unwrap();
        std::fs::write(root.join("real/app/a.py"), "").unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        for (recorded, named) in [("real", "link"), ("link", "real"), ("link", "link")] {
            // The second file is not there any more.
            for file in ["app/a.py", "app/gone/b.py"] {
                let case = format!("{file}, recorded by {recorded} and named by {named}");
                let (known, other) = (path(&format!("{recorded}/{file}")), path("other/c.py"));
                let names = names_of(&path(&format!("{named}/{file}")));
                let left = left_without(&[&known, &other], Scope::File { names: names.clone() });
                assert_eq!(left, [other.as_str()], "{case}");
                let of_folder = Scope::Folder { names: names_of(&path(&format!("{named}/app"))) };
                let left = left_without(&[&known, &other], of_folder.clone());
                assert_eq!(left, [other.as_str()], "{case}");
                let list = crate::access::Access::new(
                    std::sync::Arc::default(),
                    root.join("forgotten"),
                    settings::patterns::Patterns::none(),
                );
                assert!(list.may_read(&known, ""), "{case}");
                list.forgotten.add(&Scope::File { names }).unwrap();
                assert!(!list.may_read(&known, "") && list.may_read(&other, ""), "{case}");
                std::fs::remove_file(root.join("forgotten")).unwrap();
                let repository = path(&format!("{recorded}/app"));
                assert_eq!(withdrawn(&repository, of_folder), [1], "{case}");
            }
        }
    }

    /// The link was there when the offer was recorded, and is not any more.
    #[test]
    fn the_real_name_that_was_recorded_counts() {
        let EventKind::Completion(mut made) = fixtures::completion("o", "/link/a.rs") else {
            unreachable!("it makes completions")
        };
        made.real_names = vec!["/real/a.rs".into()];
        let log = MemoryLog::default();
        log.append(0, EventKind::Completion(made)).unwrap();
        let scope = Scope::Folder { names: vec!["/real".into()] };
        assert_eq!(OffersToForget::search(&log, scope, NOW_MS).unwrap().offers().len(), 1);
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
