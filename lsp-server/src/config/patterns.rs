//! Settings that name files by patterns of a `.gitignore`.

use crate::addresses::name_of_file;
use crate::paths::{below_root, without_dots};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, Glob};
use std::path::{Component, Path, PathBuf};

/// A line that is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pattern of a .gitignore")]
pub struct NoPattern(pub String);

/// The patterns of one setting, compiled.
#[derive(Debug, Clone)]
pub struct Patterns(Gitignore);

impl Patterns {
    /// Compiles patterns as a `.gitignore` at the root of the file system would have them; `~/` is
    /// the user's home.
    ///
    /// # Errors
    /// Names the line that is not a pattern.
    pub fn compile(lines: &[String]) -> Result<Patterns, NoPattern> {
        let mut builder = GitignoreBuilder::new("/");
        builder.allow_unclosed_class(false);
        for line in lines {
            let at_home = line.strip_prefix("~/").zip(std::env::home_dir());
            let line = match at_home {
                // Patterns have slashes on every system, and no drives.
                Some((rest, home)) => format!("/{}/{rest}", name_of_file(below_root(&home))),
                None => line.clone(),
            };
            builder.add_line(None, &line).map_err(|_| NoPattern(line.clone()))?;
        }
        // Each line compiles by itself, so all of them fail only together, by their number.
        builder.build().map(Patterns).map_err(|_| NoPattern("all of them together".into()))
    }

    pub fn none() -> Patterns {
        Patterns(Gitignore::empty())
    }

    /// The pattern that names a document, as the setting has it. A document that is not a file lies
    /// in no folder, so no pattern names it.
    pub fn pattern_for(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        if !path.is_absolute() {
            return None;
        }
        let path = without_dots(path);
        match self.matched(&path) {
            Match::Ignore(pattern) => Some(pattern.original().to_owned()),
            Match::Whitelist(_) | Match::None => None,
        }
    }

    /// `Some(false)` where a line with `!` takes an absolute path out again, `None` where no line
    /// says anything about it.
    pub fn verdict(&self, path: &Path) -> Option<bool> {
        match self.matched(path) {
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
            Match::None => None,
        }
    }

    /// Returns the pattern that decides about an absolute path. Git does not look into a folder
    /// that is excluded, so nothing below it is taken out again.
    fn matched(&self, path: &Path) -> Match<&Glob> {
        let below_root = below_root(path);
        let (mut above, mut decides) = (PathBuf::new(), Match::None);
        for part in below_root.components().filter(|part| matches!(part, Component::Normal(_))) {
            above.push(part);
            match self.0.matched(&above, above != below_root) {
                excluded @ Match::Ignore(_) => return excluded,
                Match::None => {}
                taken_out => decides = taken_out,
            }
        }
        decides
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_setting_names_files_wherever_they_lie() {
        let names = |path: &str, lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
            Patterns::compile(&lines).unwrap().pattern_for(path).is_some()
        };
        assert!(names("/home/me/notes/todo.md", &["notes/"]));
        assert!(names("/a/./b/../jquery.min.js", &["*.min.js"]));
        assert!(!names("/a/jquery.js", &["*.min.js"]) && !names("/a/jquery.min.js", &[]));
        assert!(!names("/vendor/ours/a.rs", &["/vendor/*", "!/vendor/ours/"]));
        assert!(!names("untitled:Untitled-1", &["*"]), "no file");
    }

    /// gitignore(5): "It is not possible to re-include a file if a parent directory of that file is
    /// excluded."
    #[test]
    fn nothing_below_an_excluded_folder_is_taken_out_again() {
        for (lines, path, expected) in [
            ("clients/ !*.md", "/home/u/clients/a.md", Some(true)),
            ("build/ !build/keep.py", "/r/build/keep.py", Some(true)),
            ("/r/build/ !/r/build/keep.py", "/r/build/keep.py", Some(true)),
            ("private !private/open.py", "/private/open.py", Some(true)),
            ("* !*.py", "/build/a.py", Some(true)),
            ("/build/** !/build/in/a.py", "/build/in/a.py", Some(true)),
            ("/build/* !/build/keep.py", "/build/keep.py", Some(false)),
            ("* !*/ !*.py", "/src/a.py", Some(false)),
            ("* !*/ !*.py", "/src/a.rs", Some(true)),
            ("*.md !notes/", "/notes/a.md", Some(true)),
            ("!generated/", "/r/generated/deep/a.py", Some(false)),
            ("clients/ !clients/", "/clients/a.md", Some(false)),
            ("clients/", "/r/clients", None),
        ] {
            let lines: Vec<String> = lines.split(' ').map(str::to_owned).collect();
            let verdict = Patterns::compile(&lines).unwrap().verdict(Path::new(path));
            assert_eq!(verdict, expected, "{lines:?} {path}");
        }
    }

    #[test]
    fn a_line_that_is_no_pattern_is_named() {
        let error = Patterns::compile(&["a[".into()]).unwrap_err();
        assert_eq!(error, NoPattern("a[".into()));
    }
}
