//! The lines of one ignore file, compiled, as git reads them.

use super::steps::{doubles, steps};
use crate::limits::{PATTERN_BYTES_MAX, PATTERN_STARS_MAX};
use bstr::{BStr, ByteSlice};
use gix_glob::Pattern;
use gix_glob::pattern::{Case, Mode as Kind};
use gix_glob::wildmatch::Mode;

/// The mark that some editors put in front of a text. It is no part of the first pattern.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The patterns of one file.
#[derive(Debug, Default)]
pub struct Rules {
    patterns: Vec<Pattern>,
    /// The number of patterns that have 0, 1, 2 … `**` before a slash.
    with_doubles: [u64; PATTERN_STARS_MAX / 2 + 1],
}

/// A pattern whose matching would take too long.
#[derive(Debug, PartialEq, Eq)]
pub struct TooCostly;

impl Rules {
    /// Compiles the content of an ignore file. A line that is no pattern is skipped, as git does.
    ///
    /// # Errors
    /// A pattern is too long, or has too many `*`.
    pub fn parse(content: &[u8]) -> Result<Rules, TooCostly> {
        let lines = plain(content);
        let patterns = gix_ignore::parse(&lines, false).map(|(pattern, ..)| pattern);
        let patterns: Vec<Pattern> = patterns.collect();
        let is_costly = |pattern: &Pattern| {
            pattern.text.len() > PATTERN_BYTES_MAX
                || pattern.text.find_iter(b"*").count() > PATTERN_STARS_MAX
        };
        if patterns.iter().any(is_costly) {
            return Err(TooCostly);
        }
        let mut rules = Rules { patterns, ..Rules::default() };
        for pattern in &rules.patterns {
            rules.with_doubles[doubles(&pattern.text) as usize] += 1;
        }
        Ok(rules)
    }

    /// Returns the number of patterns.
    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Returns the most steps that it takes to match all patterns against a path with so many
    /// slashes.
    pub fn steps(&self, slashes: usize) -> u64 {
        let kinds = (0u32..).zip(&self.with_doubles);
        let steps = kinds.map(|(doubles, count)| steps(doubles, slashes).saturating_mul(*count));
        steps.fold(0, u64::saturating_add)
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns true if these rules exclude a path, false if they take it in again, and nothing if
    /// they do not speak about it. The path is given from the folder of the rules on, with slashes.
    /// The last rule that matches decides.
    pub fn verdict(&self, path: &BStr, is_folder: bool, case: Case) -> Option<bool> {
        let mut last_first = self.patterns.iter().rev();
        let decides = last_first.find(|pattern| matches(pattern, path, is_folder, case));
        decides.map(|pattern| !pattern.is_negative())
    }
}

/// Returns true if a pattern speaks about a path.
fn matches(pattern: &Pattern, path: &BStr, is_folder: bool, case: Case) -> bool {
    let mode = Mode::NO_MATCH_SLASH_LITERAL;
    let is_of_name =
        pattern.mode.contains(Kind::NO_SUB_DIR) && !pattern.mode.contains(Kind::ABSOLUTE);
    let Some(begin) = pattern.first_wildcard_pos.filter(|_| !is_of_name) else {
        let last_part = path.rfind_byte(b'/').map(|slash| slash + 1);
        return pattern.matches_repo_relative_path(path, last_part, Some(is_folder), case, mode);
    };
    // Git compares what stands before the first wildcard, and matches the rest as a pattern of its
    // own, so that `**` may stand at its beginning.
    let (literal, rest) = pattern.text.split_at(begin);
    let (is_same, mode) = match case {
        Case::Sensitive => (path.starts_with(literal), mode),
        Case::Fold => {
            let start = path.get(..begin);
            let is_same = start.is_some_and(|start| start.eq_ignore_ascii_case(literal));
            (is_same, mode | Mode::IGNORE_CASE)
        }
    };
    (is_folder || !pattern.mode.contains(Kind::MUST_BE_DIR))
        && is_same
        && gix_glob::wildmatch(rest.into(), path[begin..].into(), mode)
}

/// Returns the lines as git sees them: without the mark in front, each up to its first zero, and
/// without the return before a line break, at the end of the file too. An empty line comes first,
/// so that no other byte order mark is looked for.
fn plain(content: &[u8]) -> Vec<u8> {
    let content = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
    let mut plain = Vec::with_capacity(content.len() + 2);
    plain.push(b'\n');
    for line in content.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        plain.extend(line.split(|byte| *byte == 0).next().unwrap_or_default());
        plain.push(b'\n');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(content: &[u8], path: &str) -> Option<bool> {
        Rules::parse(content).unwrap().verdict(path.into(), false, Case::Sensitive)
    }

    #[test]
    fn lines_are_read_as_git_reads_them() {
        for content in [
            &b"a.py\n"[..],
            b"a.py",
            b"a.py\r\n",
            b"a.py\r",
            b"\xef\xbb\xbfa.py\n",
            b"\xef\xbb\xbf# rules\r\na.py  \n",
            b"a.py\0rest\n",
            b"b.py\n\n   \na.py\nc.py\n",
            b"/a.py\n",
            b"?.py\n",
            b"[!b].py\n",
        ] {
            assert_eq!(verdict(content, "a.py"), Some(true), "{:?}", content.as_bstr());
        }
        assert_eq!(verdict(b"*.py\n!a.py\n", "a.py"), Some(false));
        for content in
            [&b""[..], b"#a.py\n", b"a.py/\n", b"\\#a.py\n", b"a.py\\ \n", b"\xff\xfea.py"]
        {
            assert_eq!(verdict(content, "a.py"), None, "{:?}", content.as_bstr());
        }
    }

    #[test]
    fn patterns_that_would_take_long_are_refused() {
        let stars = "*a".repeat(PATTERN_STARS_MAX + 1);
        let long = "a".repeat(PATTERN_BYTES_MAX + 1);
        for line in [stars, long] {
            assert_eq!(Rules::parse(line.as_bytes()).unwrap_err(), TooCostly);
        }
    }
}
