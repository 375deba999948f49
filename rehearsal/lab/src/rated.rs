//! `hone-lab next-edits`: what the server offers first where people made edits and rated what
//! should come next.
//!
//! A recording is replayed through the editor's protocol, edit by edit, into a daemon of its own.
//! Then the next edit is asked for, and the text that it leads to is looked up among the texts that
//! the rated candidates lead to.

mod candidates;

use crate::bench;
use anyhow::{Context, Result, bail, ensure};
use candidates::{Offered, Rated, Score};
use clap::Args;
use rehearsal::client::OwnHome;
use rehearsal::document::{Document, Encoding};
use rehearsal::recording::{Recording, Replacement, What, reader};
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
        let case = reader::file(&folder.join("recording.json"))?;
        if let Some(fault) = &case.fault {
            bail!("{fault}");
        }
        let rated = Rated::read(folder)?;
        let (offered, reason) = offered(arguments, &models, &case)?;
        let found = match &offered {
            None => "silent",
            Some(offered) => rated.score_of(offered).map_or("unrated", Score::name),
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

/// Returns the first offer, and the reason that the server gives.
fn offered(
    arguments: &Arguments,
    models: &Path,
    case: &Recording,
) -> Result<(Option<Offered>, Option<String>)> {
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
    let uri = |document: usize| format!("file:///recorded/{}", case.documents[document].path);
    let mut texts: BTreeMap<usize, Document> = BTreeMap::new();
    let mut place = None;
    for event in &case.events {
        match &event.what {
            What::Text { document, text } => {
                match texts.get(document) {
                    None => {
                        let language = language(&case.documents[*document].path, text);
                        editor.open(&uri(*document), &language, text)?;
                    }
                    Some(known) if known.text() != text => {
                        editor.change(&uri(*document), None, text)?;
                    }
                    Some(_) => {}
                }
                texts.insert(*document, Document::new(text.clone(), Encoding::Utf16));
            }
            What::Changed { document, replacements, .. } => {
                let Some(text) = texts.get_mut(document) else { continue };
                let changes =
                    replacements.iter().map(|Replacement { range, text: new, .. }| {
                        (text.replace(range.start, range.end, new), new.clone())
                    });
                let changes: Vec<_> = changes.collect();
                if let Some(at) = cursor(replacements) {
                    editor.change_all(&uri(*document), &changes)?;
                    place = Some((*document, text.position(at)));
                }
            }
            _ => {}
        }
    }
    let (document, position) = place.context("nothing was changed")?;
    let (edit, reason) = editor.next_edit(&uri(document), position)?;
    let Some(edit) = edit else { return Ok((None, reason)) };
    let changed = texts.iter().find(|(document, _)| uri(**document) == edit.uri);
    let (document, text) = changed.context("an offer for a document that is not open")?;
    let (start, end) = (text.offset(edit.range.start), text.offset(edit.range.end));
    let before = text.text().to_owned();
    let after = format!("{}{}{}", &before[..start], edit.text, &before[end..]);
    let path = case.documents[*document].path.clone();
    Ok((Some(Offered { path, before, after }), reason))
}

/// The byte behind the last of some changes, in the text after them.
fn cursor(replacements: &[Replacement]) -> Option<usize> {
    let (last, earlier) = replacements.split_first()?;
    let added: usize = earlier.iter().map(|one| one.text.len()).sum();
    let removed: usize = earlier.iter().map(|one| one.range.len()).sum();
    Some(last.range.start + added - removed + last.text.len())
}

/// The language as an editor names it. A notebook is recorded as one text, whose cells say in what
/// language they are.
fn language(path: &str, text: &str) -> String {
    let ending = path.rsplit('.').next().unwrap_or_default();
    let named = text.lines().next().and_then(|line| line.split("[language=").nth(1));
    match (named, ending) {
        (Some(named), _) => named.trim_end_matches(']').to_owned(),
        (None, "ts") => "typescript".into(),
        (None, "tsx") => "typescriptreact".into(),
        (None, "js") => "javascript".into(),
        (None, "py") => "python".into(),
        (None, "rs") => "rust".into(),
        (None, "h") => "cpp".into(),
        (None, ending) => ending.to_owned(),
    }
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
    use super::{cursor, language, table};
    use rehearsal::recording::replacements;
    use serde_json::json;

    #[test]
    fn the_cursor_is_behind_the_last_change() {
        let text = "let cart = 1;\nuse(cart);\n";
        let edit = json!([[4, 8, "basket"], [18, 22, "bag"]]);
        let changes = replacements(text, &edit).unwrap();
        let mut after = text.to_owned();
        changes.iter().for_each(|one| after.replace_range(one.range.clone(), &one.text));
        assert_eq!(&after[cursor(&changes).unwrap()..], ");\n");
        assert_eq!(cursor(&[]), None);
    }

    #[test]
    fn a_notebook_says_its_language() {
        assert_eq!(language("src/shop.ts", "let cart = 1;\n"), "typescript");
        assert_eq!(language("a.ipynb", "#%% vscode.cell [id=1] [language=python]\n"), "python");
    }

    #[test]
    fn each_place_has_a_row_and_every_class_a_count() {
        let case = json!({"case": "one", "first": "wanted", "reason": "shown"});
        let measured = json!({"places": 1, "first": {"wanted": 1}, "cases": [case]});
        let expected = "wanted      shown             one\n\
            1 places: wanted 1, acceptable 0, bad 0, unrated 0, silent 0";
        assert_eq!(table(&measured), expected);
    }
}
