//! What in a file depends on the operating system: conditions on it, and interfaces of the standard
//! library and other crates that only one has. Code for tests is left out.

use super::paths::Found;
use proc_macro2::{TokenStream, TokenTree};

/// Conditions that name an operating system.
const CONDITIONS: [&str; 4] = ["unix", "windows", "target_os", "target_family"];

/// Names in paths of `std` and `tokio` that one kind of operating system has.
const NAMES: [&str; 7] = ["fd", "linux", "macos", "unix", "windows", "UnixListener", "UnixStream"];

/// Crates that give the calls of an operating system.
const CRATES: [&str; 2] = ["rustix", "windows_sys"];

#[derive(Debug, PartialEq, Eq)]
pub struct SystemUse {
    /// `cfg(unix)`, `std::os::unix`.
    pub what: String,
    pub line: usize,
}

pub fn of(found: &Found) -> Vec<SystemUse> {
    let conditions = found.conditions.iter().filter_map(|(condition, line)| {
        let what = format!("cfg({})", name_in(condition.clone())?);
        Some(SystemUse { what, line: *line })
    });
    let paths = found.paths.iter().filter_map(|path| {
        let first = path.segments.first()?.as_str();
        let is_theirs = CRATES.contains(&first)
            || (matches!(first, "std" | "tokio")
                && path.segments.iter().any(|name| NAMES.contains(&name.as_str())));
        is_theirs.then(|| SystemUse { what: path.segments.join("::"), line: path.line })
    });
    conditions.chain(paths).collect()
}

/// Whether a library or a program is compiled for one operating system only: `#![cfg(unix)]` in its
/// first file.
pub fn is_for_one(root: &str) -> bool {
    let Ok(file) = syn::parse_file(root) else { return false };
    file.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let list = attribute.meta.require_list();
        list.is_ok_and(|list| name_in(list.tokens.clone()).is_some())
    })
}

fn name_in(condition: TokenStream) -> Option<String> {
    condition.into_iter().find_map(|token| match token {
        TokenTree::Group(group) => name_in(group.stream()),
        TokenTree::Ident(name) => {
            let name = name.to_string();
            CONDITIONS.contains(&name.as_str()).then_some(name)
        }
        _ => None,
    })
}
