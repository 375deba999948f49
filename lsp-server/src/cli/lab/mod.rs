//! `hone lab`: commands that only experiments need. `hone --help` does not list them.

pub mod gate;
pub mod texts;
pub mod trial;

use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum LabCommand {
    /// Ask the logs of other homes what a gate would have held back, or fit a prior to them
    Gate(gate::GateArgs),
    /// Simulate trials of candidates with known effects, and print how they end
    Trial(trial::TrialArgs),
    /// Turn written texts into episodes, as if nothing had been offered where they were written
    Texts(texts::TextsArgs),
}

pub fn run(command: LabCommand) -> Result<()> {
    match command {
        LabCommand::Gate(args) => gate::run(&args),
        LabCommand::Trial(args) => trial::run(&args),
        LabCommand::Texts(args) => texts::run(&args),
    }
}
