//! The names of the code that a page mentions, such as `` `session: lib.rs:complete` ``.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The keywords that declare a name in Rust.
const KEYWORDS: [&str; 7] = ["fn", "struct", "enum", "trait", "const", "type", "macro_rules!"];

/// A file that a page mentions and, behind a colon, perhaps something that it declares.
#[derive(Debug, PartialEq, Eq)]
struct Mention<'a> {
    line: usize,
    file: &'a str,
    name: Option<&'a str>,
}

/// Returns the files and names that the page mentions and that are not among the repository's.
pub fn missing(root: &Path, files: &[PathBuf], page: &str) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(page)).with_context(|| page.to_owned())?;
    let mut problems = vec![];
    for Mention { line, file, name } in mentions(&text) {
        let ends = |path: &&PathBuf| path.ends_with(file);
        let named: Vec<&PathBuf> = files.iter().filter(ends).collect();
        if named.is_empty() {
            problems.push(format!("{page}:{line}: {file}: no such file"));
            continue;
        }
        let Some(name) = name else { continue };
        let declares = |path: &&PathBuf| {
            fs::read_to_string(root.join(path)).is_ok_and(|code| declares(&code, name))
        };
        if !named.iter().any(declares) {
            problems.push(format!("{page}:{line}: {file} declares no {name}"));
        }
    }
    Ok(problems)
}

/// Returns the texts in backticks that name a Rust file, with or without the crate before it.
fn mentions(text: &str) -> Vec<Mention<'_>> {
    let mut found = vec![];
    let mut line = 1;
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            let last = part.split_whitespace().next_back().unwrap_or_default();
            let (file, name) = match last.split_once(':') {
                Some((file, name)) => (file, Some(name)),
                None => (last, None),
            };
            if file.ends_with(".rs") {
                found.push(Mention { line, file, name });
            }
        }
        line += part.matches('\n').count();
    }
    found
}

fn declares(code: &str, name: &str) -> bool {
    KEYWORDS.iter().any(|keyword| {
        let declaration = format!("{keyword} {name}");
        code.match_indices(&declaration).any(|(at, found)| {
            let next = code[at + found.len()..].chars().next();
            next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_names_are_found_with_their_lines() {
        let page = "`a/b.rs` and\n`engine:\nworker.rs:serve`, `plain`";
        let expected = [
            Mention { line: 1, file: "a/b.rs", name: None },
            Mention { line: 2, file: "worker.rs", name: Some("serve") },
        ];
        assert_eq!(mentions(page), expected);
    }

    #[test]
    fn a_longer_name_is_another_one() {
        let code = "pub fn serve_all() {}\nstruct Offer<'a>;";
        assert!(declares(code, "Offer"));
        assert!(!declares(code, "serve"));
    }
}
