//! Draws what the authors of some repositories wrote, as texts to learn from.
//!
//!   hone-lab written --since 2024-07-01 --hunks 150 --per-commit 3 REPO… > written.jsonl
//!
//! Each line of the output is one hunk of a commit: the file with all that was written above it,
//! the cursor where the hunk begins, and what was written there. Some hunks of many commits are
//! drawn at random, so that no large commit speaks for its author.

use anyhow::{Context, Result, ensure};
use clap::Args;
use jiff::civil::Date;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rehearsal::developer::history::{self, Filter, History};
use rehearsal::developer::written::{self, Amount};
use serde_json::json;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

#[derive(Args)]
pub struct Arguments {
    #[arg(required = true, value_name = "REPO")]
    repos: Vec<PathBuf>,
    /// Only commits of this author; one for all repositories, or one for each
    #[arg(long, value_name = "TEXT")]
    author: Vec<String>,
    /// Only commits from this day on
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = history::parse_day)]
    since: Option<Date>,
    /// Hunks of each repository at most
    #[arg(long, default_value_t = 150, value_name = "N")]
    hunks: usize,
    /// Hunks of each commit at most
    #[arg(long, default_value_t = 3, value_name = "N")]
    per_commit: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let (repos, authors) = (arguments.repos.len(), arguments.author.len());
    ensure!(
        authors <= 1 || authors == repos,
        "{authors} authors for {repos} repositories; name one for all or one for each"
    );
    let mut random = StdRng::seed_from_u64(arguments.seed);
    let mut drawn = vec![];
    for (index, repo) in arguments.repos.iter().enumerate() {
        let author = arguments.author.get(index).or(arguments.author.first());
        let since = arguments.since.map(Filter::first_second).transpose()?;
        let filter = Filter { author: author.cloned(), since, head: None };
        let history = History::open(repo, &filter)?;
        let name = repo.file_name().context("a repository has no name")?.to_string_lossy();
        let amount = Amount { hunks: arguments.hunks, per_commit: arguments.per_commit };
        let hunks = written::draw(&history, usize::MAX, amount, &mut random)?;
        eprintln!("{name}: {} hunks of {} commits", hunks.len(), history.len());
        drawn.extend(hunks.into_iter().map(|(_, hunk)| (name.clone(), hunk)));
    }
    drawn.shuffle(&mut random);
    let mut out = BufWriter::new(io::stdout().lock());
    for (repository, hunk) in drawn {
        let mut hunk = serde_json::to_value(hunk)?;
        hunk["repository"] = json!(repository);
        serde_json::to_writer(&mut out, &hunk)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
