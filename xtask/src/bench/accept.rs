//! `cargo xtask bench accept`: the time to the next offer after one was accepted.

use super::serve::TYPED;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

/// The names of both sides, what they are called, and whether the next answer is computed while an
/// offer is read, as it is as installed.
const SIDES: [(&str, &str, bool); 2] =
    [("as_installed", "as installed", true), ("not_ahead", "nothing computed ahead", false)];

#[derive(Args)]
pub struct Arguments {
    /// A model from `hone model list`
    #[arg(long, default_value = "qwen2.5-coder-0.5b", value_name = "NAME")]
    model: String,
    /// Lines that are typed in each file
    #[arg(long, default_value_t = 30, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    lines: u32,
    /// How long an offer is read before it is accepted
    #[arg(long, default_value_t = 700, value_name = "MS",
          value_parser = clap::value_parser!(u32).range(0..=60_000))]
    read_ms: u32,
    /// A line of Hone's config.toml; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut steps = super::build(workspace)?;
    super::pull(workspace, &mut steps, Some(&arguments.model))?;
    let mut measured = json!({ "read_ms": arguments.read_ms });
    for (side, _, ahead) in SIDES {
        eprintln!("── lab.compute_ahead = {ahead}");
        let mut typist = super::example(workspace, "after_accept");
        typist.current_dir(&workspace.root).args(["--model", &arguments.model]);
        typist.args(["--lines", &arguments.lines.to_string()]);
        typist.args(["--read-ms", &arguments.read_ms.to_string()]);
        typist.args(["--set", &format!("lab.compute_ahead = {ahead}")]);
        for line in &arguments.set {
            typist.args(["--set", line]);
        }
        measured[side] = super::measure(typist.args(TYPED))?;
    }
    super::print(&measured, arguments.json, table)
}

fn table(measured: &Value) -> String {
    let head = format!("offers are read for {} ms", measured["read_ms"]);
    let mut lines =
        vec![format!("  {head:<44}{:>8}{:>10}{:>10}{:>10}", "count", "p50 ms", "p95 ms", "max ms")];
    for (side, label, _) in SIDES {
        lines.push(format!("  {label}"));
        for (place, key) in
            [("after an accept", "after_accept"), ("after the line break", "after_line_break")]
        {
            for (kind, part) in [("all answers", "all"), ("those with an offer", "offers")] {
                let of = &measured[side][key][part];
                let number = |name: &str| of[name].as_f64().unwrap_or(f64::NAN);
                let label = format!("  {place}, {kind}");
                lines.push(format!(
                    "  {label:<44}{:>8}{:>10.1}{:>10.1}{:>10.1}",
                    number("count"),
                    number("p50_ms"),
                    number("p95_ms"),
                    number("max_ms")
                ));
            }
        }
        let step = measured[side]["decode_step_ms"].as_f64().unwrap_or(f64::NAN);
        lines.push(format!("    one decode step: {step:.1} ms"));
    }
    lines.join("\n")
}
