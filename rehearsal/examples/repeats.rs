//! Measures how much of what an author types they have typed before, which is what can be learned
//! by heart.
//!
//!   repeats --author NAME --since 2025-06-01 REPO…
//!
//! A line is *known* if the author typed exactly this line in an earlier commit. It is *expected*
//! if it is the line that the author typed most often after the same preceding line.

use anyhow::{Result, ensure};
use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use jiff::civil::Date;
use rehearsal::developer::history::{self, FileChange, Filter, History};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Shorter lines, such as brackets and `else`, do not count.
const MIN_CHARS: usize = 4;

#[derive(Parser)]
#[command(about = "How much of what an author types they have typed before")]
struct Arguments {
    #[arg(required = true, value_name = "REPO")]
    repos: Vec<PathBuf>,
    /// One for all repositories, or one for each
    #[arg(long, required = true, value_name = "TEXT")]
    author: Vec<String>,
    /// Only commits from this day on
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = history::parse_day)]
    since: Option<Date>,
    /// Lines of each repository at most
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    lines: usize,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let (repos, authors) = (arguments.repos.len(), arguments.author.len());
    ensure!(authors == 1 || authors == repos, "{authors} authors for {repos} repositories");
    let since = arguments.since.map(Filter::first_second).transpose()?;
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["author", "lines", "known", "expected", "characters expected"]);
    for (repo, author) in arguments.repos.iter().zip(arguments.author.iter().cycle()) {
        let filter = Filter { author: Some(author.clone()), since, head: None };
        let mut counts = Counts::default();
        let mut memory = Memory::default();
        let mut of_commit: Vec<FileChange> = vec![];
        for change in History::open(repo, &filter)?.changes() {
            let change = change?;
            // A line that repeats within one commit stands in the prompt already or was pasted.
            if of_commit.first().is_some_and(|first| first.commit != change.commit) {
                of_commit.drain(..).for_each(|change| memory.learn(&change));
            }
            for (before, line) in typed(&change) {
                counts.add(&memory, before, line);
            }
            of_commit.push(change);
            if counts.lines >= arguments.lines {
                break;
            }
        }
        let percent = |part: usize, whole: usize| {
            format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
        };
        table.add_row([
            author.clone(),
            counts.lines.to_string(),
            percent(counts.known, counts.lines),
            percent(counts.expected, counts.lines),
            percent(counts.expected_chars, counts.chars),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    Ok(())
}

/// The lines that were typed, each with the nearest line above it that is not blank.
fn typed(change: &FileChange) -> Vec<(&str, &str)> {
    let lines = history::lines(&change.after);
    let above = |number: usize| {
        lines[..number].iter().rev().map(|line| line.trim()).find(|line| !line.is_empty())
    };
    let added = change.hunks.iter().flat_map(|hunk| hunk.added.clone());
    added
        .map(|number| (above(number).unwrap_or_default(), lines[number].trim()))
        .filter(|(_, line)| line.chars().count() >= MIN_CHARS)
        .collect()
}

#[derive(Default)]
struct Memory {
    lines: HashSet<String>,
    /// How often each line followed, by the line above it.
    following: HashMap<String, HashMap<String, usize>>,
}

impl Memory {
    fn learn(&mut self, change: &FileChange) {
        for (above, line) in typed(change) {
            self.lines.insert(line.to_owned());
            let following = self.following.entry(above.to_owned()).or_default();
            *following.entry(line.to_owned()).or_default() += 1;
        }
    }

    fn expects(&self, above: &str) -> Option<&str> {
        let following = self.following.get(above)?.iter();
        following.max_by_key(|(line, count)| (*count, *line)).map(|(line, _)| line.as_str())
    }
}

#[derive(Default)]
struct Counts {
    lines: usize,
    known: usize,
    expected: usize,
    chars: usize,
    expected_chars: usize,
}

impl Counts {
    fn add(&mut self, memory: &Memory, above: &str, line: &str) {
        let chars = line.chars().count();
        self.lines += 1;
        self.chars += chars;
        self.known += usize::from(memory.lines.contains(line));
        if memory.expects(above) == Some(line) {
            self.expected += 1;
            self.expected_chars += chars;
        }
    }
}
