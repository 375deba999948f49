//! The conditions of `[includeIf]` in git's settings.

use super::interpolate::interpolated;
use super::repository::Places;
use super::steps::{doubles, steps};
use crate::limits::{CONDITION_TEXT_BYTES_MAX, MATCH_STEPS_MAX, PATTERN_BYTES_MAX};
use crate::platform;
use bstr::{BString, ByteSlice, ByteVec};
use gix_glob::wildmatch::Mode;
use std::path::{Component, Path};

/// Conditions whose matching would take too long.
#[derive(Debug, PartialEq, Eq)]
pub struct TooCostly;

/// The steps that are left to the conditions of one repository.
pub struct Budget(u64);

impl Default for Budget {
    fn default() -> Budget {
        Budget(MATCH_STEPS_MAX)
    }
}

/// Where a condition stands, and what it is asked about.
pub struct Place<'a> {
    pub places: &'a Places,
    /// The file in which it stands, if it is not one of the environment.
    pub file: Option<&'a Path>,
    pub home: Option<&'a Path>,
}

/// Returns true if a condition holds. `remotes` are the addresses of the repository's remotes.
///
/// # Errors
/// It would take too long to find out.
pub fn holds(
    condition: &[u8],
    place: &Place,
    remotes: &[BString],
    budget: &mut Budget,
) -> Result<bool, TooCostly> {
    let Some((kind, pattern)) = condition.split_once_str(":") else { return Ok(false) };
    let mode = if kind == b"gitdir/i" { Mode::IGNORE_CASE } else { Mode::empty() };
    let (pattern, texts) = match kind {
        b"gitdir" | b"gitdir/i" => (pattern_of_path(pattern, place), paths(place.places)),
        b"onbranch" => (Some(whole(pattern)), place.places.branch().into_iter().collect()),
        b"hasconfig" => {
            (pattern.strip_prefix(b"remote.*.url:").map(BString::from), remotes.to_vec())
        }
        _ => (None, vec![]),
    };
    let Some(pattern) = pattern else { return Ok(false) };
    for text in texts {
        if matches(&pattern, &text, mode, budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn matches(
    pattern: &BString,
    text: &BString,
    mode: Mode,
    budget: &mut Budget,
) -> Result<bool, TooCostly> {
    let steps = steps(doubles(pattern), text.find_iter(b"/").count());
    let is_long = pattern.len() > PATTERN_BYTES_MAX || text.len() > CONDITION_TEXT_BYTES_MAX;
    let left = budget.0.checked_sub(steps).filter(|_| !is_long);
    budget.0 = left.ok_or(TooCostly)?;
    let mode = mode | Mode::NO_MATCH_SLASH_LITERAL;
    Ok(gix_glob::wildmatch(pattern.as_ref(), text.as_ref(), mode))
}

/// Returns the pattern for all below, where it ends with a slash.
fn whole(pattern: &[u8]) -> BString {
    let mut pattern = BString::from(pattern);
    if pattern.ends_with(b"/") {
        pattern.push_str("**");
    }
    pattern
}

/// Returns the paths of the repository's folder, as it was named and without links.
fn paths(places: &Places) -> Vec<BString> {
    let real = places.own.canonicalize().ok();
    [Some(places.own.clone()), real].into_iter().flatten().map(|path| slashed(&path)).collect()
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
