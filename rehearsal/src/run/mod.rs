//! A rehearsal run: starts the arms, has the stream typed into them, saves it on the way, and
//! collects the results.

pub mod arm;
pub mod interrupt;
pub mod judge;
pub mod ledger;
pub mod record;
pub mod resume;
pub mod status;
mod stream;
pub mod tree;
pub mod typist;

use crate::developer::disturbance::Disturbance;
use crate::developer::history::History;
use crate::developer::{Developer, Editor, OfferOutcome};
use crate::run::arm::{Arm, ArmSpec};
use crate::run::judge::Judge;
use crate::run::record::{ArmRecord, Learned, Swap, Update};
use crate::run::resume::{SavedRun, WorkFolder};
use crate::run::status::DaemonStatus;
use crate::run::stream::{Failure, Stage};
use crate::run::tree::WorkingTree;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct RunSettings {
    pub hone: PathBuf,
    pub model: PathBuf,
    /// FIM template of the model, where its vocabulary does not tell.
    pub template: Option<String>,
    /// The judge that rates the offers, if one was asked for.
    pub judge: Option<Arc<Judge>>,
    /// Places in the stream at which the developer pauses for a completion.
    pub limit: usize,
    /// Places in one commit, after which the rest of that commit is left out.
    pub per_commit: Option<usize>,
    pub seed: u64,
    pub developer: Developer,
    /// The number of times that the exact developer slips, 0 to 1: see [`crate::developer`].
    pub noise: f64,
    /// What happens in addition to the developer's typing.
    pub disturbances: Vec<Disturbance>,
    pub editor: Editor,
    /// True if the developer works in a working tree that the daemons can read.
    pub tree: bool,
    /// Ends the stream after this long, wherever it is by then.
    pub time_limit: Option<Duration>,
    /// True if the daemons' homes are left on the disk.
    pub keep_homes: bool,
    /// The place where this run is saved, so that it can be continued.
    pub work: Option<WorkFolder>,
    /// The run is saved at the first file change after this many places.
    pub save_places: usize,
    /// What is run between two files, if anything.
    pub visit: Option<Visit>,
    /// The place where arms that run one after the other share their prompts. The base model
    /// computes a prompt in the same way for every arm.
    pub prompt_cache: Option<PathBuf>,
}

/// A program that is run with each daemon's home after every so many places.
pub struct Visit {
    pub program: PathBuf,
    pub places: usize,
}

/// What an observer may want to know, as it happens.
#[derive(Debug)]
pub enum RunEvent<'a> {
    File {
        commit: &'a str,
        path: &'a str,
    },
    Requested(RequestEvent<'a>),
    /// An update is under way. This event repeats until the update ends.
    Training {
        arm: &'a str,
        elapsed: Duration,
    },
    Updated {
        arm: &'a str,
        update: &'a Update,
        labels: u64,
    },
    Swapped {
        arm: &'a str,
        swap: &'a Swap,
    },
    LearnerFailed {
        arm: &'a str,
        error: &'a str,
    },
    /// Every arm is done with this many places of the stream.
    PlaceDone {
        places: usize,
    },
}

#[derive(Debug)]
pub struct RequestEvent<'a> {
    pub arm: &'a str,
    pub path: &'a str,
    /// Counts from 1.
    pub line: usize,
    /// The line up to the cursor.
    pub typed: &'a str,
    /// What really follows the cursor in the commit.
    pub rest: &'a str,
    pub offer: Option<&'a str>,
    pub outcome: Option<OfferOutcome>,
    pub latency_ms: f64,
}

/// The reason why the stream ended where it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamEnd {
    /// All chosen commits were typed.
    History,
    /// The limit of places was reached.
    Limit,
    /// The time limit was reached.
    Time,
}

/// The results for one repository. A report is made from these alone.
#[derive(Debug, Clone)]
pub struct RunResult {
    pub arms: Vec<ArmResult>,
    /// Places of the stream that were reached.
    pub places: usize,
    /// File changes that were typed.
    pub files: usize,
    /// The commit of each file change that was reached, whether it was typed or left out.
    pub commits: Vec<String>,
    pub ended_by: StreamEnd,
    pub elapsed: Duration,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ArmResult {
    pub name: String,
    pub record: ArmRecord,
    /// What the daemon reported at the end.
    pub status: DaemonStatus,
    pub learned: Learned,
    /// The daemon's home, if it was left on the disk.
    pub home: Option<PathBuf>,
}

/// Starts the arms and types the history into them, side by side.
pub fn rehearse(
    history: &History,
    specs: &[ArmSpec],
    settings: &RunSettings,
    mut observe: impl FnMut(RunEvent),
) -> Result<RunResult> {
    let begun = Instant::now();
    let saved = settings.work.as_ref().map_or(Ok(None), WorkFolder::load)?;
    let mut homes = Vec::new();
    for index in 0..specs.len() {
        let home = arm::temporary_home()?;
        if let (Some(work), Some(SavedRun { done: None, .. })) = (&settings.work, &saved) {
            work.restore(index, home.path())?;
        }
        homes.push(home);
    }
    let mut progress = saved.unwrap_or_else(|| SavedRun::new(specs.len()));
    let before = progress.elapsed;
    let mut tree = settings.tree.then(|| WorkingTree::new(history)).transpose()?;
    loop {
        if let Some((ended_by, arms)) = progress.done {
            let SavedRun { places, files, left_out, elapsed, .. } = progress;
            let reached = history.changes().take(files);
            let commits = reached.map(|change| Ok(change?.commit)).collect::<Result<_>>()?;
            let files = files - left_out;
            return Ok(RunResult { arms, places, files, commits, ended_by, elapsed });
        }
        if let Some(tree) = &mut tree {
            // An editor opens a folder that is there already.
            let commit = commit_to_type(history, &progress)?;
            commit.map_or(Ok(()), |commit| tree.move_before(history, &commit))?;
        }
        let folder = tree.as_ref().map(WorkingTree::root);
        let mut arms = specs
            .iter()
            .zip(homes)
            .map(|(spec, home)| Arm::start(spec, settings, home, folder))
            .collect::<Result<Vec<_>>>()?;
        let stage = Stage { arms: &arms, history, tree: tree.as_mut(), settings, begun };
        match stream::run_stretch(stage, &mut progress, &mut observe) {
            Ok(done) => progress.done = done,
            Err(Failure { arm: Some(arm), error }) => return Err(arms[arm].with_log(error)),
            Err(Failure { arm: None, error }) => return Err(error),
        }
        progress.elapsed = before + begun.elapsed();
        if let Some((_, results)) = &mut progress.done
            && settings.keep_homes
        {
            for (arm, result) in arms.iter_mut().zip(results) {
                result.home = arm.keep_home();
            }
        }
        homes = arms.into_iter().filter_map(Arm::stop).collect::<Vec<TempDir>>();
        if let Some(work) = &settings.work {
            let needed = if progress.done.is_some() { &[][..] } else { &homes[..] };
            let paths: Vec<_> = needed.iter().map(TempDir::path).collect();
            work.save(&mut progress, &paths)?;
        }
    }
}

/// The commit in which a run continues.
fn commit_to_type(history: &History, progress: &SavedRun) -> Result<Option<String>> {
    match progress.commit.0.as_str() {
        "" => Ok(history.changes().next().transpose()?.map(|first| first.commit)),
        commit => Ok(Some(commit.to_owned())),
    }
}

/// The file of the configured model, as this `hone` knows it.
pub fn default_model(hone: &Path) -> Result<PathBuf> {
    let listed = listed_models(hone)?;
    if let Some(problem) = listed["problem"].as_str() {
        bail!("no model: {problem}; correct it, or pass --model FILE");
    }
    let path = configured(&listed).and_then(|model| model["path"].as_str());
    path.map(PathBuf::from).context("no model: run `hone model pull`, or pass --model FILE")
}

/// The FIM template of the configured model, if Hone knows it by name. Its vocabulary need not
/// tell.
pub fn default_template(hone: &Path) -> Option<String> {
    let listed = listed_models(hone).ok()?;
    configured(&listed)?["template"].as_str().map(str::to_owned)
}

/// What `hone model list --json` prints.
fn listed_models(hone: &Path) -> Result<Value> {
    let output = Command::new(hone).args(["model", "list", "--json"]).output();
    let output = output.with_context(|| {
        format!("cannot start {} (build it, or pass --hone PATH)", hone.display())
    })?;
    serde_json::from_slice(&output.stdout).with_context(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().lines().next_back().unwrap_or("it printed no JSON");
        format!("`{} model list --json`: {said}", hone.display())
    })
}

fn configured(listed: &Value) -> Option<&Value> {
    listed["models"].as_array()?.iter().find(|model| model["configured"] == true)
}
