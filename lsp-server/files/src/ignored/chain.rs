//! Whether the ignore files of several folders exclude a path, as git reads them: it does not look
//! into a folder that is excluded, so nothing below it is taken in again.

use super::rules::Rules;
use crate::platform;
use bstr::{BStr, ByteSlice};
use gix_glob::pattern::Case;
use std::path::{Component, Path};

/// A path as git writes it, from the root of the file system on.
#[derive(Debug, Clone)]
pub struct Parts {
    joined: Vec<u8>,
    /// The byte at which each part begins, and one behind the last.
    starts: Vec<usize>,
}

impl Parts {
    pub fn of(path: &Path) -> Parts {
        let mut parts = Parts { joined: vec![], starts: vec![0] };
        for part in path.components() {
            if let Component::Normal(part) = part {
                parts.push(&platform::bytes_of(part));
            }
        }
        parts
    }

    fn push(&mut self, part: &[u8]) {
        self.joined.extend(part);
        self.joined.push(b'/');
        self.starts.push(self.joined.len());
    }

    /// Returns the path of something in this folder.
    pub fn with(&self, name: &std::ffi::OsStr) -> Parts {
        let mut parts = self.clone();
        parts.push(&platform::bytes_of(name));
        parts
    }

    /// Returns the number of parts.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the first `end` parts without the first `begin` of them.
    fn between(&self, begin: usize, end: usize) -> &BStr {
        self.joined[self.starts[begin]..self.starts[end] - 1].as_bstr()
    }
}

/// The rules of one file, for everything below the folder with so many parts.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
    pub folder: usize,
    pub rules: &'a Rules,
}

/// Returns true if rules exclude a path, or a folder above it that has more than `known` parts. A
/// layer further on in the list comes before the others.
pub fn excludes(path: &Parts, is_folder: bool, layers: &[Layer], known: usize, case: Case) -> bool {
    let lowest = layers.iter().map(|layer| layer.folder).min().unwrap_or(path.count());
    (known.max(lowest) + 1..=path.count()).any(|end| {
        let is_folder = is_folder || end < path.count();
        let above = layers.iter().rev().filter(|layer| layer.folder < end);
        let mut verdicts = above
            .map(|layer| layer.rules.verdict(path.between(layer.folder, end), is_folder, case));
        verdicts.find_map(|verdict| verdict).unwrap_or(false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_excluded(files: &[(&str, &str)], path: &str) -> bool {
        let rules: Vec<(usize, Rules)> = files
            .iter()
            .map(|(folder, lines)| {
                let rules = Rules::parse(lines.as_bytes()).unwrap();
                (Parts::of(Path::new(folder)).count(), rules)
            })
            .collect();
        let layers: Vec<Layer> =
            rules.iter().map(|(folder, rules)| Layer { folder: *folder, rules }).collect();
        excludes(&Parts::of(Path::new(path)), false, &layers, 0, Case::Sensitive)
    }

    #[test]
    fn the_nearest_file_decides_first() {
        let files = [("/r", "*.log\n!keep.log\n/target\n"), ("/r/src", "!a.log\nkeep.log\n")];
        for path in ["/r/a.log", "/r/src/keep.log", "/r/target", "/r/target/deep/a.rs"] {
            assert!(is_excluded(&files, path), "{path}");
        }
        for path in ["/r/keep.log", "/r/src/a.log", "/r/src/target", "/r", "/a.log"] {
            assert!(!is_excluded(&files, path), "{path}");
        }
    }

    /// gitignore(5): "It is not possible to re-include a file if a parent directory of that file is
    /// excluded."
    #[test]
    fn nothing_below_an_excluded_folder_is_taken_in_again() {
        for (lines, below, path) in [
            ("build/\n!build/keep.py\n", "", "/r/build/keep.py"),
            ("build/\n", "!*\n", "/r/build/keep.py"),
            ("private\n!private/open.py\n", "", "/r/private/open.py"),
            ("*\n!*.py\n", "", "/r/build/a.py"),
            ("/build/**\n!/build/in/a.py\n", "", "/r/build/in/a.py"),
            ("bu**/**/\n", "", "/r/build/a.py"),
        ] {
            assert!(is_excluded(&[("/r", lines), ("/r/build", below)], path), "{lines:?} {path}");
        }
        for (lines, path) in
            [("build/*\n!build/keep.py\n", "/r/build/keep.py"), ("*\n!*/\n!*.py\n", "/r/src/a.py")]
        {
            assert!(!is_excluded(&[("/r", lines)], path), "{lines:?} {path}");
        }
    }
}
