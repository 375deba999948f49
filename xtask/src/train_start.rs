//! `cargo xtask train-start`: trains the adapter that everybody starts from, on what many authors
//! wrote, and scores it on what others wrote. docs/lab/start-adapter.md has the question.

use crate::bench;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repositories: those that are learned from, those of the learning curve, and those of the
/// result. Each has the commit at which its history ends.
const REPOSITORIES: &str = "xtask/start-adapter/repositories.json";
/// The first day whose commits are drawn. The default model hardly knows younger ones: it was
/// trained on repositories that were created before February 2024 (arXiv:2409.12186).
const SINCE: &str = "2024-07-01";

#[derive(Args)]
pub struct Arguments {
    /// Texts to learn from, each once
    #[arg(long, default_value_t = 1536, value_name = "N")]
    texts: u32,
    /// Score the adapter after every so many texts
    #[arg(long, default_value_t = 512, value_name = "N")]
    score_every: u32,
    /// Score the trained adapter on the authors of the result as well. A choice must not be made
    /// after that
    #[arg(long)]
    result: bool,
    /// Keep the repositories, the texts and the adapter in this folder
    #[arg(long, value_name = "DIR", default_value = "target/start-adapter")]
    work: PathBuf,
}

/// What is drawn of one list of repositories.
struct Draw {
    list: &'static str,
    /// Hunks of each repository.
    hunks: &'static str,
}

const LEARNED: Draw = Draw { list: "learned", hunks: "160" };
const CURVE: Draw = Draw { list: "curve", hunks: "30" };
const RESULT: Draw = Draw { list: "result", hunks: "120" };

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let lists = fs::read_to_string(workspace.root.join(REPOSITORIES)).context(REPOSITORIES)?;
    let lists: Value = serde_json::from_str(&lists).context(REPOSITORIES)?;
    let work = workspace.root.join(&arguments.work);
    fs::create_dir_all(&work).with_context(|| work.display().to_string())?;
    let mut steps = bench::build(workspace)?;
    let model = bench::pull(workspace, &mut steps, None)?;
    let run = Training { workspace, work, model };
    let learned = run.episodes(&mut steps, &lists, &LEARNED)?;
    let curve = run.episodes(&mut steps, &lists, &CURVE)?;
    let out = run.work.join("start.gguf");
    let mut train = run.example("start_adapter");
    train.arg("--model").arg(&run.model).arg("--learn").arg(learned).arg("--score").arg(curve);
    train.arg("--out").arg(&out).args(["--limit", &arguments.texts.to_string()]);
    train.args(["--score-every", &arguments.score_every.to_string()]);
    steps.run("train", &mut train)?;
    if arguments.result {
        let result = run.episodes(&mut steps, &lists, &RESULT)?;
        let mut score = run.example("start_adapter");
        score.arg("--model").arg(&run.model).arg("--adapter").arg(&out);
        steps.run("result", score.arg("--score").arg(result))?;
    }
    println!("{}", out.display());
    Ok(())
}

struct Training<'a> {
    workspace: &'a Workspace,
    work: PathBuf,
    model: PathBuf,
}

impl Training<'_> {
    fn example(&self, name: &str) -> Command {
        Command::new(self.workspace.binary(&format!("examples/{name}")))
    }

    /// The episodes of what is drawn of a list, which is made once.
    fn episodes(&self, steps: &mut Steps, lists: &Value, draw: &Draw) -> Result<PathBuf> {
        let file = |ending: &str| self.work.join(format!("{}.{ending}", draw.list));
        let (texts, episodes) = (file("texts.jsonl"), file("episodes.jsonl"));
        if episodes.exists() {
            return Ok(episodes);
        }
        let mut written = self.example("written");
        written.args(["--since", SINCE, "--hunks", draw.hunks]);
        let repositories = lists[draw.list].as_array().context(REPOSITORIES)?;
        for repository in repositories {
            written.arg(self.clone_of(steps, repository)?);
            if let Some(author) = repository["author"].as_str() {
                written.args(["--author", author]);
            }
        }
        written.stdout(File::create(&texts)?);
        steps.run(&format!("texts: {}", draw.list), &mut written)?;
        let unfinished = file("unfinished");
        let mut hone = Command::new(self.workspace.binary("hone"));
        hone.args(["lab", "texts", "--model"]).arg(&self.model).arg(&texts);
        hone.stdout(File::create(&unfinished)?);
        steps.run(&format!("episodes: {}", draw.list), &mut hone)?;
        fs::rename(&unfinished, &episodes)?;
        Ok(episodes)
    }

    /// A clone whose history ends where the list says.
    fn clone_of(&self, steps: &mut Steps, repository: &Value) -> Result<PathBuf> {
        let (Some(url), Some(head)) = (repository["url"].as_str(), repository["head"].as_str())
        else {
            bail!("{REPOSITORIES}: a repository has no url or no head");
        };
        let name = Path::new(url).file_name().context("a url has no name")?;
        let folder = self.work.join("repositories").join(name);
        if !folder.exists() {
            let mut clone = Command::new("git");
            clone.args(["clone", "--quiet", "--bare", url]).arg(&folder);
            steps.run(url, &mut clone)?;
        }
        let git = || {
            let mut git = Command::new("git");
            git.arg("-C").arg(&folder);
            git
        };
        const BRANCH: &str = "refs/heads/start-adapter";
        let ends = format!("{} ends at {head}", name.display());
        steps.run(&ends, git().args(["update-ref", BRANCH, head]))?;
        steps.run(&format!("{ends}: branch"), git().args(["symbolic-ref", "HEAD", BRANCH]))?;
        Ok(folder)
    }
}
