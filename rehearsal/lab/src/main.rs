//! The program `hone-lab`: measurements and experiments behind the pages of docs/lab. No package of
//! a release has it.
// Nobody measures on Windows.
#![cfg(unix)]

mod bench;
mod gate;
mod labels;
mod lines;
mod people;
mod places;
mod prequential;
mod quality;
mod rated;
mod scoring;
mod team_parts;
mod texts;
mod trial;
mod written;

use anyhow::Result;
use clap::Parser;

#[derive(Parser)]
#[command(name = "hone-lab", version, about = "Measurements behind docs/lab")]
enum Command {
    /// Ask the logs of other homes what a gate would have held back
    Gate(gate::GateArgs),
    /// Judge people's recorded verdicts by the gate, or fit a prior to them
    ///
    /// Every person begins with a new gate, which judges each offer before it learns the
    /// verdict. The log-probs are those of the served model, and then those of the model
    /// that made the offers. The model's scores are kept in `target/bench/people`.
    People(people::Arguments),
    /// Label the offers of a recorded session, and compare with what the person took
    ///
    /// The offers of the tool that was recorded stand where the engine's would. The session
    /// is played into the server's label rules with nothing but the document, and with the
    /// reports of an editor.
    Labels(labels::Arguments),
    /// Count the lines of real commits that the answers of a request by hand complete
    ///
    /// Computes the answers at places that are drawn from the commits of repositories, and keeps
    /// them in `target/bench/places`. A run that was interrupted continues. With several
    /// models they are compared.
    Places(places::Arguments),
    /// Replay recordings of people, and print how they rated what is offered next
    ///
    /// Recordings are replayed into a daemon, edit by edit, and the next edit is asked for.
    /// Each recording has candidates that people called wanted, acceptable or bad.
    NextEdits(rated::Arguments),
    /// Complete HumanEval's solutions, with a line or half a line missing
    ///
    /// Reports exact matches, edit similarity, and the share of offers that the missing
    /// text begins with: with the default settings, and with one setting changed at a
    /// time.
    Quality(quality::Arguments),
    /// Simulate trials of candidates with known effects, and print how they end
    Trial(trial::TrialArgs),
    /// Turn written texts into episodes, as if nothing had been offered where they were written
    Texts(texts::TextsArgs),
    /// Draw what the authors of some repositories wrote, as texts to learn from
    Written(written::Arguments),
    /// Measure settings of the learner on recorded events, without typing anything again
    Prequential(prequential::Arguments),
    /// Measure what the part of an adapter that a team shares is worth
    TeamParts(team_parts::Arguments),
}

fn main() -> Result<()> {
    match Command::parse() {
        Command::Gate(arguments) => gate::run(&arguments),
        Command::People(arguments) => people::run(&arguments),
        Command::Labels(arguments) => labels::run(&arguments),
        Command::Places(arguments) => places::run(&arguments),
        Command::NextEdits(arguments) => rated::run(&arguments),
        Command::Quality(arguments) => quality::run(&arguments),
        Command::Trial(arguments) => trial::run(&arguments),
        Command::Texts(arguments) => texts::run(&arguments),
        Command::Written(arguments) => written::run(&arguments),
        Command::Prequential(arguments) => prequential::run(&arguments),
        Command::TeamParts(arguments) => team_parts::run(&arguments),
    }
}
