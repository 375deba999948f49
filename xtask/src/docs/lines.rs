//! Lines of code, and of what a visitor reads first, fit an editor that stands next to another.
//! rustfmt and Prettier break what they can break. This check finds what they leave: texts,
//! comments, and languages without a formatter.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The endings of files with code that people write. Generated files have others, such as `json`.
const CODE: [&str; 6] = ["rs", "ts", "mjs", "js", "lua", "sh"];
const CHARS_MAX: usize = 100;

const README: &str = "README.md";
const README_LINES_MAX: usize = 100;
const PAGES: [&str; 2] = [README, "ARCHITECTURE.md"];

/// Returns the lines that are too long, and says so if the README is.
pub fn problems(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut problems = vec![];
    for file in files {
        let is_page = PAGES.iter().any(|page| file == Path::new(page));
        let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !is_page && !CODE.contains(&ending) {
            continue;
        }
        let text = fs::read_to_string(root.join(file)).with_context(|| file.display().to_string());
        let text = text?;
        let text = if is_page { breakable(&text) } else { text };
        for (line, number) in text.lines().zip(1..) {
            if line.chars().count() > CHARS_MAX {
                let place = format!("{}:{number}", file.display());
                problems.push(format!("{place}: longer than {CHARS_MAX} characters"));
            }
        }
        let count = text.lines().count();
        if file == Path::new(README) && count > README_LINES_MAX {
            problems.push(format!("{README}: {count} lines; at most {README_LINES_MAX} are read"));
        }
    }
    Ok(problems)
}

/// Empties the lines of a page that cannot be broken, which are those of tables, code and HTML, and
/// removes what links lead to.
fn breakable(page: &str) -> String {
    let mut kept = String::new();
    let mut is_code = false;
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        let is_definition = line.starts_with('[') && line.contains("]: ");
        if !is_code && !is_definition && !line.starts_with(['|', '<']) {
            let mut parts = line.split("](");
            kept += parts.next().unwrap_or_default();
            kept.extend(parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest)));
        }
        kept.push('\n');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::repository_files;
    use std::process::Command;
    use tempfile::TempDir;

    #[test]
    fn long_lines_of_code_are_found_where_git_ignores_nothing() {
        let folder = TempDir::new().unwrap();
        let git = |arguments: &[&str]| {
            let done = Command::new("git").args(arguments).current_dir(folder.path()).output();
            assert!(done.unwrap().status.success(), "{arguments:?}");
        };
        git(&["init", "--quiet"]);
        // Characters count, and not bytes.
        let fits = "\u{e9}".repeat(CHARS_MAX);
        let long = format!("// fits\n// {fits}\n");
        for (file, text) in [
            ("a.rs", &long),
            ("b.mjs", &long),
            ("gone.rs", &long),
            ("short.ts", &fits),
            ("data.json", &long),
            ("out/made.js", &long),
            (".gitignore", &"out/\n".to_owned()),
            ("README.md", &"line\n".repeat(README_LINES_MAX + 1)),
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        git(&["add", "a.rs", "gone.rs"]);
        fs::remove_file(folder.path().join("gone.rs")).unwrap();
        let mut files = repository_files(folder.path()).unwrap();
        files.sort();
        assert_eq!(
            problems(folder.path(), &files).unwrap(),
            [
                "README.md: 101 lines; at most 100 are read",
                "a.rs:2: longer than 100 characters",
                "b.mjs:2: longer than 100 characters",
            ]
        );
    }

    #[test]
    fn only_lines_of_a_page_that_could_be_broken_are_long() {
        let page = "words [b](a/long/link) cd\n| a cell |\n```\ncode\n```\n[name]: a/link\n<p>";
        assert_eq!(breakable(page), "words [b cd\n\n\n\n```\n\n\n");
    }
}
