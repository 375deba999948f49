//! `cargo xtask bench`: measured, side by side with a peer where there is one.

mod beside;
mod learn;
mod overhead;
mod peer;
mod quality;
mod serve;
mod sweep;

use crate::workspace::Workspace;
use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum Command {
    /// A training step against torch + PEFT on the same model and tokens
    ///
    /// Installs torch and PEFT into a virtual environment of their own under
    /// `target/` (some gigabytes, once). Steps of both sides take turns, on the
    /// same number of threads; medians and their ratios are reported.
    Learn(learn::Arguments),
    /// Completions while the learner works, against completions while it does not
    ///
    /// One editor types a file of this repository into a real daemon; rounds beside
    /// an update and rounds with learning paused take turns.
    Beside(beside::Arguments),
    /// A completion at every key of a typed file, against a llama-server
    ///
    /// Both sides serve the same model with the same window and get every request
    /// in turns; without `--peer` Hone is measured alone.
    Serve(serve::Arguments),
    /// What the server itself costs a key, without a model: fifty editors at once
    ///
    /// Real connections and a real event log, on an engine that answers at once; the
    /// time from writing a key's change and request to having read the answer.
    Overhead(overhead::Arguments),
    /// HumanEval's solutions with a line, or half of one, missing
    ///
    /// Exact match, edit similarity, and the share of offers that are a beginning
    /// of the truth: as installed, and with one setting changed at a time.
    Quality(quality::Arguments),
    /// The learner's numbers, one changed at a time, over the same commits
    ///
    /// Rehearses on the repositories once for each value: hours, five minutes or so
    /// for each 200 places of each. Stopped, the same command goes on.
    Sweep(sweep::Arguments),
}

pub fn run(workspace: &Workspace, command: &Command) -> Result<()> {
    match command {
        Command::Learn(arguments) => learn::run(workspace, arguments),
        Command::Beside(arguments) => beside::run(workspace, arguments),
        Command::Serve(arguments) => serve::run(workspace, arguments),
        Command::Overhead(arguments) => overhead::run(workspace, arguments),
        Command::Quality(arguments) => quality::run(workspace, arguments),
        Command::Sweep(arguments) => sweep::run(workspace, arguments),
    }
}

/// The middle value; of an even number, the mean of the middle two.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_even_counts_is_between_the_middle_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
