//! `hone lab`: commands that only experiments need. `hone --help` does not list them.

pub mod edit_gate;
pub mod gate;
pub mod reward;
pub mod texts;
pub mod trial;

use crate::paths::Paths;
use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum LabCommand {
    /// Ask the logs of other homes what a gate would have held back, or fit a prior to them
    Gate(gate::GateArgs),
    /// Replay logs of next edits that were scored, and print what the model's word adds to their
    /// gate
    EditGate(edit_gate::EditGateArgs),
    /// Simulate trials of candidates with known effects, and print how they end
    Trial(trial::TrialArgs),
    /// Show what another reward would have said of the same verdicts
    ///
    /// The log holds what happened, not what it was worth. So a reward can be compared with
    /// the one in use on your own history, before it trains anything.
    Reward(reward::RewardArgs),
    /// Turn written texts into episodes, as if nothing had been offered where they were written
    Texts(texts::TextsArgs),
}

pub async fn run(home: &Paths, command: LabCommand) -> Result<()> {
    match command {
        LabCommand::Gate(args) => gate::run(&args),
        LabCommand::EditGate(args) => edit_gate::run(&args),
        LabCommand::Trial(args) => trial::run(&args),
        LabCommand::Reward(args) => reward::run(home, args).await,
        LabCommand::Texts(args) => texts::run(&args),
    }
}
