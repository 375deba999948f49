//! How much of what an author types they have typed before: what there is to learn by
//! heart.
//!
//!   repeats --author NAME --since 2025-06-01 REPO…
//!
//! A line is known if the author typed just this line in an earlier commit; expected
//! if, of all they typed behind the same line before, it was the most frequent.

use anyhow::{Result, ensure};
use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use jiff::civil::Date;
use rehearsal::developer::history::{self, FileChange, Filter, History};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Brackets and `else` are no memories, in characters.
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
    /// Lines of each repository, at most
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
        let filter = Filter { author: Some(author.clone()), since };
        let mut counts = Counts::default();
        let mut memory = Memory::default();
        let mut of_commit: Vec<FileChange> = vec![];
        for change in History::open(repo, &filter)?.changes() {
            let change = change?;
            // What is copied within one commit is in the prompt, or a paste.
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

/// The lines that were typed, each with the last one above it that is not blank.
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
    /// By the line above.
    behind: HashMap<String, HashMap<String, usize>>,
}

impl Memory {
    fn learn(&mut self, change: &FileChange) {
        for (above, line) in typed(change) {
            self.lines.insert(line.to_owned());
            let behind = self.behind.entry(above.to_owned()).or_default();
            *behind.entry(line.to_owned()).or_default() += 1;
        }
    }

    fn expects(&self, above: &str) -> Option<&str> {
        let behind = self.behind.get(above)?.iter();
        behind.max_by_key(|(line, count)| (*count, *line)).map(|(line, _)| line.as_str())
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
