//! Single-line infilling of HumanEval (arXiv:2207.14255), through the editor's
//! protocol: `cargo xtask bench quality`.
//!
//! A line of a solution is missing, or its second half is, and is asked for.
//! Variants of the settings answer the same questions in one daemon, one after
//! the other, so that they share the prompts' KV.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use flate2::read::GzDecoder;
use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::Position;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

#[derive(Parser)]
struct Arguments {
    /// The `hone` to measure
    #[arg(long)]
    hone: PathBuf,
    /// A folder with the models' files
    #[arg(long)]
    models: PathBuf,
    /// The model's name
    #[arg(long)]
    model: String,
    /// HumanEval.jsonl.gz
    #[arg(long)]
    problems: PathBuf,
    /// Lines that are asked for, evenly over all there are
    #[arg(long)]
    lines: usize,
    /// Values of `completion.min_probability`
    #[arg(long, value_delimiter = ',')]
    min_probability: Vec<f64>,
    /// Adapters to ask as well as the base, each a PEFT folder or a GGUF file
    #[arg(long)]
    adapter: Vec<PathBuf>,
}

/// Who answers a question.
#[derive(Clone, Copy)]
struct Variant {
    min_probability: f64,
    /// 0: the base alone.
    adapter: usize,
}

impl Variant {
    fn all(arguments: &Arguments) -> Vec<Variant> {
        let adapters = 0..=arguments.adapter.len();
        let each = adapters.flat_map(|adapter| {
            let values = arguments.min_probability.iter();
            values.map(move |&min_probability| Variant { min_probability, adapter })
        });
        each.collect()
    }

    fn name(self, arguments: &Arguments) -> String {
        let adapter = self.adapter.checked_sub(1).and_then(|index| arguments.adapter.get(index));
        match adapter.and_then(|path| path.file_stem()) {
            None => format!("min_probability {}", self.min_probability),
            Some(name) => {
                format!("min_probability {} + {}", self.min_probability, name.to_string_lossy())
            }
        }
    }
}

#[derive(Deserialize)]
struct Problem {
    prompt: String,
    canonical_solution: String,
}

/// A cursor, and what its line goes on with in truth.
struct Question {
    before: String,
    truth: String,
    after: String,
}

impl Question {
    /// `half`: the first half of the line stands there already.
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
    /// Exact where the first variant is not, and the other way round.
    gained: usize,
    lost: usize,
    /// Offers that are a beginning of the truth.
    true_so_far: usize,
    right_chars: usize,
    wrong_chars: usize,
    similarity: f64,
}

impl Score {
    /// Answers whether the offer is the truth; `before`: what the first variant's was.
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

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let file = File::open(&arguments.problems)
        .with_context(|| arguments.problems.display().to_string())?;
    let problems: Result<Vec<Problem>> = BufReader::new(GzDecoder::new(file))
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect();
    let problems = problems?;
    let home = tempfile::tempdir()?;
    std::os::unix::fs::symlink(
        std::path::absolute(&arguments.models)?,
        home.path().join("models"),
    )?;
    // What the model says, not what the gate lets through.
    let config = format!(
        "model.name = \"{}\"\nlearning.enabled = false\ngate.enabled = false\n\
         completion.max_tokens = 64\ncompletion.budget_ms = 60000\n",
        arguments.model
    );
    std::fs::write(home.path().join("config.toml"), config)?;
    let hone = |args: &[&str]| -> Result<()> {
        let mut command = Command::new(&arguments.hone);
        command.env("HONE_HOME", home.path()).args(args).stdout(Stdio::null());
        ensure!(command.status()?.success(), "hone {} failed", args.join(" "));
        Ok(())
    };
    let mut lsp = Command::new(&arguments.hone);
    lsp.env("HONE_HOME", home.path()).arg("lsp").stderr(Stdio::inherit());
    let client = Client::spawn(&mut lsp)?;
    client.initialize(&[])?;
    for path in &arguments.adapter {
        // Numbered from 1 on: the home is new.
        hone(&["adapter", "import", &path.to_string_lossy()])?;
    }
    let measured = measure(&client, &arguments, &problems, &|variant| {
        let value = variant.min_probability.to_string();
        hone(&["config", "set", "completion.min_probability", &value])?;
        hone(&["adapter", "use", &variant.adapter.to_string()])
    });
    drop(client);
    hone(&["stop"])?;
    println!("{}", measured?);
    Ok(())
}

fn measure(
    client: &Client,
    arguments: &Arguments,
    problems: &[Problem],
    choose: &dyn Fn(Variant) -> Result<()>,
) -> Result<Value> {
    let variants = Variant::all(arguments);
    let mut report = json!({"model": arguments.model});
    for (kind, half) in [("whole_line", false), ("second_half", true)] {
        let questions = Question::all(problems, half);
        let mut scores: Vec<Score> = variants.iter().map(|_| Score::default()).collect();
        let step = (questions.len() / arguments.lines).max(1);
        for (index, question) in questions.iter().step_by(step).take(arguments.lines).enumerate() {
            let mut first = None;
            for (variant, &who) in variants.iter().enumerate() {
                choose(who)?;
                // A document of its own: no offer goes on from the last variant's.
                let uri = format!("file:///{kind}/{index}/{variant}.py");
                client.open(&uri, "python", &format!("{}{}", question.before, question.after))?;
                let items =
                    client.inline_completion(&uri, question.position(), TriggerKind::Automatic)?;
                let offer = items.first().map_or("", |item| &item.insert_text);
                let exact = scores[variant].add(&question.truth, offer, first);
                first.get_or_insert(exact);
                client.close(&uri)?;
            }
            if (index + 1) % 20 == 0 {
                eprintln!("   {kind}: {} lines", index + 1);
            }
        }
        for (score, variant) in scores.iter().zip(&variants) {
            report[kind][variant.name(arguments)] = score.report();
        }
    }
    Ok(report)
}
