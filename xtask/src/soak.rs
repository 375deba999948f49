//! `cargo xtask soak`: the tests that have a long form, in their long form.

use crate::packages;
use crate::step::Steps;
use crate::suite;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;

/// In the name of every test that has a long form.
const LONG: &str = "soak_";

#[derive(Args)]
pub struct Arguments {
    /// How much of the long form: 0.1 is a tenth of its rounds
    #[arg(long, default_value_t = 1.0)]
    share: f64,
    /// Draw what an earlier run drew; each test prints its own
    #[arg(long)]
    seed: Option<u64>,
    /// Only the tests with this in their names
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
