//! `hone gate`, `hone trial`: what the fast learner knows, and what a trial can
//! tell apart.

mod replay;

use crate::adapters::gate_prior;
use crate::cli::inspect;
use crate::config::Config;
use crate::paths::Home;
use anyhow::{Context, Result, ensure};
use comfy_table::{Table, presets};
use feedback::episode::{Fold, Label};
use feedback::event::EventKind;
use feedback::log::EventLog;
use feedback::sled_log::SledLog;
use policy::gate::features::NAMES;
use policy::gate::prior::{self, Prior};
use policy::gate::{Gate, GateStatus};
use policy::trial::simulation::{EFFECTS, simulate_trials};
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
    /// Fit a prior to the logs of these homes; with --replay, each home is
    /// replayed under a prior fitted to the others
    #[arg(long, value_name = "HOME")]
    fit: Vec<PathBuf>,
    /// Deviation that every weight of the fit is given on top: how far users differ
    #[arg(long, value_name = "DEVIATION", requires = "fit", default_value_t = BETWEEN_USERS)]
    between_users: f64,
    /// Have this home's gate start from what the verdicts in the log of another
    /// home teach it; `hone rehearse --keep` does so
    #[arg(long, value_name = "HOME", conflicts_with_all = ["replay", "fit"])]
    adopt: Option<PathBuf>,
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

/// Deviation a weight is given beside what a fit leaves: users differ.
const BETWEEN_USERS: f64 = 0.2;

pub async fn gate(home: &Home, args: GateArgs) -> Result<()> {
    if !args.replay.is_empty() {
        return replay::replay(&args);
    }
    if !args.fit.is_empty() {
        return print_fit(&args.fit, args.between_users);
    }
    if let Some(from) = &args.adopt {
        return adopt(home, from).await;
    }
    let status = inspect::current(home).await?;
    let gate = status.evidence.gate.context("this daemon is older and has no gate")?;
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&gate)?),
        false => {
            let threshold = Config::load(&home.config_file())?.gate.threshold;
            println!("{}", screen(&gate, threshold));
        }
    }
    Ok(())
}

fn screen(gate: &GateStatus, threshold: f64) -> String {
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
            mean(bin.accepted),
        ]);
    }
    format!(
        "The gate shows an offer where P(taken) is worth it: {:.0} % and more (gate.threshold).\n\
         {} labels learned; a weight above zero speaks for showing.\n{weights}\n\
         Each prediction was made before its label was known:\n{calibration}",
        100.0 * threshold,
        gate.labels
    )
}

/// Verdicts of a home's log, in order, each with what the fold says of it.
fn verdicts(home: &Path) -> Result<Vec<Label>> {
    let log = SledLog::open(&Home::at(home.to_owned()).event_log())?;
    let mut fold: Option<Fold> = None;
    let mut verdicts = vec![];
    log.scan(0, &mut |event| {
        if let (None, EventKind::Completion(first)) = (&fold, &event.kind) {
            fold = Some(Fold::new(feedback::reward::CURRENT, &first.model_sha256, None));
        }
        verdicts.extend(fold.as_mut().and_then(|fold| fold.apply(&event)));
        ControlFlow::Continue(())
    })?;
    Ok(verdicts)
}

/// A prior learned from the logs of some homes, and from how many verdicts.
fn fit(homes: &[PathBuf], between_users: f64) -> Result<(Prior, u64)> {
    let mut gate = Gate::with_prior(&prior::assumed());
    for home in homes {
        verdicts(home)?.iter().for_each(|judged| gate.learn(judged));
    }
    Ok(as_prior(&gate, between_users))
}

/// What a gate knows, as the beginning of another, and from how many verdicts.
fn as_prior(gate: &Gate, between_users: f64) -> (Prior, u64) {
    let status = gate.status();
    let mut prior = prior::assumed();
    for (i, weight) in status.weights.iter().enumerate() {
        prior.mean[i] = weight.mean;
        prior.deviation[i] = weight.deviation.hypot(between_users);
    }
    (prior, status.labels)
}

async fn adopt(home: &Home, from: &Path) -> Result<()> {
    ensure!(
        Home::at(from.to_owned()).event_log().exists(),
        "{}: no home of Hone, or nothing was offered in it",
        from.display()
    );
    home.create()?;
    let mut gate = Gate::default();
    verdicts(from)?.iter().for_each(|judged| gate.learn(judged));
    let (prior, labels) = as_prior(&gate, BETWEEN_USERS);
    gate_prior::save(&prior, &home.adapters())?;
    let when = match inspect::current(home).await?.daemon.is_some() {
        true => "; it does from the daemon's next start on: `hone stop`, and the editor starts it",
        false => "",
    };
    println!("the gate starts from {labels} verdicts{when}");
    Ok(())
}

fn print_fit(homes: &[PathBuf], between_users: f64) -> Result<()> {
    let (prior, labels) = fit(homes, between_users)?;
    println!("// Fitted to {labels} verdicts.");
    for (i, name) in NAMES.iter().enumerate() {
        println!("({:.2}, {:.2}), // {name}", prior.mean[i], prior.deviation[i]);
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
    let lines = crate::report::status::trial_lines(&evidence);
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
        let operation = simulate_trials(effect, args.accept_rate, args.runs, seed as u64);
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
