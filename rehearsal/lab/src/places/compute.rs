//! Computes the candidates at the places of commits with the served model, as a server would for a
//! request by hand.
//!
//! Only the cursor's line is asked for, as where a line is on screen already. All candidates of a
//! place come from one prompt.

use super::desk::Desk;
use super::names::{is_builtin, names, words};
use super::record::{Candidate, Places, Record, SeenName};
use super::typing::{Place, type_commit};
use crate::lines::first_line;
use anyhow::{Context, Result};
use completion::postprocess::NearbyText;
use completion::shown::{AnswerText, Shown, shown};
use completion::stop_rule::StopRule;
use engine::llama::{LlamaConfig, LlamaEngine, LoadedModel};
use engine::speed::PromptSpeed;
use engine::{Answer, Engine, Request};
use feedback::event::Sampling;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rehearsal::developer::history::{FileChange, Filter, History};
use rehearsal::developer::language;
use rehearsal::run::tree::WorkingTree;
use ropey::Rope;
use settings::Config;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Characters of other code in a prompt, as much as is ever installed.
const CONTEXT_CHARS: usize = 3_000;

/// What is kept of the text around a place, in characters.
const BEFORE_CHARS: usize = 4_000;
const AFTER_CHARS: usize = 1_000;
const TYPED_CHARS: usize = 2_000;

/// A prompt takes as long as it takes.
const BUDGET: Duration = Duration::from_secs(600);

/// The largest file whose names are known, in bytes.
const FILE_BYTES_MAX: u64 = 200_000;

/// Which places are computed.
pub struct Wanted<'a> {
    pub model: &'a Path,
    /// The repositories, each with its author.
    pub repositories: Vec<(PathBuf, String)>,
    pub since: Option<i64>,
    /// Of each repository, at most.
    pub places: usize,
    /// Of each commit, at most.
    pub per_commit: usize,
    pub alternatives: usize,
    pub seed: u64,
}

/// Computes the places that the file lacks. The repositories take turns, commit by commit.
pub fn compute(wanted: &Wanted, places: &mut Places) -> Result<()> {
    let mut sources = vec![];
    for (path, author) in &wanted.repositories {
        sources.push(Source::open(path, author, wanted)?);
    }
    let mut engine = load(wanted.model)?;
    let mut left = true;
    while std::mem::take(&mut left) {
        for source in &mut sources {
            if places.of_repository(&source.name) < wanted.places
                && let Some(changes) = source.next_commit()?
            {
                left = true;
                source.ask(&changes, &mut engine, wanted, places)?;
            }
        }
    }
    Ok(())
}

fn load(model: &Path) -> Result<LlamaEngine> {
    let found = models::inspect::inspect(model, None)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(LlamaEngine::load(&LlamaConfig {
        path: model.to_owned(),
        template: found.template,
        threads,
        // Other programs may need the cores.
        adapts_threads: true,
        scores_in_background: false,
        gpu_layers: Some(0),
        prompt_tokens: Config::default().lab.prompt_tokens,
        micro_batch: None,
        records_experts: false,
        loaded: LoadedModel::default(),
        speed: PromptSpeed::default(),
    })?)
}

/// One repository, whose commits are asked about in a drawn order.
struct Source {
    name: String,
    author: String,
    history: History,
    tree: WorkingTree,
    /// The commits that are left, the next one last.
    order: Vec<usize>,
}

impl Source {
    fn open(path: &Path, author: &str, wanted: &Wanted) -> Result<Source> {
        let filter = Filter { author: Some(author.to_owned()), since: wanted.since, head: None };
        let history = History::open(path, &filter)?;
        let tree = WorkingTree::new(&history)?;
        let name = tree.root().file_name().context("a repository has no name")?;
        let name = name.to_string_lossy().into_owned();
        let mut order: Vec<usize> = (0..history.len()).collect();
        order.shuffle(&mut StdRng::seed_from_u64(wanted.seed));
        Ok(Source { name, author: author.to_owned(), history, tree, order })
    }

    /// The next commit that adds code.
    fn next_commit(&mut self) -> Result<Option<Vec<FileChange>>> {
        while let Some(commit) = self.order.pop() {
            let changes = self.history.commits_from(commit).next().transpose()?;
            if let Some(changes) = changes.filter(|changes| adds_lines(changes)) {
                return Ok(Some(changes));
            }
        }
        Ok(None)
    }

    fn ask(
        &mut self,
        changes: &[FileChange],
        engine: &mut LlamaEngine,
        wanted: &Wanted,
        places: &mut Places,
    ) -> Result<()> {
        let Some(commit) = changes.first().map(|change| change.commit.as_str()) else {
            return Ok(());
        };
        self.tree.move_before(&self.history, commit)?;
        let known = names_of_tree(self.tree.root());
        let mut desk = Desk::new(&self.tree, Config::default().lab.window(), CONTEXT_CHARS);
        let mut ask = |desk: &mut Desk, place: &Place| {
            let key = format!("{}@{commit}:{}:{}:{}", self.name, place.path, place.line, place.at);
            if places.has(&key) {
                return Ok(());
            }
            let asked = Asked { key, repository: &self.name, author: &self.author, commit };
            let record = record(engine, desk, place, asked, (wanted.alternatives, &known))?;
            eprintln!(
                "{} in {:.0} s, {} of {} tokens of the prompt",
                record.key, record.seconds, record.evaluated_tokens, record.prompt_tokens
            );
            places.add(&record)
        };
        type_commit(&mut desk, changes, (wanted.seed, wanted.per_commit), &mut ask)
    }
}

fn adds_lines(changes: &[FileChange]) -> bool {
    changes.iter().any(|change| change.hunks.iter().any(|hunk| !hunk.added.is_empty()))
}

/// The words of all code of a folder.
fn names_of_tree(root: &Path) -> HashSet<String> {
    let (mut known, mut folders) = (HashSet::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let is_small = entry.metadata().is_ok_and(|found| found.len() <= FILE_BYTES_MAX);
            let is_code = path.to_str().is_some_and(|path| language::of_path(path).is_some());
            if is_small
                && is_code
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                known.extend(words(&text).map(str::to_owned));
            }
        }
    }
    known
}

struct Asked<'a> {
    key: String,
    repository: &'a str,
    author: &'a str,
    commit: &'a str,
}

fn record(
    engine: &mut LlamaEngine,
    desk: &mut Desk,
    place: &Place,
    asked: Asked,
    (alternatives, known): (usize, &HashSet<String>),
) -> Result<Record> {
    let started = Instant::now();
    let lab = Config::default().lab;
    let request = Request {
        prompt: desk.prompt(place.cursor)?,
        adapter: 0,
        sampling: Sampling::GREEDY,
        stop_rule: StopRule::LINE,
        max_tokens: lab.max_tokens,
        budget: BUDGET,
        min_token_probability: 0.0,
        alternatives,
        context_wait: Duration::MAX,
    };
    let generated = engine.generate(&request, &AtomicBool::new(false))?;
    let document = desk.document();
    let seen = Seen::new(desk, known);
    let around = NearbyText::of(&document.text, place.cursor);
    let healing = request.prompt.healing.len();
    let candidate = |answer: &Answer| candidate(answer, healing, &around, &seen);
    let line_end = place.cursor + place.closers.chars().count();
    let part = |from: usize, to: usize| {
        document.text.slice(from..to.min(document.text.len_chars())).to_string()
    };
    Ok(Record {
        key: asked.key,
        repository: asked.repository.to_owned(),
        author: asked.author.to_owned(),
        commit: asked.commit.to_owned(),
        path: place.path.to_owned(),
        language: document.language.clone(),
        kind: place.kind,
        before: part(place.cursor.saturating_sub(BEFORE_CHARS), place.cursor),
        closers: place.closers.to_owned(),
        after: part(line_end, line_end + AFTER_CHARS),
        rest: place.rest.to_owned(),
        typed: last_chars(place.typed, TYPED_CHARS).to_owned(),
        prompt_tokens: generated.prompt.len(),
        evaluated_tokens: generated.prompt_evaluated,
        seconds: started.elapsed().as_secs_f64(),
        candidates: generated.answers.iter().map(candidate).collect(),
    })
}

fn last_chars(text: &str, count: usize) -> &str {
    let at = text.char_indices().rev().nth(count.saturating_sub(1)).map_or(0, |(at, _)| at);
    &text[at..]
}

/// The words that are known around a place.
struct Seen<'a> {
    language: &'a str,
    document: HashSet<String>,
    others: HashSet<String>,
    tree: &'a HashSet<String>,
}

impl<'a> Seen<'a> {
    fn new(desk: &'a Desk, tree: &'a HashSet<String>) -> Seen<'a> {
        let of = |text: &Rope| words(&text.to_string()).map(str::to_owned).collect::<HashSet<_>>();
        let document = desk.document();
        let others = desk.others().flat_map(|other| of(&other.text)).collect();
        Seen { language: &document.language, document: of(&document.text), others, tree }
    }
}

fn candidate(answer: &Answer, healing: usize, around: &NearbyText, seen: &Seen) -> Candidate {
    let text = AnswerText { text: answer.offered(), healing, stop: answer.stop, is_prose: false };
    let Shown { text: shown, .. } = shown(&text, &StopRule::LINE, around);
    let line = first_line(&shown);
    let name = |name: super::names::Name| SeenName {
        is_member: name.is_member,
        is_declared: name.is_declared,
        is_builtin: is_builtin(&name.text, seen.language),
        in_document: seen.document.contains(&name.text),
        in_others: seen.others.contains(&name.text),
        in_tree: seen.tree.contains(&name.text),
        name: name.text,
    };
    let tokens = answer.ends.iter().zip(&answer.tokens).zip(&answer.visible_logprobs);
    Candidate {
        names: names(&around.line_before, line, seen.language).into_iter().map(name).collect(),
        text: String::from_utf8_lossy(&answer.text).into_owned(),
        healing,
        stop: answer.stop,
        tokens: tokens.map(|((end, token), visible)| (*end, token.logprob, *visible)).collect(),
        healed: answer.healed,
        shown,
    }
}
