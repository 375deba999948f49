//! `hone gate`: what the gate has learned.

use crate::cli::gate_log::{BETWEEN_USERS, as_prior, verdicts};
use crate::cli::inspect;
use crate::cli::output;
use crate::cli::settings::Configured;
use adapters::gate_prior;
use anyhow::{Context, Result, ensure};
use host::paths::Paths;
use policy::gate::{Gate, GateStatus};
use report::layout::{Column, Layout};
use serde_json::json;
use std::path::{Path, PathBuf};

const WEIGHTS: [Column; 3] =
    [Column::Text("feature"), Column::Number("weight"), Column::Number("±")];

const CALIBRATION: [Column; 4] = [
    Column::Text("predicted"),
    Column::Number("offers"),
    Column::Number("mean prediction"),
    Column::Number("accepted"),
];

#[derive(Debug, clap::Args)]
pub struct GateArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Have this home's gate start from what the verdicts in the log of another
    /// home teach it; `hone rehearse --adopt` does so
    #[arg(long, value_name = "HOME", hide = true)]
    adopt: Option<PathBuf>,
}

pub async fn gate(home: &Paths, args: GateArgs) -> Result<()> {
    if let Some(from) = &args.adopt {
        return adopt(home, from, args.json).await;
    }
    let status = inspect::current(home).await?;
    let gate = status.evidence.gate.context("this daemon is older and has no gate")?;
    if args.json {
        emit!("{}", serde_json::to_string_pretty(&gate)?)?;
    } else {
        let threshold = Configured::read(home).config.gate_threshold("");
        say!("{}", screen(&gate, threshold, output::layout()))?;
    }
    Ok(())
}

fn screen(gate: &GateStatus, threshold: f64, layout: Layout) -> String {
    let mut sorted: Vec<_> = gate.weights.iter().collect();
    sorted.sort_by(|a, b| b.mean.abs().total_cmp(&a.mean.abs()));
    let weights: Vec<_> = sorted
        .iter()
        .map(|weight| {
            let deviation = format!("{:.2}", weight.deviation);
            vec![weight.feature.clone(), format!("{:+.2}", weight.mean), deviation]
        })
        .collect();
    let weights = layout.table(&WEIGHTS, &weights);
    let bins = gate.calibration.bins.iter().enumerate().filter(|(_, bin)| bin.labels > 0);
    let calibration: Vec<_> = bins
        .map(|(tenth, bin)| {
            let mean = |sum: f64| format!("{:.0} %", 100.0 * sum / bin.labels as f64);
            let range = format!("{}–{} %", 10 * tenth, 10 * tenth + 10);
            vec![range, bin.labels.to_string(), mean(bin.predicted), mean(bin.accepted)]
        })
        .collect();
    let mut text = format!(
        "The gate shows an offer if the chance that you accept it is at least {:.0} % \
         (completion.eagerness).\n{} learned; a weight above zero speaks for showing.\n\n\
         {weights}",
        100.0 * threshold,
        printable::count(gate.labels, "label")
    );
    if !calibration.is_empty() {
        text.push_str("\n\nEach prediction was made before its label was known:\n\n");
        text.push_str(&layout.table(&CALIBRATION, &calibration));
    }
    layout.wrapped(&text)
}

async fn adopt(home: &Paths, from: &Path, json: bool) -> Result<()> {
    ensure!(
        Paths::at(from.to_owned()).event_log().exists(),
        "{}: no home of Hone, or nothing was offered in it",
        from.display()
    );
    home.create()?;
    let mut gate = Gate::default();
    verdicts(from)?.iter().for_each(|judged| gate.learn(judged));
    let (prior, labels) = as_prior(&gate, BETWEEN_USERS);
    gate_prior::save(&prior, &home.adapters())?;
    let is_later = inspect::current(home).await?.daemon.is_some();
    if json {
        return emit!("{}", json!({ "verdicts": labels, "at_next_start": is_later }));
    }
    let when =
        if is_later { "; it does from the daemon's next start on (`hone restart`)" } else { "" };
    say!("the gate starts from {}{when}", printable::count(labels, "verdict"))
}
