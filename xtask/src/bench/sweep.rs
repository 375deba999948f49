//! `cargo xtask bench sweep`: what each of the learner's numbers is worth, one
//! changed at a time, over the same commits.

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
    /// What is varied [default: everything]
    #[arg(long, value_name = "AXIS")]
    axis: Vec<Axis>,
    /// Keep what is done in this folder, and go on from there
    #[arg(long, value_name = "DIR", default_value = "target/bench/sweep")]
    work: PathBuf,
    /// Write the report there as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Axis {
    LearningRate,
    Rank,
    Batch,
    /// V, the reward that silence is worth
    Baseline,
    Clip,
    Replay,
    Demonstrations,
    /// Verdicts alone, imitation alone, and what GRPO's groups would sample
    Objective,
}

impl Axis {
    /// The arms: a name, and what is unlike the settings as they are shipped.
    fn arms(self) -> Vec<(String, String)> {
        let each = |name: &str, values: &[&str], settings: &dyn Fn(&str) -> String| {
            values.iter().map(|value| (format!("{name} {value}"), settings(value))).collect()
        };
        match self {
            // The limit on one update's change would hide what the rate does: it is wider
            // for all of these, the rate that is shipped (1e-4) among them.
            Axis::LearningRate => each("rate", &["3e-5", "1e-4", "3e-4", "1e-3"], &|value| {
                format!("learning.ppo.learning_rate={value},learning.ppo.max_update_ratio=0.3")
            }),
            // Alpha follows, so that the update is scaled as it was.
            Axis::Rank => each("rank", &["4", "32"], &|value| {
                let alpha = 2.0 * value.parse().unwrap_or(0.0);
                format!("learning.ppo.lora_rank={value},learning.ppo.lora_alpha={alpha:.1}")
            }),
            Axis::Batch => {
                each("batch", &["8", "32"], &|value| format!("learning.batch_episodes={value}"))
            }
            Axis::Baseline => {
                each("V", &["0.1", "0.4"], &|value| format!("learning.ppo.baseline={value}"))
            }
            Axis::Clip => each("clip", &["0.1", "0.4"], &|value| {
                format!("learning.ppo.clip_low={value},learning.ppo.clip_high={value}")
            }),
            Axis::Replay => {
                each("replay", &["16", "64"], &|value| format!("learning.replay_episodes={value}"))
            }
            Axis::Demonstrations => each("demonstrations", &["0.3", "3.0"], &|value| {
                format!("learning.ppo.demonstration_coefficient={value}")
            }),
            Axis::Objective => objectives(),
        }
    }
}

/// A rehearsal knows the line y that was written, and with it the expectation that a
/// group of samples estimates: for the reward [sample = y], REINFORCE goes up ∂π(y) =
/// π ∂ln π, and GRPO, dividing by the group's deviation √(π(1 − π)), up
/// √(π / (1 − π)) ∂ln π. The second is taken as √π ∂ln π: where π nears 1, ∂ln π
/// vanishes like 1 − π.
fn objectives() -> Vec<(String, String)> {
    let imitation = |exponent: &str| {
        format!(
            "learning.ppo.policy_coefficient=0.0,learning.ppo.demonstration_exponent={exponent}"
        )
    };
    let verdicts = "learning.ppo.demonstration_coefficient=0.0";
    let bold = "learning.ppo.learning_rate=3e-4,learning.ppo.max_update_ratio=0.3";
    [
        ("PPO alone", verdicts.to_owned()),
        ("PPO alone at 3e-4", format!("{verdicts},{bold}")),
        ("imitation alone", imitation("0.0")),
        ("GRPO expected", imitation("0.5")),
        ("REINFORCE expected", imitation("1.0")),
    ]
    .map(|(name, settings)| (name.to_owned(), settings))
    .to_vec()
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::default();
    steps.run("build", &mut workspace.cargo_build())?;
    let home = workspace.target.join("test-home");
    let mut pull = Command::new(workspace.binary("hone"));
    steps.run("model", pull.env("HONE_HOME", &home).args(["model", "pull"]))?;

    let mut rehearse = Command::new(workspace.binary("hone-rehearse"));
    rehearse.env("HONE_HOME", &home).args(["--limit", &arguments.limit.to_string()]);
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
    // Each update serves at once, and no gate hides what it does.
    rehearse.args(["--arm", "frozen", "--arm", "shipped=ppo-demo"]);
    let axes = match arguments.axis.is_empty() {
        true => Axis::value_variants(),
        false => &arguments.axis,
    };
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
    fn no_name_is_taken_for_a_setting() {
        let arms: Vec<_> = Axis::value_variants().iter().flat_map(|axis| axis.arms()).collect();
        assert!(!arms.is_empty());
        for (name, _) in arms {
            assert!(!name.contains([',', '=']), "{name}");
        }
    }
}
