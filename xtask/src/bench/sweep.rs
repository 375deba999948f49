//! `cargo xtask bench sweep`: the effect of each of the learner's settings. One is changed at a
//! time, over the same commits.

use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::process::Command;

#[derive(Args)]
pub struct Arguments {
    /// A git repository; several make one report
    #[arg(long, required = true, value_name = "DIR")]
    repo: Vec<PathBuf>,
    /// Only this author's commits; one for all repositories, or one for each
    #[arg(long, value_name = "TEXT")]
    author: Vec<String>,
    /// Only commits from this day on
    #[arg(long, value_name = "YYYY-MM-DD")]
    since: Option<String>,
    /// Places in each repository
    #[arg(long, default_value_t = 200, value_name = "N")]
    limit: u32,
    /// The setting to vary [default: all]
    #[arg(long, value_name = "AXIS")]
    axis: Vec<Axis>,
    /// Keep results in this folder, and go on from those that are there
    #[arg(long, value_name = "DIR", default_value = "target/bench/sweep")]
    work: PathBuf,
    /// Write the report to this file as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Axis {
    LearningRate,
    Rank,
    Batch,
    /// V, the value of making no offer
    Baseline,
    Clip,
    Replay,
    Demonstrations,
    /// Labels alone, demonstrations alone, and the expectation of GRPO's groups
    Objective,
}

impl Axis {
    /// The arms: for each its name, and the settings that differ from the defaults.
    fn arms(self) -> Vec<(String, String)> {
        let each = |name: &str, values: &[&str], settings: &dyn Fn(&str) -> String| {
            values.iter().map(|value| (format!("{name} {value}"), settings(value))).collect()
        };
        match self {
            // The limit on the change of one update would hide the effect of the rate, so it is
            // wider for all of these, the default rate (1e-4) among them.
            Axis::LearningRate => each("rate", &["3e-5", "1e-4", "3e-4", "1e-3"], &|value| {
                format!("lab.ppo.learning_rate={value},lab.ppo.max_update_ratio=0.3")
            }),
            // Alpha changes with the rank, so that the update keeps its scale.
            Axis::Rank => each("rank", &["4", "32"], &|value| {
                let alpha = 2.0 * value.parse().unwrap_or(0.0);
                format!("lab.ppo.lora_rank={value},lab.ppo.lora_alpha={alpha:.1}")
            }),
            Axis::Batch => {
                each("batch", &["8", "32"], &|value| format!("learning.batch_episodes={value}"))
            }
            Axis::Baseline => {
                each("V", &["0.1", "0.4"], &|value| format!("lab.ppo.baseline={value}"))
            }
            Axis::Clip => each("clip", &["0.1", "0.4"], &|value| {
                format!("lab.ppo.clip_low={value},lab.ppo.clip_high={value}")
            }),
            Axis::Replay => {
                each("replay", &["16", "64"], &|value| format!("lab.replay_episodes={value}"))
            }
            Axis::Demonstrations => each("demonstrations", &["0.3", "3.0"], &|value| {
                format!("lab.ppo.demonstration_coefficient={value}")
            }),
            Axis::Objective => objectives(),
        }
    }
}

/// A rehearsal knows the line y that was written, so it can compute the expectation that a group
/// of samples estimates. For the reward [sample = y], REINFORCE follows ∂π(y) = π ∂ln π. GRPO
/// divides by the group's deviation √(π(1 − π)) and follows √(π / (1 − π)) ∂ln π. It is taken as
/// √π ∂ln π here, because ∂ln π vanishes like 1 − π where π is near 1.
fn objectives() -> Vec<(String, String)> {
    let demonstrations = |exponent: &str| {
        format!("lab.ppo.policy_coefficient=0.0,lab.ppo.demonstration_exponent={exponent}")
    };
    let labels = "lab.ppo.demonstration_coefficient=0.0";
    let faster = "lab.ppo.learning_rate=3e-4,lab.ppo.max_update_ratio=0.3";
    [
        ("PPO alone", labels.to_owned()),
        ("PPO alone at 3e-4", format!("{labels},{faster}")),
        ("demonstrations alone", demonstrations("0.0")),
        ("GRPO expected", demonstrations("0.5")),
        ("REINFORCE expected", demonstrations("1.0")),
    ]
    .map(|(name, settings)| (name.to_owned(), settings))
    .to_vec()
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::default();
    steps.run("build", &mut workspace.cargo_build())?;
    super::pull(workspace, &mut steps, None)?;

    let mut rehearse = Command::new(workspace.binary("hone-rehearse"));
    rehearse
        .env("HONE_HOME", super::home(workspace))
        .args(["--limit", &arguments.limit.to_string()]);
    rehearse.arg("--work").arg(&arguments.work).arg("--keep-prompts");
    if let Some(since) = &arguments.since {
        rehearse.args(["--since", since]);
    }
    if let Some(report) = &arguments.report {
        rehearse.arg("--report").arg(report);
    }
    for repo in &arguments.repo {
        rehearse.arg("--repo").arg(repo);
    }
    for author in &arguments.author {
        rehearse.args(["--author", author]);
    }
    // Each update that passes the holdout check serves, and no gate hides its effect.
    rehearse.args(["--arm", "frozen", "--arm", "shipped=ppo-demo"]);
    let axes = if arguments.axis.is_empty() { Axis::value_variants() } else { &arguments.axis };
    for (name, settings) in axes.iter().flat_map(|axis| axis.arms()) {
        rehearse.args(["--arm", &format!("{name}=ppo-demo,{settings}")]);
    }
    let status = rehearse.status()?;
    ensure!(status.success(), "the rehearsal failed ({status})");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_could_be_read_as_a_setting() {
        let arms: Vec<_> = Axis::value_variants().iter().flat_map(|axis| axis.arms()).collect();
        assert!(!arms.is_empty());
        for (name, _) in arms {
            assert!(!name.contains([',', '=']), "{name}");
        }
    }
}
