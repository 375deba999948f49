//! `cargo xtask bench learn`: an update by phase, and one training step by Hone and by torch +
//! PEFT.

use super::median;
use super::peer::Peer;
use super::table::Table;
use crate::editors::Tools;
use crate::files;
use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The model whose ratios are reported first.
const DEFAULT_MODEL: &str = "qwen2.5-coder-0.5b";
const MODELS: [&str; 2] = [DEFAULT_MODEL, "smollm2-135m"];

/// Wheels without CUDA, which have a tenth of the size. They are used if this index can be
/// reached.
const CPU_WHEELS: &str = "https://download.pytorch.org/whl/cpu";

#[derive(Args)]
pub struct Arguments {
    /// Models from `hone model list`
    #[arg(long, value_name = "NAME", default_values = MODELS)]
    model: Vec<String>,
    /// Turns of each side, after one that warms up
    #[arg(long, default_value_t = 5, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Tokens before the completion
    #[arg(long, default_value_t = 488, value_name = "N",
          value_parser = clap::value_parser!(u32).range(2..=4000))]
    prompt: u32,
    /// Tokens to learn from
    #[arg(long, default_value_t = 24, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    completion: u32,
    /// LoRA rank, on all seven linear maps of each layer
    #[arg(long, default_value_t = 16, value_name = "R",
          value_parser = clap::value_parser!(u32).range(1..=256))]
    rank: u32,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut steps = super::build(workspace)?;
    let mut updates = serde_json::Map::new();
    for name in &arguments.model {
        let model = super::pull(workspace, Some(name))?;
        eprintln!("── {name}, updates of 16 texts");
        let measured = update(workspace, &model)?;
        if !arguments.json {
            println!("{name}\n{}", update_table(&measured));
        }
        updates.insert(name.clone(), measured);
    }
    let python = python(workspace, &mut steps)?;
    let folder = workspace.target.join("bench");
    files::make_folder(&folder)?;
    let tokens = folder.join("tokens.json");
    write_tokens(&tokens, (arguments.prompt + arguments.completion) as usize)?;

    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut models = serde_json::Map::new();
    for name in &arguments.model {
        let model = super::pull(workspace, Some(name))?;
        eprintln!("── {name}, {} turns of each side on {threads} thread(s)", arguments.rounds);
        let bench =
            Bench { workspace, arguments, python: &python, model, tokens: &tokens, threads };
        let measured = bench.measure(&folder)?;
        if !arguments.json {
            println!("{name}\n{}", table(&measured));
        }
        models.insert(name.clone(), measured);
    }
    if arguments.json {
        let headline = models.get(DEFAULT_MODEL).or(models.values().next());
        let ratios = headline.map_or(Value::Null, |model| model["ratios"].clone());
        let report = json!({
            "threads": threads,
            "rounds": arguments.rounds,
            "prompt_tokens": arguments.prompt,
            "completion_tokens": arguments.completion,
            "rank": arguments.rank,
            "ratios": ratios,
            "models": models,
            "updates": updates,
        });
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    Ok(())
}

/// Runs updates, each in a process of its own: one that computes its prompts, and one that has
/// their keys and values from the server.
fn update(workspace: &Workspace, model: &Path) -> Result<Value> {
    let run = |options: &[&str]| {
        let mut update = Command::new(workspace.binary("examples/update"));
        super::measure(update.arg("--model").arg(model).args(options))
    };
    Ok(json!({ "computed": run(&[])?, "known": run(&["--handed"])? }))
}

/// The seconds of each phase, and the rate of its matrix products.
fn update_table(measured: &Value) -> String {
    let mut table = Table::new(["", "prompts computed s", "GFLOP/s", "prompts known s", "GFLOP/s"]);
    let sides = [&measured["computed"], &measured["known"]];
    let cell = |of: &Value, key: &str, digits: usize| {
        of[key].as_f64().map_or(String::new(), |number| format!("{number:.digits$}"))
    };
    let phases = sides[0]["phases"].as_array().map_or(0, Vec::len);
    for phase in 0..phases {
        let [computed, known] = sides.map(|side| &side["phases"][phase]);
        let cells = [computed, known].map(|of| [cell(of, "s", 1), cell(of, "gflops", 0)]);
        table.row(computed["name"].as_str().unwrap_or_default(), cells.into_iter().flatten());
    }
    let both = |key: &str| sides.map(|side| [cell(side, key, 0), String::new()]);
    table.row("peak MiB", both("peak_mb").into_iter().flatten());
    let rates = sides.map(|side| [String::new(), cell(side, "matmul_gflops", 0)]);
    table.row("a large product of f32", rates.into_iter().flatten());
    table.to_string()
}

/// Installs the peer's packages into a virtual environment.
fn python(workspace: &Workspace, steps: &mut Steps) -> Result<Tools> {
    packages::ensure_all(packages::PYTHON)?;
    let venv = Tools::in_folder(workspace, "bench-venv", steps)?;
    let mut install = venv.command("python");
    install
        .args(["-m", "pip", "install", "--quiet", "--retries", "1"])
        .args(["--extra-index-url", CPU_WHEELS, "--requirement"])
        .arg(workspace.root.join("xtask/bench/requirements.txt"));
    steps.run("torch and PEFT", &mut install)?;
    Ok(venv)
}

/// The tokens' values do not change the time. Both sides get the same ones.
fn write_tokens(path: &Path, count: usize) -> Result<()> {
    let tokens: Vec<usize> = (0..count).map(|i| 1000 + i * 7919 % 8009).collect();
    fs::write(path, serde_json::to_vec(&tokens)?).with_context(|| path.display().to_string())
}

struct Bench<'a> {
    workspace: &'a Workspace,
    arguments: &'a Arguments,
    python: &'a Tools,
    model: PathBuf,
    tokens: &'a Path,
    threads: usize,
}

impl Bench<'_> {
    /// Returns medians in seconds, peaks in MiB, and how much both sides agree.
    fn measure(&self, folder: &Path) -> Result<Value> {
        let mut torch = self.torch("everywhere")?;
        let mut torch_tail = self.torch("tail")?;
        let mut ours_everywhere = self.ours("everywhere")?;
        let mut ours = self.ours("tail")?;

        let mut agreement = serde_json::Map::new();
        let check = format!("check {}", folder.display());
        for (mode, ours, torch) in
            [("everywhere", &mut ours_everywhere, &mut torch), ("tail", &mut ours, &mut torch_tail)]
        {
            ours.ask(&check)?;
            agreement.insert(mode.to_owned(), torch.ask(&check)?);
        }

        let mut times: [Vec<f64>; 6] = Default::default();
        for round in 0..=self.arguments.rounds {
            let turn = [
                torch.number("step", "s")?,
                ours_everywhere.number("step", "s")?,
                ours.number("prompt", "s")?,
                ours.number("step", "s")?,
                torch_tail.number("prompt", "s")?,
                torch_tail.number("step", "s")?,
            ];
            let [full, everywhere, prompt, step, torch_prompt, torch_step] = turn;
            eprintln!(
                "   {round:>2}  torch {full:.2} s · ours everywhere {everywhere:.2} · tail \
                 {step:.2} + prompt {prompt:.2} · torch tail {torch_step:.2} + {torch_prompt:.2}{}",
                if round == 0 { "  (warm-up)" } else { "" }
            );
            if round > 0 {
                times.iter_mut().zip(turn).for_each(|(times, time)| times.push(time));
            }
        }
        let [full, everywhere, prompt, step, torch_prompt, torch_step] =
            times.map(|times| median(&times));
        let peak = |peer: &mut Peer| peer.number("end", "peak_mb");
        let (torch_mb, ours_mb) = (peak(&mut torch)?, peak(&mut ours)?);
        let side =
            |step, prompt, peak| json!({ "step_s": step, "prompt_s": prompt, "peak_mb": peak });
        Ok(json!({
            "ratios": {
                "time": step / full,
                "time_with_prompt_pass": (step + prompt) / full,
                "time_everywhere": everywhere / full,
                "memory": ours_mb / torch_mb,
            },
            "torch_everywhere": side(full, 0.0, torch_mb),
            "torch_tail": side(torch_step, torch_prompt, peak(&mut torch_tail)?),
            "hone_everywhere": side(everywhere, 0.0, peak(&mut ours_everywhere)?),
            "hone_tail": side(step, prompt, ours_mb),
            "agreement": agreement,
        }))
    }

    fn torch(&self, mode: &str) -> Result<Peer> {
        let mut command = self.python.command("python");
        command.arg(self.workspace.root.join("xtask/bench/peer.py"));
        command.args(["--threads", &self.threads.to_string()]);
        // It must not use the network.
        command.env("HF_HUB_OFFLINE", "1");
        Peer::start("torch", self.arguments(&mut command, mode))
    }

    fn ours(&self, mode: &str) -> Result<Peer> {
        let mut command = Command::new(self.workspace.binary("examples/step"));
        command.env("RAYON_NUM_THREADS", self.threads.to_string());
        Peer::start("ours", self.arguments(&mut command, mode))
    }

    fn arguments<'c>(&self, command: &'c mut Command, mode: &str) -> &'c mut Command {
        command
            .arg("--model")
            .arg(&self.model)
            .arg("--tokens")
            .arg(self.tokens)
            .args(["--completion", &self.arguments.completion.to_string()])
            .args(["--rank", &self.arguments.rank.to_string()])
            .args(["--mode", mode])
    }
}

/// Ratios are to torch + PEFT in f32 with the adapter everywhere, which is what most people would
/// run.
fn table(measured: &Value) -> String {
    let mut table = Table::new(["", "step s", "prompt s", "peak MiB"]);
    for (label, side) in [
        ("torch + PEFT f32, everywhere", "torch_everywhere"),
        ("torch + PEFT f32, after the prompt", "torch_tail"),
        ("Hone, everywhere", "hone_everywhere"),
        ("Hone, after the prompt (served)", "hone_tail"),
    ] {
        let keys = [("step_s", 2), ("prompt_s", 2), ("peak_mb", 0)];
        table.numbers(label, &measured[side], &keys);
    }
    for key in ["time", "time_with_prompt_pass", "time_everywhere", "memory"] {
        table.numbers(&format!("ratio, {key}"), &measured["ratios"], &[(key, 2)]);
    }
    let mut lines = vec![table.to_string()];
    for (mode, numbers) in measured["agreement"].as_object().into_iter().flatten() {
        let number = |key: &str| numbers[key].as_f64().unwrap_or(f64::NAN);
        lines.push(format!(
            "  same numbers, {mode}: log-prob off by {:.1e} nats (mean; {:.1e} as PEFT loads what \
             Hone exports), gradient by {:.1e} (relative), cosine {:.7}",
            number("logprob_mean"),
            number("exported_mean"),
            number("gradient_error"),
            number("gradient_cosine")
        ));
    }
    lines.join("\n")
}
