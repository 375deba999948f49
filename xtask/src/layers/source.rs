//! The modules of a library or a program as text, without comments and without code for tests, and
//! the paths that they name.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// One file.
pub struct Module {
    /// `["session", "documents"]`; empty for the root.
    pub path: Vec<String>,
    /// Relative to the workspace.
    pub file: PathBuf,
    /// The code that is compiled for users, on the lines of the file.
    pub text: String,
}

/// Reads the modules of a library or a program, which begins with the file `root`.
pub fn read(workspace: &Path, root: &Path) -> Result<Vec<Module>> {
    let mut modules = vec![];
    let mut waiting = vec![(vec![], root.to_owned())];
    while let Some((path, file)) = waiting.pop() {
        let text = fs::read_to_string(workspace.join(&file));
        let text = for_users(&text.with_context(|| file.display().to_string())?);
        let has_folder = path.is_empty() || file.ends_with("mod.rs");
        let folder = if has_folder { file.with_file_name("") } else { file.with_extension("") };
        for name in text.lines().filter_map(declared) {
            let (flat, deep) = (format!("{name}.rs"), format!("{name}/mod.rs"));
            let is_flat = workspace.join(&folder).join(&flat).is_file();
            let child = [path.as_slice(), &[name.to_owned()]].concat();
            waiting.push((child, folder.join(if is_flat { flat } else { deep })));
        }
        modules.push(Module { path, file, text });
    }
    Ok(modules)
}

/// Returns the module of another file that a line declares.
fn declared(line: &str) -> Option<&str> {
    let (before, name) = line.trim().strip_suffix(';')?.split_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then_some(name)
}

/// Empties the lines of comments and of code for tests. The code is formatted by rustfmt, so an
/// item ends on the first line with its indentation that ends like an item. Clippy lets nothing
/// stand behind a module of tests.
fn for_users(text: &str) -> String {
    let mut kept = String::new();
    let mut tests_at: Option<usize> = None;
    for line in text.lines() {
        let code = line.trim_start();
        let indentation = line.len() - code.len();
        match tests_at {
            Some(0) if code.starts_with("mod ") && code.ends_with('{') => break,
            Some(at) => {
                let is_last = code.ends_with(['}', ';', ',']);
                tests_at = Some(at).filter(|at| indentation != *at || !is_last);
            }
            None if is_for_tests(code) => tests_at = Some(indentation),
            None if code.starts_with("//") => {}
            None => kept += line,
        }
        kept.push('\n');
    }
    kept
}

/// Returns true for `#[cfg(test)]`, and for the feature `testing`.
fn is_for_tests(code: &str) -> bool {
    code.starts_with("#[cfg(") && code.contains("test") && !code.contains("not(test")
}

/// Returns the paths that a text names, each with its line. `a::{b, c::d}` is `a::b` and `a::c::d`.
pub fn paths(text: &str) -> Vec<(Vec<&str>, usize)> {
    let mut found = vec![];
    for (at, _) in text.match_indices("::") {
        let begin = text[..at].trim_end_matches(is_of_name).len();
        // What continues another path or a value is no path of its own.
        if begin < at && !text[..begin].ends_with([':', '.']) {
            let mut paths = vec![];
            add(&text[begin..], &[], &mut paths);
            let line = text[..at].matches('\n').count() + 1;
            found.extend(paths.into_iter().map(|path| (path, line)));
        }
    }
    found
}

/// Adds the paths that a text begins with, behind the names `before`. Returns the text behind them.
fn add<'a>(text: &'a str, before: &[&'a str], paths: &mut Vec<Vec<&'a str>>) -> &'a str {
    let (name, rest) = text.split_at(text.find(|c| !is_of_name(c)).unwrap_or(text.len()));
    let path = [before, &[name]].concat();
    let Some(below) = rest.strip_prefix("::") else {
        // Nothing is named behind the last comma of a group, nor at the end of a text in quotes.
        if !name.is_empty() || rest.starts_with(['*', '<']) {
            paths.push(path);
        }
        return rest;
    };
    let Some(mut group) = below.strip_prefix('{') else { return add(below, &path, paths) };
    loop {
        group = add(group.trim_start(), &path, paths);
        let Some(end) = group.find([',', '}']) else { return group };
        let is_last = group[end..].starts_with('}');
        group = &group[end + 1..];
        if is_last {
            return group;
        }
    }
}

pub fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
