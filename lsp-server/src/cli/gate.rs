//! `hone gate`, `hone trial`: what the fast learner knows, and what a trial can
//! tell apart.

use crate::cli::inspect;
use crate::gate::features::FEATURES;
use crate::gate::prior::Prior;
use crate::gate::{Gate, GateStatus};
use crate::home::Home;
use crate::trial::simulation::{EFFECTS, operate};
use anyhow::{Context, Result};
use comfy_table::{Table, presets};
use feedback::episode::{Fold, Judged};
use feedback::event::EventKind;
use feedback::log::EventLog;
use feedback::reward::VALUE;
use feedback::sled_log::SledLog;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub struct GateArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Replay the log of a home in which every offer was shown, and print what
    /// the gate would have held back at several thresholds
    #[arg(long, value_name = "HOME")]
    replay: Vec<PathBuf>,
    /// Fit the prior that is shipped to the logs of these homes (developers)
    #[arg(long, value_name = "HOME", hide = true)]
    fit: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct TrialArgs {
    /// Simulate trials of candidates with known effects, and print how they end
    #[arg(long)]
    simulate: bool,
    /// Share of the incumbent's offers that the simulated user takes
    #[arg(long, default_value_t = 0.3, value_name = "RATE", requires = "simulate")]
    accept_rate: f64,
    /// Trials of each effect
    #[arg(long, default_value_t = 2000, value_name = "N", requires = "simulate")]
    runs: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Thresholds of the replay's table, in P(taken).
const THRESHOLDS: [f32; 8] = [0.0, 0.05, 0.1, 0.15, 0.2, VALUE, 0.35, 0.5];

/// Variance a shipped weight is given beside what the fit leaves: users differ.
const BETWEEN_USERS: f64 = 0.3;

pub async fn gate(home: &Home, args: GateArgs) -> Result<()> {
    if !args.fit.is_empty() {
        return fit(&args.fit);
    }
    if !args.replay.is_empty() {
        return replay(&args.replay, args.json);
    }
    let status = inspect::current(home).await?;
    let gate = status.evidence.gate.context("this daemon is older and has no gate")?;
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&gate)?),
        false => println!("{}", screen(&gate)),
    }
    Ok(())
}

fn screen(gate: &GateStatus) -> String {
    let mut weights = Table::new();
    weights.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    weights.set_header(["feature", "weight", "±"]);
    let mut sorted: Vec<_> = gate.weights.iter().collect();
    sorted.sort_by(|a, b| b.mean.abs().total_cmp(&a.mean.abs()));
    for weight in sorted {
        let number = |value: f64| format!("{value:+.2}");
        let deviation = format!("{:.2}", weight.deviation);
        weights.add_row([weight.feature.clone(), number(weight.mean), deviation]);
    }
    let mut calibration = Table::new();
    calibration.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    calibration.set_header(["predicted", "offers", "mean prediction", "taken"]);
    for (tenth, bin) in gate.calibration.bins.iter().enumerate().filter(|(_, b)| b.labels > 0) {
        let mean = |sum: f64| format!("{:.0} %", 100.0 * sum / bin.labels as f64);
        calibration.add_row([
            format!("{}–{} %", 10 * tenth, 10 * tenth + 10),
            bin.labels.to_string(),
            mean(bin.predicted),
            mean(bin.taken),
        ]);
    }
    format!(
        "The gate shows an offer where P(taken) is worth it: {:.0} % and more.\n\
         {} labels learned; a weight above zero speaks for showing.\n{weights}\n\
         Each prediction was made before its label was known:\n{calibration}",
        100.0 * VALUE,
        gate.labels
    )
}

/// Verdicts of a home's log, in order, each with what the fold says of it.
fn verdicts(home: &Path) -> Result<Vec<Judged>> {
    let log = SledLog::open(&Home::at(home.to_owned()).event_log())?;
    let mut fold: Option<Fold> = None;
    let mut verdicts = vec![];
    log.scan(0, &mut |event| {
        if let (None, EventKind::Completion(first)) = (&fold, &event.kind) {
            fold = Some(Fold::new(crate::daemon::REWARD, &first.model_sha256, None));
        }
        verdicts.extend(fold.as_mut().and_then(|fold| fold.apply(&event)));
        ControlFlow::Continue(())
    })?;
    Ok(verdicts)
}

fn replay(homes: &[PathBuf], json: bool) -> Result<()> {
    let mut predicted = vec![];
    for home in homes {
        let mut gate = Gate::default();
        for judged in verdicts(home)? {
            if let Some(probability) = gate.probability_of(&judged) {
                predicted.push((probability as f32, judged.reward.max(0.0), judged.offer_utf16));
            }
            gate.learn(&judged);
        }
    }
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["shown from P", "shown", "fewer", "taken", "characters kept"]);
    let characters = |from: f32| -> f32 {
        let shown = predicted.iter().filter(|(p, _, _)| *p >= from);
        shown.map(|(_, reward, length)| reward * *length as f32).sum()
    };
    let mut rows = vec![];
    for from in THRESHOLDS {
        let shown: Vec<_> = predicted.iter().filter(|(p, _, _)| *p >= from).collect();
        let taken: f32 = shown.iter().map(|(_, reward, _)| reward).sum();
        let row = [
            from,
            shown.len() as f32,
            1.0 - shown.len() as f32 / predicted.len().max(1) as f32,
            taken / shown.len().max(1) as f32,
            characters(from) / characters(0.0).max(1.0),
        ];
        let percent = |share: f32| format!("{:.1} %", 100.0 * share);
        table.add_row([
            format!("{from:.2}"),
            shown.len().to_string(),
            percent(row[2]),
            percent(row[3]),
            percent(row[4]),
        ]);
        rows.push(row);
    }
    match json {
        true => println!("{}", serde_json::to_string(&rows)?),
        false => println!("{table}"),
    }
    Ok(())
}

fn fit(homes: &[PathBuf]) -> Result<()> {
    let mut gate = Gate::with_prior(&Prior { mean: [0.0; FEATURES], deviation: [1.0; FEATURES] });
    for home in homes {
        verdicts(home)?.iter().for_each(|judged| gate.learn(judged));
    }
    let status = gate.status();
    println!("// Fitted to {} verdicts.", status.labels);
    for weight in status.weights {
        let deviation = (weight.deviation.powi(2) + BETWEEN_USERS.powi(2)).sqrt();
        println!("({:.2}, {deviation:.2}), // {}", weight.mean, weight.feature);
    }
    Ok(())
}

pub async fn trial(home: &Home, args: TrialArgs) -> Result<()> {
    if args.simulate {
        return simulate(&args);
    }
    let evidence = inspect::current(home).await?.evidence;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&(evidence.trial, evidence.last_trial))?);
        return Ok(());
    }
    let lines = crate::status::trial_lines(&evidence);
    match lines.is_empty() {
        true => println!("no trial yet: the next update begins one"),
        false => println!("{}", lines.join("\n")),
    }
    Ok(())
}

fn simulate(args: &TrialArgs) -> Result<()> {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "true effect",
        "promoted",
        "given up",
        "undecided",
        "offers (median)",
        "offers (95 %)",
    ]);
    let mut operations = vec![];
    for (seed, effect) in EFFECTS.into_iter().enumerate() {
        let operation = operate(effect, args.accept_rate, args.runs, seed as u64);
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        table.add_row([
            format!("{:+.0} %", 100.0 * effect),
            percent(operation.promoted),
            percent(operation.dropped),
            percent(operation.undecided),
            operation.offers_p50.to_string(),
            operation.offers_p95.to_string(),
        ]);
        operations.push(operation);
    }
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&operations)?),
        false => println!(
            "{} trials of each effect on a {:.0} % accept rate, verdicts alone:\n{table}",
            args.runs,
            100.0 * args.accept_rate
        ),
    }
    Ok(())
}
