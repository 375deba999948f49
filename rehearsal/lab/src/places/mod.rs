//! `hone-lab places`: how many lines of real commits the answers of a request by hand complete.
//!
//! The answers of each place are computed once for each model, and kept in a file. A run that was
//! interrupted continues.

mod compute;
mod desk;
mod record;
mod table;
mod typing;

use crate::bench;
use anyhow::{Result, ensure};
use jiff::civil::Date;
use rehearsal::developer::history::{Filter, parse_day};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// A model from `hone model list`; may be given several times
    #[arg(long, default_value = bench::MODEL, value_name = "NAME")]
    model: Vec<String>,
    /// A repository to draw places from; may be given several times
    #[arg(long, value_name = "DIR", required = true)]
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
    /// Alternatives to compute in addition to the first answer
    #[arg(long, default_value_t = 2, value_name = "N")]
    alternatives: usize,
    #[arg(long, default_value_t = 62)]
    seed: u64,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let (repositories, authors) = (arguments.repository.len(), arguments.author.len());
    ensure!(
        repositories == authors,
        "{authors} authors for {repositories} repositories: give --author for each"
    );
    let mut all = vec![];
    for name in &arguments.model {
        let model = bench::model(name)?;
        let file = bench::folder("places")?.join(format!("{name}.jsonl"));
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
        compute::compute(&wanted, &mut record::Places::open(&file)?)?;
        all.push(table::Computed { model: name.clone(), records: record::read(&file)? });
    }
    println!("{}", table::table(&all));
    Ok(())
}
