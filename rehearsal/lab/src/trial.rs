//! `hone-lab trial`: what a trial can tell apart, and after how many offers.

mod simulation;

use anyhow::Result;
use comfy_table::{Table, presets};
use simulation::{EFFECTS, simulate_trials};

#[derive(Debug, clap::Args)]
pub struct TrialArgs {
    /// Share of the incumbent's offers that the simulated user accepts
    #[arg(long, default_value_t = 0.3, value_name = "RATE")]
    accept_rate: f64,
    /// Trials of each effect
    #[arg(long, default_value_t = 2000, value_name = "N")]
    runs: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &TrialArgs) -> Result<()> {
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
    if args.json {
        println!("{}", serde_json::to_string_pretty(&operations)?);
    } else {
        println!(
            "{} trials of each effect on a {:.0} % accept rate, verdicts alone:\n{table}",
            args.runs,
            100.0 * args.accept_rate
        );
    }
    Ok(())
}
