//! Tells how often a rehearsal completed exactly what was written, apart by where the names in it
//! are defined.
//!
//!   by_definition --work DIR --repo REPO --author NAME --since 2025-03-01 --seed 33 \
//!     --limit 100 --per-commit 10
//!
//! The options are those of a rehearsal that was saved with `--work`, and the stream is drawn
//! again from them. A place counts as *elsewhere* if the rest of its line has a name that another
//! file of the tree defines and the file itself does not.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use git2::{ObjectType, Oid, Repository, TreeWalkMode, TreeWalkResult};
use jiff::civil::Date;
use rehearsal::developer::history::{self, FileChange, Filter, History};
use rehearsal::developer::{Editor, OfferOutcome, language, plan};
use rehearsal::run::record::ArmRecord;
use rehearsal::run::resume::SavedRun;
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

/// Words behind which the languages of the rehearsals define a name.
const KEYWORDS: &[&str] = &[
    "class",
    "const",
    "def",
    "enum",
    "fn",
    "func",
    "function",
    "interface",
    "let",
    "macro_rules",
    "mod",
    "static",
    "struct",
    "trait",
    "type",
    "var",
];
/// A shorter name says nothing about where it is from.
const NAME_CHARS_MIN: usize = 4;
/// Larger files are data.
const FILE_BYTES_MAX: usize = 1 << 20;

#[derive(Parser)]
struct Arguments {
    /// The folder of one saved run below that of `--work`
    #[arg(long)]
    work: PathBuf,
    #[arg(long)]
    repo: PathBuf,
    #[arg(long)]
    author: Option<String>,
    #[arg(long, value_parser = history::parse_day)]
    since: Option<Date>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long)]
    limit: usize,
    #[arg(long)]
    per_commit: Option<usize>,
}

/// A place of the stream, and what is written there.
struct Place {
    elsewhere: bool,
    rest: usize,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let state = arguments.work.join("state.json");
    let state = std::fs::read(&state).with_context(|| state.display().to_string())?;
    let saved: SavedRun = serde_json::from_slice(&state)?;
    let (_, results) = saved.done.context("the run is not done")?;
    let places = places(&arguments)?;
    let mut of_first: Option<Vec<bool>> = None;
    for result in results {
        let exact = exact(&result.record, &places)?;
        let first = of_first.get_or_insert_with(|| exact.clone());
        println!("{}", json!({ "arm": result.name, "places": count(&places, &exact, first) }));
    }
    Ok(())
}

/// At which places all of the rest was offered and accepted.
fn exact(record: &ArmRecord, places: &[Place]) -> Result<Vec<bool>> {
    let mut exact = vec![false; places.len()];
    for request in record.lines.iter().flat_map(|line| &line.requests) {
        let place = places.get(request.place).context("the options draw another stream")?;
        if let Some(OfferOutcome::Accepted { chars }) = request.outcome {
            ensure!(chars <= place.rest, "the options draw another stream");
            exact[request.place] = chars == place.rest;
        }
    }
    Ok(exact)
}

/// The places of each kind that an arm completed exactly, beside those of the first arm.
#[derive(Default, Serialize)]
struct Count {
    places: usize,
    exact: usize,
    gained: usize,
    lost: usize,
}

fn count(places: &[Place], exact: &[bool], first: &[bool]) -> BTreeMap<&'static str, Count> {
    let mut counts: BTreeMap<_, Count> = BTreeMap::new();
    for ((place, &exact), &before) in places.iter().zip(exact).zip(first) {
        let kind = if place.elsewhere { "elsewhere" } else { "others" };
        let count = counts.entry(kind).or_default();
        count.places += 1;
        count.exact += usize::from(exact);
        count.gained += usize::from(exact && !before);
        count.lost += usize::from(before && !exact);
    }
    counts
}

/// Draws the stream as the rehearsal did.
fn places(arguments: &Arguments) -> Result<Vec<Place>> {
    let since = arguments.since.map(Filter::first_second).transpose()?;
    let history = History::open(
        &arguments.repo,
        &Filter { author: arguments.author.clone(), since, head: None },
    )?;
    let mut definitions = Definitions::default();
    let mut places: Vec<Place> = vec![];
    let (mut lines, mut commit) = (0, (String::new(), 0));
    let mut tree: HashMap<String, HashSet<Rc<str>>> = HashMap::new();
    for change in history.changes() {
        let change = change?;
        if commit.0 != change.commit {
            commit = (change.commit.clone(), 0);
            tree = definitions.of_tree(&history, &change.commit)?;
        }
        let is_full = |done: usize| arguments.per_commit.is_some_and(|most| done >= most);
        if is_full(commit.1) {
            continue;
        }
        let after = history::lines(&change.after);
        let written = change.hunks.iter().flat_map(|hunk| hunk.added.clone());
        for line in written {
            let text = after[line].trim_end_matches(['\r', '\n']);
            let plan = plan::of_line(text, Editor::Vscode, &mut plan::draws(arguments.seed, lines));
            lines += 1;
            for (at, _) in plan.places {
                if places.len() >= arguments.limit {
                    return Ok(places);
                }
                if is_full(commit.1) {
                    break;
                }
                let rest = &text[at..];
                places.push(Place {
                    elsewhere: is_elsewhere(rest, &change, &tree),
                    rest: rest.chars().count(),
                });
                commit.1 += 1;
            }
            if is_full(commit.1) {
                break;
            }
        }
    }
    Ok(places)
}

/// Whether the text has a name that another file defines and this one does not.
fn is_elsewhere(rest: &str, change: &FileChange, tree: &HashMap<String, HashSet<Rc<str>>>) -> bool {
    let own: HashSet<&str> = defined(&change.before).chain(defined(&change.after)).collect();
    names(rest).any(|name| {
        name.len() >= NAME_CHARS_MIN
            && !own.contains(name)
            && tree.get(name).is_some_and(|files| files.iter().any(|file| **file != *change.path))
    })
}

/// The names that the files of trees define. Files that did not change are read once.
#[derive(Default)]
struct Definitions {
    of_file: HashMap<Oid, Rc<[String]>>,
}

impl Definitions {
    /// The files of the tree before a commit that define each name.
    fn of_tree(
        &mut self,
        history: &History,
        commit: &str,
    ) -> Result<HashMap<String, HashSet<Rc<str>>>> {
        let repository = history.repository();
        let mut found: HashMap<String, HashSet<Rc<str>>> = HashMap::new();
        let Some(tree) = history.tree_before(commit)? else { return Ok(found) };
        repository.find_tree(tree)?.walk(TreeWalkMode::PreOrder, |folder, entry| {
            let path: Rc<str> = format!("{folder}{}", entry.name().unwrap_or_default()).into();
            let is_code = entry.kind() == Some(ObjectType::Blob);
            if is_code && language::of_path(&path).is_some() {
                for name in self.of_blob(repository, entry.id()).iter() {
                    found.entry(name.clone()).or_default().insert(path.clone());
                }
            }
            TreeWalkResult::Ok
        })?;
        Ok(found)
    }

    fn of_blob(&mut self, repository: &Repository, id: Oid) -> Rc<[String]> {
        let read = || -> Option<Rc<[String]>> {
            let blob = repository.find_blob(id).ok()?;
            let text = std::str::from_utf8(blob.content()).ok()?;
            (text.len() <= FILE_BYTES_MAX).then(|| defined(text).map(str::to_owned).collect())
        };
        self.of_file.entry(id).or_insert_with(|| read().unwrap_or_default()).clone()
    }
}

/// The names that a text defines: those behind a keyword, and those of Go's methods.
fn defined(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let mut words = names(line).peekable();
        while let Some(word) = words.next() {
            if word == "func" && line.trim_start().starts_with("func (") {
                let name = line.split_once(')')?.1.trim_start();
                return names(name).next();
            }
            if KEYWORDS.contains(&word)
                && let Some(name) = words.next_if(|name| !KEYWORDS.contains(name))
            {
                return (name != "mut").then_some(name).or_else(|| words.next());
            }
        }
        None
    })
}

/// The identifiers of a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}
