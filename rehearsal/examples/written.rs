//! Draws what the authors of some repositories wrote, as texts to learn from.
//!
//!   written --since 2024-07-01 --hunks 150 --per-commit 3 REPO… > written.jsonl
//!
//! Each line of the output is one hunk of a commit: the file with all that was written above it,
//! the cursor where the hunk begins, and what was written there. Some hunks of many commits are
//! drawn at random, so that no large commit speaks for its author.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use jiff::civil::Date;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rehearsal::developer::history::{self, FileChange, Filter, History, Hunk};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// A hunk is cut behind the line with which it has this many characters.
const WRITTEN_CHARS: usize = 500;
/// A hunk with fewer characters, blanks not counted, has nothing to learn from.
const WRITTEN_CHARS_MIN: usize = 8;
/// A commit that changes more files was made by a program: a rename or a formatter.
const COMMIT_FILES_MAX: usize = 20;

#[derive(Parser)]
#[command(about = "Draws what the authors of some repositories wrote, as texts to learn from")]
struct Arguments {
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

fn main() -> Result<()> {
    let arguments = Arguments::parse();
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
        let filter = Filter { author: author.cloned(), since };
        let history = History::open(repo, &filter)?;
        let name = repo.file_name().context("a repository has no name")?.to_string_lossy();
        let hunks = hunks_of(&history, &arguments, &mut random)?;
        eprintln!("{name}: {} hunks of {} commits", hunks.len(), history.len());
        drawn.extend(hunks.into_iter().map(|hunk| (name.clone(), hunk)));
    }
    drawn.shuffle(&mut random);
    let mut out = BufWriter::new(io::stdout().lock());
    for (repository, mut hunk) in drawn {
        hunk["repository"] = json!(repository);
        serde_json::to_writer(&mut out, &hunk)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

/// Some hunks of as many commits of a history as there are.
fn hunks_of(history: &History, arguments: &Arguments, random: &mut StdRng) -> Result<Vec<Value>> {
    let mut of_commits = vec![];
    let mut seen = HashSet::new();
    for changes in history.commits() {
        let changes = changes?;
        if changes.len() > COMMIT_FILES_MAX {
            continue;
        }
        let found = changes.iter().flat_map(|change| {
            change.hunks.iter().filter_map(|hunk| written(change, hunk)).collect::<Vec<_>>()
        });
        // A text that is written again and again counts once.
        let fresh: Vec<Value> =
            found.filter(|hunk| seen.insert(hunk["written"].to_string())).collect();
        let some = fresh.choose_multiple(random, arguments.per_commit).cloned();
        of_commits.push(some.collect::<Vec<Value>>());
    }
    of_commits.shuffle(random);
    Ok(of_commits.into_iter().flatten().take(arguments.hunks).collect())
}

/// The hunk as the developer begins it: the hunks above it are written, and the lines that it
/// replaces are gone.
fn written(change: &FileChange, hunk: &Hunk) -> Option<Value> {
    let (before, after) = (history::lines(&change.before), history::lines(&change.after));
    let above = after[..hunk.added.start].concat();
    let below = before[hunk.removed.end..].concat();
    let mut written = String::new();
    for line in &after[hunk.added.clone()] {
        written.push_str(&line.replace("\r\n", "\n"));
        if written.chars().count() >= WRITTEN_CHARS {
            break;
        }
    }
    let letters = written.chars().filter(|c| !c.is_whitespace()).count();
    (letters >= WRITTEN_CHARS_MIN && written.ends_with('\n')).then(|| {
        json!({
            "commit": change.commit,
            "path": change.path,
            "language": change.language,
            // The developer begins on an empty line.
            "text": format!("{above}\n{below}"),
            "cursor": above.chars().count(),
            "written": written,
        })
    })
}
