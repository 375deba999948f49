//! What is indexed of a folder. One thread changes it, and publishes snapshots that sessions
//! search.

use crate::privacy::forget_scope::Scope;
use crate::workspace::access::Access;
use crate::workspace::limits::{FILES_MAX, TEXT_BYTES_MAX};
use arc_swap::ArcSwap;
use memory::Memory;
use parking_lot::Mutex;
use retrieval::Index;
use std::path::Path;
use std::sync::Arc;

/// The indexes of a folder at one moment. Both name files by their absolute paths, and share the
/// texts.
#[derive(Clone)]
pub struct Snapshot {
    pub retrieval: Index,
    pub memory: Memory,
}

impl Snapshot {
    fn empty() -> Snapshot {
        let of_code = retrieval::Limits {
            files: FILES_MAX,
            text_bytes: TEXT_BYTES_MAX,
            ..retrieval::Limits::default()
        };
        let of_lines = memory::Limits {
            files: FILES_MAX,
            text_bytes: TEXT_BYTES_MAX,
            ..memory::Limits::default()
        };
        Snapshot { retrieval: Index::new(of_code), memory: Memory::new(of_lines) }
    }
}

pub struct Contents {
    access: Arc<Access>,
    /// What will be published next. The lock is never held while the disk is read.
    next: Mutex<Snapshot>,
    published: ArcSwap<Snapshot>,
}

/// A piece of a document that the user has just typed.
pub struct TypedPiece {
    pub text: String,
    pub at_ms: u64,
}

impl Contents {
    pub fn new(access: Arc<Access>) -> Contents {
        let empty = Snapshot::empty();
        Contents {
            access,
            next: Mutex::new(empty.clone()),
            published: ArcSwap::from_pointee(empty),
        }
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    pub fn publish(&self) {
        let next = self.next.lock();
        self.published.store(Arc::new(next.clone()));
    }

    /// Adds a file or replaces it; answers whether there was room in both indexes. `real` is the
    /// file's other name, if links lead to it.
    pub fn put(
        &self,
        name: &str,
        real: Option<&Path>,
        text: Arc<str>,
        typed: Option<TypedPiece>,
    ) -> bool {
        let mut next = self.next.lock();
        // The user may have forgotten the file while it was read. They are asked again under the
        // lock that `forget` takes after it has noted the name.
        let names = [Some(Path::new(name)), real];
        if names.into_iter().flatten().any(|name| self.access.forgotten.holds(name)) {
            remove(&mut next, name);
            return true;
        }
        if let Some(typed) = typed {
            next.memory.put_typed(name, &typed.text, typed.at_ms);
        }
        let in_memory = next.memory.put(name, text.clone()).is_ok();
        let in_index = next.retrieval.put(name, text).is_ok();
        in_memory && in_index
    }

    pub fn remove(&self, name: &str) -> bool {
        remove(&mut self.next.lock(), name)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.next.lock().retrieval.contains(name)
    }

    /// The names of all indexed files.
    pub fn names(&self) -> Vec<String> {
        self.next.lock().retrieval.names().map(str::to_owned).collect()
    }

    /// The text of a file as it was indexed last.
    pub fn text(&self, name: &str) -> Option<Arc<str>> {
        self.next.lock().retrieval.text(name)
    }

    /// Removes everything, and publishes that.
    pub fn clear(&self) {
        *self.next.lock() = Snapshot::empty();
        self.publish();
    }

    /// Removes what is to be forgotten, and publishes that.
    pub fn forget(&self, scope: &Scope) {
        let names = self.forgotten_names(scope);
        let mut next = self.next.lock();
        match scope {
            Scope::File { .. } | Scope::Folder { .. } => names.iter().for_each(|name| {
                remove(&mut next, name);
            }),
            Scope::Since { at_ms } => {
                next.memory.remove_typed_since(*at_ms);
            }
            Scope::All => *next = Snapshot::empty(),
            // Retention is automatic, and what was typed so long ago is not there any more.
            Scope::Before { .. } => {}
        }
        next.retrieval.purge();
        next.memory.purge();
        drop(next);
        self.publish();
    }
}

impl Contents {
    /// The indexed files of a scope, by their own names or by those that links lead to.
    fn forgotten_names(&self, scope: &Scope) -> Vec<String> {
        let (Scope::File { names } | Scope::Folder { names }) = scope else { return vec![] };
        let forgotten = &self.access.forgotten;
        let is_forgotten = |name: &String| {
            let path = Path::new(name);
            forgotten.holds(path) || path.canonicalize().is_ok_and(|real| forgotten.holds(&real))
        };
        self.names().into_iter().filter(is_forgotten).chain(names.iter().cloned()).collect()
    }
}

fn remove(next: &mut Snapshot, name: &str) -> bool {
    let was_remembered = next.memory.remove(name);
    next.retrieval.remove(name) || was_remembered
}
