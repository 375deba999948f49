//! The conditions of `[includeIf]` in git's settings.

use super::interpolate::interpolated;
use super::repository::Places;
use crate::platform;
use bstr::{BString, ByteSlice, ByteVec};
use gix_glob::wildmatch::Mode;
use std::path::{Component, Path};

/// Where a condition stands, and what it is asked about.
pub struct Place<'a> {
    pub places: &'a Places,
    /// The file in which it stands, if it is not one of the environment.
    pub file: Option<&'a Path>,
    pub home: Option<&'a Path>,
}

/// Returns true if a condition holds. `remotes` are the addresses of the repository's remotes.
pub fn holds(condition: &[u8], place: &Place, remotes: &[BString]) -> bool {
    let Some((kind, pattern)) = condition.split_once_str(":") else { return false };
    match kind {
        b"gitdir" => is_at(pattern, place, Mode::empty()),
        b"gitdir/i" => is_at(pattern, place, Mode::IGNORE_CASE),
        b"onbranch" => {
            let branch = place.places.branch();
            branch.is_some_and(|branch| matches(&whole(pattern), &branch, Mode::empty()))
        }
        b"hasconfig" => {
            let pattern = pattern.strip_prefix(b"remote.*.url:");
            pattern.is_some_and(|pattern| {
                remotes.iter().any(|remote| matches(pattern, remote, Mode::empty()))
            })
        }
        _ => false,
    }
}

fn matches(pattern: &[u8], value: &[u8], mode: Mode) -> bool {
    gix_glob::wildmatch(pattern.into(), value.into(), mode | Mode::NO_MATCH_SLASH_LITERAL)
}

/// Returns the pattern for all below, where it ends with a slash.
fn whole(pattern: &[u8]) -> BString {
    let mut pattern = BString::from(pattern);
    if pattern.ends_with(b"/") {
        pattern.push_str("**");
    }
    pattern
}

/// Returns true if the repository's folder has such a path, as it was named or without links.
fn is_at(pattern: &[u8], place: &Place, mode: Mode) -> bool {
    let Some(pattern) = pattern_of_path(pattern, place) else { return false };
    let own = &place.places.own;
    let real = own.canonicalize().ok();
    [Some(own.clone()), real]
        .into_iter()
        .flatten()
        .any(|path| matches(&pattern, &slashed(&path), mode))
}

fn pattern_of_path(pattern: &[u8], place: &Place) -> Option<BString> {
    let mut plain = match pattern.first() {
        Some(b'~') => slashed(&interpolated(pattern.into(), place.home)?),
        _ => BString::from(pattern),
    };
    if pattern.starts_with(b"~") && pattern.ends_with(b"/") && !plain.ends_with(b"/") {
        plain.push(b'/');
    }
    if let Some(below) = plain.strip_prefix(b"./") {
        let folder = place.file?.parent()?;
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        plain = [slashed(&folder).as_slice(), b"/", below].concat().into();
    } else if !platform::path_of(&plain).is_some_and(|path| path.is_absolute()) {
        plain = [b"**/", plain.as_slice()].concat().into();
    }
    Some(whole(&plain))
}

/// Returns a path as git writes it.
fn slashed(path: &Path) -> BString {
    let mut slashed = BString::default();
    for part in path.components() {
        match part {
            Component::RootDir => slashed.push(b'/'),
            part => {
                if !slashed.is_empty() && !slashed.ends_with(b"/") {
                    slashed.push(b'/');
                }
                slashed.extend_from_slice(&platform::bytes_of(part.as_os_str()));
            }
        }
    }
    slashed
}
