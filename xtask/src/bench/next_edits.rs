//! `cargo xtask bench next-edits`: what is offered first where people rated what should come next.

use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

#[derive(Args)]
pub struct Arguments {
    /// Folders of cases lie in it, each with a recording.json and a scoredEdits.json
    #[arg(long, value_name = "DIR")]
    rated: PathBuf,
    /// The model that completes, from `hone model list`
    #[arg(long, default_value = "qwen2.5-coder-0.5b", value_name = "NAME")]
    model: String,
    /// A setting that differs from the installed ones
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut steps = super::build(workspace)?;
    super::pull(workspace, &mut steps, Some(&arguments.model))?;
    let mut lab = Command::new(workspace.binary("hone-lab"));
    super::with_home(workspace, lab.arg("next-edits"));
    lab.args(["--model", &arguments.model]).arg("--rated").arg(&arguments.rated);
    for set in &arguments.set {
        lab.args(["--set", set]);
    }
    super::print(&super::measure(&mut lab)?, arguments.json, table)
}

/// What people said of the first offer.
const CLASSES: [&str; 5] = ["wanted", "acceptable", "bad", "unrated", "silent"];

fn table(measured: &Value) -> String {
    let cases = measured["cases"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = cases
        .iter()
        .map(|case| {
            let (first, name) = (text(&case["first"]), text(&case["case"]));
            format!("{first:<12}{:<18}{name}", text(&case["reason"]))
        })
        .collect();
    let counts =
        CLASSES.map(|class| format!("{class} {}", measured["first"][class].as_u64().unwrap_or(0)));
    lines.push(format!("{} places: {}", measured["places"], counts.join(", ")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::table;
    use serde_json::json;

    #[test]
    fn each_place_has_a_row_and_every_class_a_count() {
        let case = json!({"case": "one", "first": "wanted", "reason": "shown"});
        let measured = json!({"places": 1, "first": {"wanted": 1}, "cases": [case]});
        let expected = "wanted      shown             one\n\
            1 places: wanted 1, acceptable 0, bad 0, unrated 0, silent 0";
        assert_eq!(table(&measured), expected);
    }
}
