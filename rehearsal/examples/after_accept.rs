//! How long the next offer takes after one was accepted, and after the line break behind it. `cargo
//! xtask bench accept` runs it.
//!
//! Somebody types the beginning of each line of real files into a real daemon, reads the offer that
//! comes, and accepts it if it is the line's own text. Then the editor asks again, as VS Code does,
//! and after the line break once more.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rehearsal::client::{Client, Item, TriggerKind};
use rehearsal::document::{Position, Range};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The pause between two keys.
const KEY: Duration = Duration::from_millis(120);

/// The time between an accept and the line break.
const TO_LINE_BREAK: Duration = Duration::from_millis(250);

/// The pause between opening a file and the first key in it.
const LOOKS_AROUND: Duration = Duration::from_secs(3);

/// Lines that are there when the typing begins. They are more than the model sees.
const LINES_BEFORE: usize = 60;

/// Characters of a line, without its indentation, that are typed at most before the rest of it is
/// typed at once.
const TYPED_CHARS: usize = 12;

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
    /// Lines typed in each file
    #[arg(long)]
    lines: usize,
    /// How long an offer is read before it is accepted, in ms
    #[arg(long)]
    read_ms: u64,
    /// A line for Hone's config.toml
    #[arg(long = "set")]
    settings: Vec<String>,
    /// The files to type
    files: Vec<PathBuf>,
}

/// The answers at one kind of place.
#[derive(Default)]
struct Answers {
    all_ms: Vec<f64>,
    offered_ms: Vec<f64>,
}

impl Answers {
    fn add(&mut self, (ms, item): &(f64, Option<Item>)) {
        self.all_ms.push(*ms);
        if item.is_some() {
            self.offered_ms.push(*ms);
        }
    }

    fn report(&mut self) -> Value {
        json!({ "all": of(&mut self.all_ms), "offers": of(&mut self.offered_ms) })
    }
}

fn of(ms: &mut [f64]) -> Value {
    ms.sort_by(f64::total_cmp);
    let at = |share: f64| ms.get(((ms.len().max(1) - 1) as f64 * share).round() as usize);
    json!({ "count": ms.len(), "p50_ms": at(0.5), "p95_ms": at(0.95), "max_ms": ms.last() })
}

/// A file that is typed from [`LINES_BEFORE`] on, and what is measured.
struct Typist<'a> {
    client: &'a Client,
    read: Duration,
    uri: String,
    cursor: Position,
    after_accept: &'a mut Answers,
    after_line_break: &'a mut Answers,
}

impl Typist<'_> {
    fn open(&mut self, path: &Path, text: &[&str]) -> Result<()> {
        let language = match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => "rust",
            Some("ts") => "typescript",
            Some("lua") => "lua",
            _ => "python",
        };
        self.uri = format!("file:///bench/{}", path.display());
        let text: String = text.iter().flat_map(|line| [line, "\n"]).collect();
        self.cursor = Position { line: text.matches('\n').count() as u32, character: 0 };
        self.client.open(&self.uri, language, &text)?;
        let at = json!({"textDocument": {"uri": self.uri}, "position": self.cursor});
        self.client.notify("textDocument/didFocus", at)?;
        sleep(LOOKS_AROUND);
        Ok(())
    }

    fn insert(&mut self, text: &str) -> Result<()> {
        let at = Range { start: self.cursor, end: self.cursor };
        self.client.change(&self.uri, Some(at), text)?;
        let lines = text.matches('\n').count() as u32;
        let last = text.rsplit('\n').next().unwrap_or_default().encode_utf16().count() as u32;
        let before = if lines == 0 { self.cursor.character } else { 0 };
        self.cursor = Position { line: self.cursor.line + lines, character: before + last };
        Ok(())
    }

    fn ask(&self) -> Result<(f64, Option<Item>)> {
        let started = Instant::now();
        let kind = TriggerKind::Automatic;
        let items = self.client.inline_completion(&self.uri, self.cursor, kind)?;
        Ok((started.elapsed().as_secs_f64() * 1000.0, items.into_iter().next()))
    }

    /// Types a line behind its indentation, until an offer is its rest, which is accepted.
    fn line(&mut self, line: &str, next: &str) -> Result<()> {
        let line = line.trim_start();
        let mut rest = line;
        for key in line.chars().take(TYPED_CHARS) {
            sleep(KEY);
            self.insert(key.encode_utf8(&mut [0; 4]))?;
            rest = &rest[key.len_utf8()..];
            let (_, Some(item)) = self.ask()? else { continue };
            if rest.is_empty() || item.insert_text.trim_end() != rest {
                continue;
            }
            self.client.did_show(&item)?;
            sleep(self.read);
            self.insert(rest)?;
            self.client.accept(&item.id)?;
            self.after_accept.add(&self.ask()?);
            sleep(TO_LINE_BREAK);
            self.line_break(next)?;
            let answer = self.ask()?;
            self.after_line_break.add(&answer);
            return Ok(());
        }
        self.insert(rest)?;
        self.line_break(next)
    }

    /// Begins the next line, which the editor indents.
    fn line_break(&mut self, next: &str) -> Result<()> {
        let blanks = &next[..next.len() - next.trim_start().len()];
        self.insert(&format!("\n{blanks}"))
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let home = tempfile::tempdir()?;
    let models = std::path::absolute(&arguments.models)?;
    std::os::unix::fs::symlink(models, home.path().join("models"))?;
    let mut config = format!("model.name = \"{}\"\nlearning.enabled = false\n", arguments.model);
    for line in &arguments.settings {
        config += line;
        config.push('\n');
    }
    std::fs::write(home.path().join("config.toml"), config)?;
    let hone = |verb: &str| {
        let mut command = Command::new(&arguments.hone);
        command.env("HONE_HOME", home.path()).arg(verb);
        command
    };
    let client = Client::spawn(hone("lsp").stderr(Stdio::inherit()))?;
    client.initialize(&[])?;
    let measured = measure(&client, &arguments).and_then(|mut measured| {
        let output = hone("events").arg("--json").output()?;
        ensure!(output.status.success(), "`hone events` failed");
        measured["decode_step_ms"] = decode_step(&String::from_utf8(output.stdout)?)?;
        Ok(measured)
    });
    drop(client);
    hone("stop").stdout(Stdio::null()).status()?;
    println!("{}", measured?);
    Ok(())
}

fn measure(client: &Client, arguments: &Arguments) -> Result<Value> {
    let (mut after_accept, mut after_line_break) = (Answers::default(), Answers::default());
    for path in &arguments.files {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let lines: Vec<&str> = text.lines().collect();
        let last = LINES_BEFORE + arguments.lines;
        ensure!(lines.len() > last, "{}: it has no {last} lines", path.display());
        let mut typist = Typist {
            client,
            read: Duration::from_millis(arguments.read_ms),
            uri: String::new(),
            cursor: Position { line: 0, character: 0 },
            after_accept: &mut after_accept,
            after_line_break: &mut after_line_break,
        };
        typist.open(path, &lines[..LINES_BEFORE])?;
        for at in LINES_BEFORE..last {
            typist.line(lines[at], lines[at + 1])?;
        }
        eprintln!("   {}: {} lines", path.display(), arguments.lines);
    }
    Ok(json!({
        "read_ms": arguments.read_ms,
        "after_accept": after_accept.report(),
        "after_line_break": after_line_break.report(),
    }))
}

/// The time of one decode step: the upper quartile over the recorded answers, because tokens that
/// were known already take none.
fn decode_step(events: &str) -> Result<Value> {
    let mut steps = vec![];
    for line in events.lines() {
        let event: Value = serde_json::from_str(line)?;
        let tokens = event["logprobs"].as_array().map_or(0, Vec::len);
        if let (true, Some(ms)) = (tokens > 1, event["timing"]["decode_ms"].as_f64()) {
            steps.push(ms / (tokens - 1) as f64);
        }
    }
    steps.sort_by(f64::total_cmp);
    Ok(json!(steps.get(steps.len() * 3 / 4)))
}
