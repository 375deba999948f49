//! `hone-lab people`: what real people's verdicts say of the gate.
//!
//! Each offer is scored by the served model as the server would score an answer of its own, and the
//! gate's own code judges it, offer by offer, before it learns the verdict. Every person has a new
//! gate. The same is done with the log-probs of the model that made the offers.

mod developer;
mod figures;
mod fit;
mod looks;
mod offers;
mod play;
mod scores;
mod table;
mod verdicts;

use crate::bench;
use anyhow::{Context, Result, ensure};
use developer::Developer;
use figures::Figures;
use fit::Person;
use hone::cli::gate_log::{read_prior, write_prior};
use looks::Looks;
use offers::{View, offers};
use play::play;
use policy::gate::features::NAMES;
use policy::gate::prior::{self, Prior};
use scores::Scores;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use verdicts::{Read, Verdict};

#[derive(clap::Args)]
pub struct Arguments {
    /// Verdicts of people, as JSON lines
    #[arg(long, value_name = "FILE")]
    verdicts: PathBuf,
    /// The model that is served, from `hone model list`
    #[arg(long, default_value = bench::MODEL, value_name = "NAME")]
    model: String,
    /// Only by the log-probs of the model that made the offers, which takes a second
    #[arg(long)]
    recorded_only: bool,
    /// Leave out offers of several lines
    #[arg(long)]
    one_line: bool,
    /// The file of the prior that the gate starts from, instead of the shipped one
    #[arg(long, value_name = "FILE")]
    prior: Option<PathBuf>,
    /// Write a prior fitted to these people here. The figures are then those of each person under
    /// a prior that was fitted to the others
    #[arg(long, value_name = "FILE")]
    fit: Option<PathBuf>,
    /// Fit the developer of `hone rehearse --developer person` to these people
    #[arg(long, conflicts_with_all = ["prior", "fit", "one_line"])]
    developer: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let prior = match &arguments.prior {
        Some(path) => {
            let missing = || format!("{}: there is no such file", path.display());
            read_prior(path)?.with_context(missing)?
        }
        None if arguments.fit.is_some() => fit::rehearsed(),
        None => prior::shipped(),
    };
    let read = Read::file(&arguments.verdicts)?;
    read.faults.iter().for_each(|fault| eprintln!("{fault}"));
    let named = arguments.verdicts.display();
    ensure!(!read.verdicts.is_empty(), "{named}: it holds no verdict that can be read");
    if arguments.developer {
        let fitted = json!({ "developer": Developer::fit(&read.verdicts) });
        return bench::print(&fitted, arguments.json, table::developer);
    }
    let scores = scored(arguments, &read.verdicts)?;
    let looks = Looks::of(&read.verdicts);
    let is_wanted = |verdict: &Verdict| !(arguments.one_line && has_several_lines(&verdict.offer));
    let verdicts: Vec<Verdict> = read.verdicts.into_iter().filter(is_wanted).collect();
    let served = offers(&verdicts, View::Served, scores.as_ref());
    let recorded = offers(&verdicts, View::Recorded, scores.as_ref());
    let people: BTreeSet<u64> = recorded.iter().map(|offer| offer.person).collect();
    let unrecorded = verdicts.iter().filter(|verdict| verdict.recorded.is_none()).count();
    let mut report = json!({
        "people": people.len(),
        "left_out": read.faults.len(),
        "without_recorded_log_probs": unrecorded,
        "by_time_on_screen": looks,
    });
    let judged = match &arguments.fit {
        None => [play(&served, &prior), play(&recorded, &prior)],
        Some(path) => {
            let people = Person::all(served, recorded);
            let freedom = fit::choose(&people, &prior);
            let all: Vec<&Person> = people.iter().collect();
            let fitted = fit::fit(&all, &prior, freedom);
            write_prior(&fitted, path)?;
            report["freedom"] = json!(freedom);
            report["weights"] = json!(weights(&fitted));
            fit::left_out(&people, &prior, freedom)
        }
    };
    let [served, recorded] = judged.map(|judged| Figures::of(&judged));
    report["served"] = json!(scores.map(|_| served));
    report["recorded"] = json!(recorded);
    bench::print(&report, arguments.json, table::verdicts)
}

/// Each weight's name, mean and deviation.
fn weights(prior: &Prior) -> Vec<(&'static str, f64, f64)> {
    let numbers = prior.mean.into_iter().zip(prior.deviation);
    NAMES.into_iter().zip(numbers).map(|(name, (mean, wide))| (name, mean, wide)).collect()
}

/// Returns the scores by the served model, which are kept, because a model needs minutes for them.
fn scored(arguments: &Arguments, verdicts: &[Verdict]) -> Result<Option<Scores>> {
    if arguments.recorded_only {
        return Ok(None);
    }
    let model = bench::model(&arguments.model)?;
    let sha256 =
        models::file::sha256(&model).with_context(|| format!("cannot read {}", model.display()))?;
    let mut scores = Scores::open(&bench::folder("people")?.join("scores.jsonl"), &sha256)?;
    let window = settings::Config::default().lab.window();
    scores.complete(verdicts, &model, window)?;
    Ok(Some(scores))
}

fn has_several_lines(offer: &str) -> bool {
    offer.trim_matches('\n').contains('\n')
}
