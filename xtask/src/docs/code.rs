//! Lines of code fit an editor that stands beside another. rustfmt and Prettier break what they can
//! break, and this check finds what they leave: texts, comments, and languages without a formatter.

use super::{LINE_CHARS_MAX, told};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The endings of files with code that people write. Generated files have others, such as `json`.
const CODE: [&str; 6] = ["rs", "ts", "mjs", "js", "lua", "sh"];

/// The lines of code that are longer than [`LINE_CHARS_MAX`], as problems to print.
pub fn long_lines(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let is_code = |file: &&PathBuf| {
        file.extension().is_some_and(|extension| CODE.iter().any(|code| extension == *code))
    };
    let mut problems = vec![];
    for file in files.iter().filter(is_code) {
        let text =
            fs::read_to_string(root.join(file)).with_context(|| file.display().to_string())?;
        let lines = text.lines().zip(1..);
        let long = lines.filter(|(line, _)| line.chars().count() > LINE_CHARS_MAX);
        problems.extend(long.map(|(_, number)| told(file, number)));
    }
    Ok(problems)
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
        let fits = "\u{e9}".repeat(LINE_CHARS_MAX);
        let long = format!("// fits\n// {fits}\n");
        for (file, text) in [
            ("a.rs", &long),
            ("b.mjs", &long),
            ("gone.rs", &long),
            ("short.ts", &fits),
            ("data.json", &long),
            ("out/made.js", &long),
            (".gitignore", &"out/\n".to_owned()),
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
            long_lines(folder.path(), &files).unwrap(),
            ["a.rs:2: longer than 100 characters", "b.mjs:2: longer than 100 characters"]
        );
    }
}
