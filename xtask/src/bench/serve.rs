//! `cargo xtask bench serve`: a completion at every keystroke, by Hone and by a llama-server on
//! the same model, or by another Hone.

use super::table::Table;
use crate::workspace::Workspace;
use anyhow::Result;
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;

/// These files are younger than the models, so no model has seen them in training.
pub(super) const TYPED: [&str; 4] = [
    "learner/src/ppo/mod.rs",
    "vscode-extension/src/core/supervisor.ts",
    "neovim/lua/hone/session.lua",
    "xtask/bench/peer.py",
];

#[derive(Args)]
pub struct Arguments {
    /// A llama-server that gets every request too
    #[arg(long, value_name = "PATH")]
    peer: Option<PathBuf>,
    /// Another `hone` that types each file too, such as one of an earlier version
    #[arg(long, value_name = "PATH", conflicts_with = "peer")]
    against: Option<PathBuf>,
    /// A line of the other Hone's config.toml. Without --against, the other one is this Hone
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "peer")]
    against_set: Vec<String>,
    /// A model from `hone model list`
    #[arg(long, default_value = "qwen2.5-coder-0.5b", value_name = "NAME")]
    model: String,
    /// Keys that are typed in each file
    #[arg(long, default_value_t = 60, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    keys: u32,
    /// Milliseconds between an answer and the next key
    #[arg(long, default_value_t = 15, value_name = "MS")]
    pause: u64,
    /// Requests that an edit supersedes: half of them while the prompt is computed, half
    /// while tokens are decoded
    #[arg(long, default_value_t = 60, value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=10_000))]
    superseded: u32,
    /// Ask Hone over HTTP by `/infill`, as a llama-server is asked
    #[arg(long, conflicts_with = "against")]
    infill: bool,
    /// A line of Hone's config.toml; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The files to type [default: four of this repository]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    super::build(workspace)?;
    let model = super::pull(workspace, Some(&arguments.model))?;

    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    eprintln!("── a completion at every key, {threads} thread(s)");
    let mut serve = super::example(workspace, "serve");
    serve.current_dir(&workspace.root).args(["--model", &arguments.model]);
    serve.args(["--keys", &arguments.keys.to_string(), "--threads", &threads.to_string()]);
    serve.args(["--superseded", &arguments.superseded.to_string()]);
    for line in &arguments.set {
        serve.args(["--set", line]);
    }
    if let Some(peer) = &arguments.peer {
        serve.arg("--peer").arg(std::path::absolute(peer)?).arg("--gguf").arg(model);
    }
    serve.args(["--pause", &arguments.pause.to_string()]);
    if arguments.infill {
        serve.arg("--infill");
    }
    match &arguments.against {
        Some(hone) => drop(serve.arg("--against").arg(std::path::absolute(hone)?)),
        None if arguments.against_set.is_empty() => {}
        None => drop(serve.arg("--against").arg(workspace.binary("hone"))),
    }
    for line in &arguments.against_set {
        serve.args(["--against-set", line]);
    }
    if arguments.files.is_empty() {
        serve.args(TYPED);
    }
    for file in &arguments.files {
        serve.arg(std::path::absolute(file)?);
    }
    super::print(&super::measure(&mut serve)?, arguments.json, table)
}

/// A row's label and key, and its digits behind the point.
const ROWS: [(&str, &str, usize); 9] = [
    ("p50 ms", "p50_ms", 1),
    ("p95 ms", "p95_ms", 0),
    ("mean ms", "mean_ms", 1),
    ("cold (first key in a file) ms", "cold_ms", 0),
    ("first token, warm prompt, ms", "first_token_ms", 1),
    ("one decode step ms", "decode_step_ms", 1),
    ("right characters a request", "right_chars_per_request", 2),
    ("right characters an offer", "right_chars_per_offer", 2),
    ("offers that are the whole truth", "wholly_right", 0),
];

fn table(measured: &Value) -> String {
    let (other, name) = if measured["against"].is_null() {
        ("llama_server", "llama-server")
    } else {
        ("against", "other Hone")
    };
    let mut table = Table::new(["", "Hone", name, "ratio"]);
    for (label, key, digits) in ROWS {
        let cell = |side: &str, digits: usize| {
            let number = measured[side][key].as_f64();
            number.map_or(String::new(), |number| format!("{number:.digits$}"))
        };
        table.row(label, [cell("hone", digits), cell(other, digits), cell("ratios", 3)]);
    }
    let count = |key: &str| measured["hone"][key].as_u64().unwrap_or_default();
    let (requests, computed) = (count("requests"), count("computed"));
    let text = format!("{table}\n  {requests} requests, {computed} of which went to the model");
    if measured["superseded"].is_null() {
        return text;
    }
    let heads = ["requests", "p50 ms", "p95 ms", "max ms"];
    let first = "superseded request to free engine";
    let mut superseded = Table::new([first].into_iter().chain(heads));
    for (label, part) in [
        ("  while the prompt is read", "prompt_is_read"),
        ("  while tokens are decoded", "tokens_are_decoded"),
        ("  both", "all"),
    ] {
        let keys = [("samples", 0), ("p50_ms", 1), ("p95_ms", 1), ("max_ms", 1)];
        superseded.numbers(label, &measured["superseded"][part], &keys);
    }
    format!("{text}\n{superseded}")
}
