//! `hone-lab places`: which of several candidates is the best one.
//!
//! The candidates of each place of real commits are computed once, and kept in a file with all that
//! a choice may go by. A run that was interrupted continues. Any choice is then tried in a second.

mod choose;
mod compute;
mod desk;
mod features;
mod names;
mod record;
mod typing;

use crate::bench;
use anyhow::{Result, ensure};
use jiff::civil::Date;
use rehearsal::developer::history::{Filter, parse_day};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// Try choices on the places of a file, which takes a second, and compute none
    #[arg(long, value_name = "FILE")]
    choose: Option<PathBuf>,
    /// A model from `hone model list`
    #[arg(long, default_value = bench::MODEL, value_name = "NAME")]
    model: String,
    /// A repository to draw places from; may be given several times
    #[arg(long, value_name = "DIR", required_unless_present = "choose")]
    repository: Vec<PathBuf>,
    /// The author of each repository's commits, in the same order
    #[arg(long, value_name = "TEXT")]
    author: Vec<String>,
    /// Only commits from this day on
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_day)]
    since: Option<Date>,
    /// Places of each repository at most
    #[arg(long, default_value_t = 100, value_name = "N")]
    places: usize,
    /// Places of each commit at most
    #[arg(long, default_value_t = 8, value_name = "N")]
    per_commit: usize,
    /// Alternatives to compute beside the first answer
    #[arg(long, default_value_t = 4, value_name = "N")]
    alternatives: usize,
    #[arg(long, default_value_t = 62)]
    seed: u64,
    /// Repositories on which the weights of choices are fitted; the others are for the result
    #[arg(long, value_name = "NAME")]
    tuning: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(file) = &arguments.choose {
        let records = record::read(file)?;
        println!("{}", choose::report(&records, &arguments.tuning));
        return Ok(());
    }
    let (repositories, authors) = (arguments.repository.len(), arguments.author.len());
    ensure!(
        repositories == authors,
        "{authors} authors for {repositories} repositories: give --author for each"
    );
    let model = bench::model(&arguments.model)?;
    let file = bench::folder("places")?.join("places.jsonl");
    eprintln!("   the places are kept in {}", file.display());
    let pairs = arguments.repository.iter().cloned().zip(arguments.author.iter().cloned());
    let wanted = compute::Wanted {
        model: &model,
        repositories: pairs.collect(),
        since: arguments.since.map(Filter::first_second).transpose()?,
        places: arguments.places,
        per_commit: arguments.per_commit,
        alternatives: arguments.alternatives,
        seed: arguments.seed,
    };
    compute::compute(&wanted, &mut record::Places::open(&file)?)
}
