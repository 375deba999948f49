//! Computes the answers at the places of commits with the served model, as a server would for a
//! request by hand.
//!
//! Only the cursor's line is asked for, as where a line is on screen already. All answers of a
//! place come from one prompt.

use super::desk::Desk;
use super::record::{Places, Record};
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
use rehearsal::run::tree::WorkingTree;
use settings::Config;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Characters of other code in a prompt, as much as is ever installed.
const CONTEXT_CHARS: usize = 3_000;

/// A prompt takes as long as it takes.
const BUDGET: Duration = Duration::from_secs(600);

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
        Ok(Source { name, history, tree, order })
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
        let mut desk = Desk::new(&self.tree, Config::default().lab.window(), CONTEXT_CHARS);
        let mut ask = |desk: &mut Desk, place: &Place| {
            let key = format!("{}@{commit}:{}:{}:{}", self.name, place.path, place.line, place.at);
            if places.has(&key) {
                return Ok(());
            }
            let asked = Asked { key, repository: &self.name, commit };
            let record = record(engine, desk, place, asked, wanted.alternatives)?;
            eprintln!("{} in {:.0} s", record.key, record.seconds);
            places.add(&record)
        };
        type_commit(&mut desk, changes, (wanted.seed, wanted.per_commit), &mut ask)
    }
}

fn adds_lines(changes: &[FileChange]) -> bool {
    changes.iter().any(|change| change.hunks.iter().any(|hunk| !hunk.added.is_empty()))
}

struct Asked<'a> {
    key: String,
    repository: &'a str,
    commit: &'a str,
}

fn record(
    engine: &mut LlamaEngine,
    desk: &mut Desk,
    place: &Place,
    asked: Asked,
    alternatives: usize,
) -> Result<Record> {
    let started = Instant::now();
    let request = Request {
        prompt: desk.prompt(place.cursor)?,
        adapter: 0,
        sampling: Sampling::GREEDY,
        stop_rule: StopRule::LINE,
        max_tokens: Config::default().lab.max_tokens,
        budget: BUDGET,
        min_token_probability: 0.0,
        alternatives,
        context_wait: Duration::MAX,
    };
    let generated = engine.generate(&request, &AtomicBool::new(false))?;
    let document = desk.document();
    let around = NearbyText::of(&document.text, place.cursor);
    let line = |answer: &Answer| line(answer, request.prompt.healing.len(), &around);
    Ok(Record {
        key: asked.key,
        repository: asked.repository.to_owned(),
        commit: asked.commit.to_owned(),
        language: document.language.clone(),
        kind: place.kind,
        line_before: around.line_before.clone(),
        closers: place.closers.to_owned(),
        rest: place.rest.to_owned(),
        prompt_tokens: generated.prompt.len(),
        seconds: started.elapsed().as_secs_f64(),
        answers: generated.answers.iter().map(line).collect(),
    })
}

/// Returns the line that would be shown of an answer.
fn line(answer: &Answer, healing: usize, around: &NearbyText) -> String {
    let text = AnswerText { text: answer.offered(), healing, stop: answer.stop, is_prose: false };
    let Shown { text, .. } = shown(&text, &StopRule::LINE, around);
    first_line(&text).to_owned()
}
