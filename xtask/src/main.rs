//! `cargo xtask`: the commands of this project, such as `cargo xtask test`.

mod bench;
mod check_macos;
mod check_windows;
mod demo;
mod dist;
mod docs;
mod editors;
mod files;
mod gpu_bundle;
mod hardware;
mod junit;
mod layers;
mod lints;
mod mirror;
mod nextest;
mod packages;
mod picture;
mod platform;
mod smoke;
mod soak;
mod step;
mod suite;
mod summary;
mod supply;
mod team;
mod versions;
mod workflows;
mod workspace;

use anyhow::Result;
use clap::Parser;
use std::process::ExitCode;
use workspace::Workspace;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// See Hone learn: build it, fetch the model, and rehearse on a repository
    /// in front of your eyes (about eleven minutes on two cores, the build included)
    Demo(demo::Arguments),
    /// Run what CI runs: format, lints, every test, with the real models
    Test(suite::Arguments),
    /// Build the book, check the links of every document, and check the pages that are
    /// made from the programs
    Docs(docs::Arguments),
    /// Check that the programs still compile for Windows
    CheckWindows,
    /// Check that the programs' Rust code still compiles for macOS, as far as Linux can tell
    CheckMacos,
    /// Hold the imports between modules and crates to the tables in ARCHITECTURE.md
    Layers,
    /// Run the tests of faults, hostile input and load in their long form (hours)
    Soak(soak::Arguments),
    /// Measure Hone side by side with a peer
    #[command(subcommand, after_help = bench::OTHERS)]
    Bench(bench::Command),
    /// Make what a release has for one target: archive, wheel, Debian package, VS Code
    /// packages, bill of materials, checksums
    Dist(dist::Arguments),
    /// Build for a GPU and have one completion computed there
    Smoke(smoke::Arguments),
    /// Make a bundle that measures Hone on a machine with an NVIDIA GPU and without Rust
    GpuBundle(gpu_bundle::Arguments),
    /// Record the moving pictures of VS Code: a real editor, the real server, the default model
    /// (two minutes each after the build, on a machine that does nothing else)
    Picture(picture::Arguments),
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let result = if lints::is_compiler(&arguments) {
        lints::compile(&arguments)
    } else {
        run(Command::parse())
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let workspace = Workspace::find()?;
    match command {
        Command::Demo(arguments) => demo::run(&workspace, &arguments),
        Command::Test(arguments) => suite::run(&workspace, &arguments),
        Command::Docs(arguments) => docs::run(&workspace, &arguments),
        Command::CheckMacos => check_macos::run(&workspace),
        Command::CheckWindows => check_windows::run(&workspace),
        Command::Layers => layers::run(&workspace),
        Command::Soak(arguments) => soak::run(&workspace, &arguments),
        Command::Bench(command) => bench::run(&workspace, &command),
        Command::Dist(arguments) => dist::run(&workspace, &arguments),
        Command::Smoke(arguments) => smoke::run(&workspace, &arguments),
        Command::GpuBundle(arguments) => gpu_bundle::run(&workspace, &arguments),
        Command::Picture(arguments) => picture::run(&workspace, &arguments),
    }
}
