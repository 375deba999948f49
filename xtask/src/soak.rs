//! `cargo xtask soak`: runs the long form of the tests that have one.

use crate::packages;
use crate::step::Steps;
use crate::suite;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;

/// The names of the tests that have a long form contain this.
const LONG: &str = "soak_";

#[derive(Args)]
pub struct Arguments {
    /// The share of the long form to run: 0.1 is a tenth of its rounds
    #[arg(long, default_value_t = 1.0)]
    share: f64,
    /// The seed of an earlier run, to repeat it; each test prints its seed
    #[arg(long)]
    seed: Option<u64>,
    /// Run only the tests whose names contain this
    #[arg(default_value = LONG)]
    name: String,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
    let mut steps = Steps::default();
    steps.run("build", &mut workspace.cargo_build())?;
    let models = suite::fetch_models(workspace, &mut steps)?;
    let mut tests = workspace.cargo();
    tests
        .args(["test", "--release", "--workspace", "--", "--nocapture", "--test-threads", "1"])
        .arg(&arguments.name)
        .env("HONE_TEST_MODELS", models)
        .env("HONE_SOAK", arguments.share.to_string());
    if let Some(seed) = arguments.seed {
        tests.env("HONE_SEED", seed.to_string());
    }
    steps.run("soak", &mut tests)?;
    steps.print();
    Ok(())
}
