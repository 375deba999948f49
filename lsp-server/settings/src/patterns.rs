//! Settings that name files by patterns of a `.gitignore`.

use host::addresses::name_of_file;
use host::paths::{below_root, without_dots, without_links};
use host::platform::files::IGNORES_CASE;
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
    /// the user's home. A pattern that names a link also names what the link leads to. This reads
    /// the disk.
    ///
    /// # Errors
    /// Names the line that is not a pattern.
    pub fn compile(lines: &[String]) -> Result<Patterns, NoPattern> {
        Patterns::compile_at(lines, std::env::home_dir().as_deref())
    }

    fn compile_at(lines: &[String], home: Option<&Path>) -> Result<Patterns, NoPattern> {
        let together = |_| NoPattern("all of them together".into());
        let mut builder = GitignoreBuilder::new("/");
        builder.allow_unclosed_class(false);
        builder.case_insensitive(IGNORES_CASE).map_err(together)?;
        for line in lines {
            let pattern = Pattern::of(line, home);
            let mut add = |pattern: &Pattern| builder.add_line(None, &pattern.line()).map(drop);
            let real = pattern.real();
            add(&pattern)
                .and_then(|()| real.iter().try_for_each(add))
                .map_err(|_| NoPattern(line.clone()))?;
        }
        // Each line compiles by itself, so all of them fail only together, by their number.
        builder.build().map(Patterns).map_err(together)
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

/// One line of a setting.
struct Pattern<'a> {
    /// `!`, if it takes out.
    mark: &'a str,
    text: String,
}

impl<'a> Pattern<'a> {
    fn of(line: &'a str, home: Option<&Path>) -> Pattern<'a> {
        let (mark, text) = line.split_at(usize::from(line.starts_with('!')));
        let at_home = text.strip_prefix("~/").zip(home);
        let text = at_home.map(|(below, home)| format!("{}/{below}", literal(home)));
        Pattern { mark, text: text.unwrap_or_else(|| line[mark.len()..].to_owned()) }
    }

    fn line(&self) -> String {
        format!("{}{}", self.mark, self.text)
    }

    /// Returns the pattern for the same files behind links, if a link is among the folders that it
    /// names.
    fn real(&self) -> Option<Pattern<'a>> {
        // Without a slash before its end it names files in every folder.
        self.text.trim_end_matches('/').contains('/').then_some(())?;
        let mut named = PathBuf::from("/");
        let mut rest = self.text.trim_start_matches('/');
        while let Some(name) = named_by(rest.split('/').next().unwrap_or_default()) {
            named.push(name);
            rest = rest.split_once('/').map_or("", |(_, rest)| rest);
        }
        let real = without_links(&named).filter(|real| *real != named)?;
        let is_folder = self.text.ends_with('/') || !rest.is_empty();
        let slash = if is_folder { "/" } else { "" };
        Some(Pattern { mark: self.mark, text: format!("{}{slash}{rest}", literal(&real)) })
    }
}

/// Returns the pattern of a path alone. Patterns have slashes on every system, and no drives.
fn literal(path: &Path) -> String {
    let mut pattern = String::from("/");
    for character in name_of_file(below_root(path)).chars() {
        if r"\*?[]{}".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// Returns the one name that a part of a pattern stands for.
fn named_by(part: &str) -> Option<String> {
    let mut name = String::new();
    let mut characters = part.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?),
            '*' | '?' | '[' | '{' => return None,
            character => name.push(character),
        }
    }
    (!name.is_empty()).then_some(name)
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

    /// A link of one name leads to a folder of another. Both name the same files.
    #[cfg(unix)]
    #[test]
    fn a_pattern_that_names_a_link_names_what_it_leads_to() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("re[al] {h}*me/x")).unwrap();
        std::os::unix::fs::symlink("re[al] {h}*me", root.join("link")).unwrap();
        let real = root.join("re[al] {h}*me");
        let (link, place) = (root.join("link"), root.display());
        for (line, home, document, expected) in [
            (format!("{place}/link/"), None, "a.py", Some(true)),
            (format!("{place}/link"), None, "a.py", Some(true)),
            (format!("{place}/link/x/*.py"), None, "x/a.py", Some(true)),
            (format!("{place}/link/x/*.py"), None, "a.py", None),
            (format!("{place}/link/x/a.py"), None, "x/a.py", Some(true)),
            (format!("{place}/lin\\k/**/a.py"), None, "x/a.py", Some(true)),
            (format!("{}/link/", &place.to_string()[1..]), None, "a.py", Some(true)),
            (format!("!{place}/link/"), None, "a.py", Some(false)),
            ("~/x/".into(), Some(&link), "x/a.py", Some(true)),
            ("~/x/".into(), Some(&real), "x/a.py", Some(true)),
            ("~/x/".into(), Some(&link), "y/a.py", None),
            ("!~/x/".into(), Some(&link), "x/a.py", Some(false)),
            ("!~/x/".into(), Some(&real), "x/a.py", Some(false)),
            ("link/".into(), None, "a.py", None),
        ] {
            let patterns =
                Patterns::compile_at(std::slice::from_ref(&line), home.map(PathBuf::as_path));
            let verdict = patterns.unwrap().verdict(&real.join(document));
            assert_eq!(verdict, expected, "{line} {home:?} {document}");
        }
        let line = format!("{place}/link/");
        let by_link = Patterns::compile(&[line]).unwrap().verdict(&link.join("a.py"));
        assert_eq!(by_link, Some(true));
    }

    #[test]
    fn a_line_that_is_no_pattern_is_named() {
        let error = Patterns::compile(&["a[".into()]).unwrap_err();
        assert_eq!(error, NoPattern("a[".into()));
    }
}
