//! Single-line infilling of HumanEval (arXiv:2207.14255) through the editor's protocol. `cargo
//! xtask bench quality` runs it.
//!
//! A line of a solution, or the second half of a line, is missing and is asked for. Variants of the
//! settings answer the same questions in one daemon, one after the other, so that they share the KV
//! of the prompts. With several models, each has a daemon, and they answer in turns.

use anyhow::{Context, Result, ensure};
use clap::Args;
use flate2::read::GzDecoder;
use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::Position;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

#[derive(Args)]
pub struct Arguments {
    /// The `hone` to measure
    #[arg(long)]
    hone: PathBuf,
    /// A folder with the models' files
    #[arg(long)]
    models: PathBuf,
    /// The models' names
    #[arg(long, required = true)]
    model: Vec<String>,
    /// HumanEval.jsonl.gz
    #[arg(long)]
    problems: PathBuf,
    /// Lines that are asked for, spread evenly over all lines
    #[arg(long)]
    lines: usize,
    /// Settings that differ from the installed ones, each KEY=VALUE,… or nothing
    #[arg(long, required = true)]
    variant: Vec<String>,
    /// Adapters to ask beside the base model, each a PEFT folder or a GGUF file
    #[arg(long)]
    adapter: Vec<PathBuf>,
}

/// The settings of all variants: no gate, and enough tokens and time for the model's whole answer.
const SETTINGS: &str = "learning.enabled = false\ngate.enabled = false\n\
    lab.max_tokens = 64\nlab.budget_ms = 60000\n";

/// One model's daemon, and an editor connected to it.
struct Server<'a> {
    hone: &'a Path,
    home: TempDir,
    model: &'a str,
    client: Client,
}

impl<'a> Server<'a> {
    fn start(arguments: &'a Arguments, model: &'a str) -> Result<Server<'a>> {
        let home = tempfile::tempdir()?;
        let models = std::path::absolute(&arguments.models)?;
        std::os::unix::fs::symlink(models, home.path().join("models"))?;
        let hone = &arguments.hone;
        write_settings(home.path(), model, "")?;
        let mut lsp = Command::new(hone);
        lsp.env("HONE_HOME", home.path()).arg("lsp").stderr(Stdio::inherit());
        let client = Client::spawn(&mut lsp)?;
        let server = Server { hone, home, model, client };
        server.client.initialize(&[])?;
        for path in &arguments.adapter {
            // The home is new, so the adapters are numbered from 1 on.
            server.run(&["adapter", "import", &path.to_string_lossy()])?;
        }
        Ok(server)
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let mut command = Command::new(self.hone);
        command.env("HONE_HOME", self.home.path()).args(args).stdout(Stdio::null());
        ensure!(command.status()?.success(), "hone {} failed", args.join(" "));
        Ok(())
    }

    fn choose(&self, variant: &Variant) -> Result<()> {
        write_settings(self.home.path(), self.model, variant.settings)?;
        // This sets a value that the file has already, which makes the daemon read the file again.
        self.run(&["config", "set", "gate.enabled", "false"])?;
        self.run(&["adapter", "use", &variant.adapter.to_string()])
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // If the daemon has ended already, there is nothing to stop.
        let _ = self.run(&["stop"]);
    }
}

/// Writes the settings of all variants, with the variant's own settings instead of theirs.
fn write_settings(home: &Path, model: &str, variant: &str) -> Result<()> {
    let path = home.join("config.toml");
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let own: Vec<&str> = variant.split_terminator(',').collect();
    let kept = SETTINGS.lines().filter(|line| own.iter().all(|own| key(own) != key(line)));
    let lines: String = kept.chain(own.iter().copied()).flat_map(|line| [line, "\n"]).collect();
    std::fs::write(&path, format!("model.name = \"{model}\"\n{lines}"))
        .with_context(|| path.display().to_string())
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
    let file = File::open(&arguments.problems)
        .with_context(|| arguments.problems.display().to_string())?;
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
    println!("{}", measure(&variants, arguments, &problems)?);
    Ok(())
}

fn measure(variants: &[Variant], arguments: &Arguments, problems: &[Problem]) -> Result<Value> {
    let mut report = json!({"model": arguments.model.join(", ")});
    for (kind, half) in [("whole_line", false), ("second_half", true)] {
        let questions = Question::all(problems, half);
        let mut scores: Vec<Score> = variants.iter().map(|_| Score::default()).collect();
        let step = (questions.len() / arguments.lines).max(1);
        for (index, question) in questions.iter().step_by(step).take(arguments.lines).enumerate() {
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
