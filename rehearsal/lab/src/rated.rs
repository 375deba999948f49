//! `hone-lab next-edits`: what the server offers first where people made edits and rated what
//! should come next.
//!
//! A recording is replayed through the editor's protocol, edit by edit, into a daemon of its own.
//! Then the next edit is asked for, and the text that it leads to is looked up among the texts that
//! the rated candidates lead to.

mod recording;

use crate::bench;
use anyhow::{Context, Result, ensure};
use clap::Args;
use recording::{Rated, Recording, Score};
use rehearsal::client::OwnHome;
use rehearsal::document::{Document, Encoding, Position};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Arguments {
    /// Folders of cases lie in it, each with a recording.json and a scoredEdits.json
    #[arg(long, value_name = "DIR")]
    rated: PathBuf,
    /// The model that completes, from `hone model list`
    #[arg(long, default_value = bench::MODEL, value_name = "NAME")]
    model: String,
    /// A setting that differs from the installed ones
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let cases = cases(&arguments.rated)?;
    let models = bench::models(&arguments.model)?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rows = vec![];
    for folder in &cases {
        let case = Recording::read(folder)?;
        let rated = Rated::read(folder)?;
        let (offered, reason) = offered(arguments, &models, &case)?;
        let found = match &offered {
            None => "silent",
            Some((path, text)) => rated.score_of(&case, path, text).map_or("unrated", Score::name),
        };
        *counts.entry(found).or_default() += 1;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        rows.push(json!({"case": name, "first": found, "reason": reason}));
    }
    let measured = json!({"places": cases.len(), "first": counts, "cases": rows});
    bench::print(&measured, arguments.json, table)
}

/// The folders with a recording, by their names.
fn cases(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut cases: Vec<PathBuf> =
        paths.into_iter().filter(|path| path.join("recording.json").is_file()).collect();
    cases.sort();
    ensure!(!cases.is_empty(), "{}: no folder in it has a recording.json", folder.display());
    Ok(cases)
}

/// The file that the first offer changes and its text with it, and the reason that the server
/// gives.
type Offered = (Option<(String, String)>, Option<String>);

fn offered(arguments: &Arguments, models: &Path, case: &Recording) -> Result<Offered> {
    let mut settings = format!(
        "model.name = {}\nlearning.enabled = false\ncompletion.next_edit = \"on\"\n",
        Value::from(arguments.model.as_str())
    );
    for set in &arguments.set {
        let (key, value) = set.split_once('=').with_context(|| format!("{set}: no KEY=VALUE"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        settings.push_str(&format!("{key} = {value}\n"));
    }
    let home = OwnHome::new(&bench::hone()?, models, &settings)?;
    let editor = home.editor()?;
    let uri = |path: &str| format!("file:///recorded/{path}");
    let mut documents: BTreeMap<&str, Document> = BTreeMap::new();
    let mut cursor = None;
    for step in &case.steps {
        let path = step.path.as_str();
        let uri = uri(path);
        match documents.get_mut(path) {
            None => {
                editor.open(&uri, &case.language(path), &step.before)?;
                documents.insert(path, Document::new(step.before.clone(), Encoding::Utf16));
            }
            Some(document) if document.text() != step.before => {
                editor.change(&uri, None, &step.before)?;
                *document = Document::new(step.before.clone(), Encoding::Utf16);
            }
            Some(_) => {}
        }
        let Some(document) = documents.get_mut(path) else { continue };
        let mut changes = vec![];
        // The offsets of one step count in the text before it, so the last change comes first.
        for change in step.edit.iter().rev() {
            let range = document.replace(change.range.start, change.range.end, &change.text);
            changes.push((range, change.text.clone()));
        }
        if !changes.is_empty() {
            editor.change_all(&uri, &changes)?;
        }
        cursor = step.cursor().map(|at| (path, document.position(at))).or(cursor);
    }
    let (path, position) =
        cursor.unwrap_or((case.last.as_str(), Position { line: 0, character: 0 }));
    let (edit, reason) = editor.next_edit(&uri(path), position)?;
    let Some(edit) = edit else { return Ok((None, reason)) };
    let changed = documents.iter_mut().find(|(path, _)| uri(path) == edit.uri);
    let (path, document) = changed.context("an offer for a document that is not open")?;
    let (start, end) = (document.offset(edit.range.start), document.offset(edit.range.end));
    document.replace(start, end, &edit.text);
    Ok((Some(((*path).to_owned(), document.text().to_owned())), reason))
}

/// What people said of the first offer.
const CLASSES: [&str; 5] = ["wanted", "acceptable", "bad", "unrated", "silent"];

fn table(measured: &Value) -> String {
    let cases = measured["cases"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = cases
        .iter()
        .map(|case| {
            let (first, name) = (text(&case["first"]), text(&case["case"]));
            format!("{first:<12}{:<18}{name}", text(&case["reason"]))
        })
        .collect();
    let counts =
        CLASSES.map(|class| format!("{class} {}", measured["first"][class].as_u64().unwrap_or(0)));
    lines.push(format!("{} places: {}", measured["places"], counts.join(", ")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::table;
    use serde_json::json;

    #[test]
    fn each_place_has_a_row_and_every_class_a_count() {
        let case = json!({"case": "one", "first": "wanted", "reason": "shown"});
        let measured = json!({"places": 1, "first": {"wanted": 1}, "cases": [case]});
        let expected = "wanted      shown             one\n\
            1 places: wanted 1, acceptable 0, bad 0, unrated 0, silent 0";
        assert_eq!(table(&measured), expected);
    }
}
