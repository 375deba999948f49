//! Whether a recorded document is among those that a scope names.

use super::Scope;
use crate::names::{folded, real_name};
use feedback::event::{Event, EventKind};
use host::addresses::saved_as;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;

/// The documents that a scope names. Each recorded name is resolved once, because it may be that of
/// a link that leads to one of them.
pub struct NamedDocuments {
    /// The names in the scope, in the form in which they are compared.
    names: Vec<String>,
    is_folder: bool,
    resolved: Mutex<HashMap<String, bool>>,
}

impl NamedDocuments {
    /// Returns `None` for a scope that names no document.
    pub fn of(scope: &Scope) -> Option<NamedDocuments> {
        let (names, is_folder) = match scope {
            Scope::File { names } => (names, false),
            Scope::Folder { names } => (names, true),
            _ => return None,
        };
        let names = names.iter().map(|name| folded(name).into_owned()).collect();
        Some(NamedDocuments { names, is_folder, resolved: Mutex::default() })
    }

    /// Returns true if an event is about one of the documents, or its prompt quotes one.
    pub fn concern(&self, event: &Event) -> bool {
        match &event.kind {
            EventKind::Completion(made) => {
                let quoted = made.context.iter().chain(&made.real_names);
                self.hold(&made.path) || quoted.into_iter().any(|name| self.hold(name))
            }
            EventKind::NextEdit(edit) => {
                self.hold(&edit.path) || edit.real_name.as_ref().is_some_and(|name| self.hold(name))
            }
            _ => false,
        }
    }

    /// Returns true if a document is one of these, by its own name, by the one as which it will be
    /// saved, or by the one behind its links.
    pub fn hold(&self, name: &str) -> bool {
        if let Some(known) = self.resolved.lock().get(name) {
            return *known;
        }
        let is_named = |other: Option<String>| other.is_some_and(|other| self.name(&other));
        let holds = self.name(name) || is_named(saved_as(name)) || is_named(real_name(name));
        self.resolved.lock().insert(name.to_owned(), holds);
        holds
    }

    /// Returns true if one of the documents may lie in this folder.
    pub fn may_lie_in(&self, folder: &Path) -> bool {
        let folder = host::addresses::name_of_file(folder);
        let real = real_name(&folder);
        [Some(&*folder), real.as_deref()].into_iter().flatten().any(|folder| {
            let folder = folded(folder);
            let folder = Path::new(&*folder);
            let lies_in = |name: &String| {
                let name = Path::new(name);
                name.starts_with(folder) || (self.is_folder && folder.starts_with(name))
            };
            self.names.iter().any(lies_in)
        })
    }

    fn name(&self, name: &str) -> bool {
        let name = folded(name);
        match self.is_folder {
            false => self.names.iter().any(|named| *named == name),
            true => self.names.iter().any(|named| Path::new(&*name).starts_with(named)),
        }
    }
}
