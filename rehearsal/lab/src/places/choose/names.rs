//! What a rule would cost that hides offers with names which nothing knows.

use super::lines::outcome;
use crate::lines::first_line;
use crate::places::record::{Record, SeenName};
use std::fmt::Write;

/// Tells something of a name.
type Test = fn(&SeenName) -> bool;

/// Who is asked whether a name is known.
const SOURCES: [(&str, Test); 3] = [
    ("the document", |name| name.in_document),
    ("and the open and imported files", |name| name.in_document || name.in_others),
    ("and the whole folder", |name| name.in_document || name.in_others || name.in_tree),
];

/// The names that count.
const KINDS: [(&str, Test); 2] = [("any name", |_| true), ("a member", |name| name.is_member)];

/// A name that the open and the imported files do not know.
pub fn is_unknown(name: &SeenName) -> bool {
    is_unknown_to(name, SOURCES[1].1)
}

fn is_unknown_to(name: &SeenName, knows: Test) -> bool {
    !(name.is_declared || name.is_builtin || knows(name))
}

/// The offers with an unknown name, and how many of them are right.
pub fn table<'a>(title: &str, records: impl Iterator<Item = &'a Record> + Clone) -> String {
    let mut table = format!("# names that nothing knows, {title}\n\n");
    for (label, knows) in SOURCES {
        for (kind, is_wanted) in KINDS {
            for (which, first_only) in [("first answers", true), ("all candidates", false)] {
                let [mut all, mut all_right, mut unknown, mut unknown_right] = [0; 4];
                for record in records.clone() {
                    let count = if first_only { 1 } else { record.candidates.len() };
                    for one in record.candidates.iter().take(count) {
                        if one.shown.trim().is_empty() {
                            continue;
                        }
                        let is_right = outcome(first_line(&one.shown), record).is_exact;
                        let is_odd =
                            |name: &SeenName| is_unknown_to(name, knows) && is_wanted(name);
                        all += 1;
                        all_right += usize::from(is_right);
                        if one.names.iter().any(is_odd) {
                            unknown += 1;
                            unknown_right += usize::from(is_right);
                        }
                    }
                }
                let _ = writeln!(
                    table,
                    "{label:<34}{kind:<10}{which:<16}{unknown:>4} of {all:>4} have one; right: \
                     {unknown_right} of {all_right}"
                );
            }
        }
    }
    table.push('\n');
    table
}
