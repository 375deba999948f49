//! Counts the rests in typing at which an offer comes in time, with learning paused and during an
//! update. `cargo xtask bench rests` runs it, and docs/lab/rests.md has the rule.
//!
//! One editor types a real file into a real daemon at the speed of a person, asks at each key,
//! cancels the request before, and rests at the start of lines and behind some marks.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rehearsal::client::{Client, OwnHome, TriggerKind};
use rehearsal::document::{Position, Range};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The mean time between two keys.
const KEY: Duration = Duration::from_millis(110);

/// A rest. A user does not wait longer for an offer.
const REST: Duration = Duration::from_millis(1400);

/// The labels of the update.
const LABELS: u64 = 32;

/// Lines of the file that are typed for labels, and no further.
const LINES_FOR_LABELS: usize = 80;

/// The longest wait for the end of the update.
const UPDATE_LIMIT: Duration = Duration::from_secs(900);

#[derive(Parser)]
struct Arguments {
    /// The `hone` to measure
    #[arg(long)]
    hone: PathBuf,
    /// A folder with the models' files
    #[arg(long)]
    models: PathBuf,
    /// The file to type
    #[arg(long)]
    file: PathBuf,
    /// Characters that are typed in each run
    #[arg(long)]
    characters: usize,
    /// Busy processes of the lowest priority next to it, each in a session of its own
    #[arg(long)]
    load: usize,
}

/// Processes that keep cores busy until they are dropped.
struct Load(Vec<Child>);

impl Load {
    fn start(count: usize) -> Result<Load> {
        let start = |_| {
            // Linux shares the cores among sessions first, so niceness says nothing to others.
            let mut busy = Command::new("setsid");
            // It ends with this program, which a signal may end.
            busy.args(["nice", "-n", "19", "sh", "-c", "while kill -0 $0; do :; done"]);
            busy.arg(std::process::id().to_string()).stderr(Stdio::null());
            busy.spawn().context("cannot run `setsid nice`")
        };
        (0..count).map(start).collect::<Result<_>>().map(Load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for busy in &mut self.0 {
            let _ = busy.kill();
            let _ = busy.wait();
        }
    }
}

/// What came of the rests of one run.
#[derive(Default)]
struct Rests {
    count: usize,
    answered: usize,
    longest_gap: Duration,
}

impl Rests {
    fn share(&self) -> f64 {
        self.answered as f64 / self.count as f64
    }

    fn json(&self) -> Value {
        let Rests { count, answered, longest_gap } = self;
        json!({"rests": count, "answered": answered, "longest_gap_s": longest_gap.as_secs_f64()})
    }
}

struct Editor {
    client: Client,
    text: String,
}

impl Editor {
    /// Types the text under a first line of its own, so that nothing of an earlier run is reused.
    fn type_under(&self, first_line: &str, characters: usize) -> Result<Rests> {
        let uri = format!("file:///bench/{}.rs", first_line.replace(' ', "_"));
        self.client.open(&uri, "rust", &format!("// {first_line}\n"))?;
        let mut random = StdRng::seed_from_u64(1);
        let mut at = Position { line: 1, character: 0 };
        let mut rests = Rests::default();
        let mut line = String::new();
        let (mut before, mut last_answer) = (None::<i64>, Instant::now());
        let mut keys = self.text.chars().take(characters).peekable();
        while let Some(key) = keys.next() {
            let range = Range { start: at, end: at };
            self.client.change(&uri, Some(range), key.encode_utf8(&mut [0; 4]))?;
            line.push(key);
            at.character += key.len_utf16() as u32;
            if key == '\n' {
                line.clear();
                at = Position { line: at.line + 1, character: 0 };
            }
            if let Some(id) = before {
                self.client.notify("$/cancelRequest", json!({"id": id}))?;
            }
            let asked = self.client.inline_completion_async(&uri, at, TriggerKind::Automatic)?;
            before = Some(asked.id);
            sleep(KEY.mul_f64(random.random_range(0.7..1.4)));
            let is_start = line.trim().is_empty() && matches!(key, ' ' | '\n');
            let has_more = keys.peek().is_some_and(|next| !matches!(next, ' ' | '\n'));
            if !(is_start && has_more || matches!(key, '(' | '.' | ',' | '=')) {
                continue;
            }
            let since = Instant::now();
            rests.count += 1;
            if self.client.wait_for(asked, REST).is_ok() {
                rests.answered += 1;
                rests.longest_gap = rests.longest_gap.max(last_answer.elapsed());
                last_answer = Instant::now();
                before = None;
                sleep(REST.saturating_sub(since.elapsed()));
            }
        }
        rests.longest_gap = rests.longest_gap.max(last_answer.elapsed());
        Ok(rests)
    }

    /// Accepts and rejects offers in turn until enough labels wait.
    fn make_labels(&self) -> Result<()> {
        let uri = "file:///bench/labels.rs";
        self.client.open(uri, "rust", "")?;
        let lines: Vec<&str> = self.text.lines().take(LINES_FOR_LABELS).collect();
        for (turn, line) in lines.iter().cycle().enumerate() {
            if self.client.status()?["learner"]["waiting"].as_u64() >= Some(LABELS) {
                break;
            }
            ensure!(turn < 20 * LINES_FOR_LABELS, "the offers give no labels");
            let above = &lines[..turn % lines.len()];
            let half = line.char_indices().nth(line.chars().count() / 2).map_or(0, |(at, _)| at);
            let text = format!("// {turn}\n{}\n{}", above.join("\n"), &line[..half]);
            let character = line[..half].encode_utf16().count() as u32;
            let position = Position { line: text.matches('\n').count() as u32, character };
            self.client.change(uri, None, &text)?;
            let items = self.client.inline_completion(uri, position, TriggerKind::Invoked)?;
            let Some(item) = items.first() else { continue };
            self.client.did_show(item)?;
            if turn % 2 == 0 {
                self.client.accept(&item.id)?;
            } else {
                self.client.did_reject(&item.id, "esc")?;
            }
        }
        Ok(())
    }

    /// The number of updates so far, and whether one runs.
    fn updates(&self) -> Result<(u64, bool)> {
        let learner = &self.client.status()?["learner"];
        let error = &learner["last_error"];
        ensure!(error.is_null(), "an update failed: {error}");
        Ok((learner["updates"].as_u64().unwrap_or_default(), learner["state"] == "training"))
    }

    fn wait_for_update(&self, is_reached: impl Fn((u64, bool)) -> bool) -> Result<Duration> {
        let since = Instant::now();
        while !is_reached(self.updates()?) {
            ensure!(since.elapsed() < UPDATE_LIMIT, "the update does not come to that");
            sleep(Duration::from_millis(200));
        }
        Ok(since.elapsed())
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let text = std::fs::read_to_string(&arguments.file)
        .with_context(|| arguments.file.display().to_string())?;
    // Without the gate every request is answered. An offer that is held back would give no label.
    let home = OwnHome::new(&arguments.hone, &arguments.models, "gate.enabled = false\n")?;
    let editor = Editor { client: home.editor()?, text };
    println!("{}", measure(&editor, &arguments, &home)?);
    Ok(())
}

fn measure(editor: &Editor, arguments: &Arguments, home: &OwnHome) -> Result<Value> {
    home.learning("pause")?;
    editor.make_labels()?;
    let _load = Load::start(arguments.load)?;
    let paused = editor.type_under("learning is paused", arguments.characters)?;
    eprintln!("   paused: {} of {} rests answered", paused.answered, paused.count);
    let (updates, _) = editor.updates()?;
    home.learning("resume")?;
    editor.wait_for_update(|(_, is_training)| is_training)?;
    let during = editor.type_under("an update is running", arguments.characters)?;
    eprintln!("   during the update: {} of {} rests answered", during.answered, during.count);
    let ended_after = editor.wait_for_update(|(now, _)| now > updates)?;
    Ok(json!({
        "load": arguments.load,
        "paused": paused.json(),
        "beside": during.json(),
        "answered_ratio": during.share() / paused.share(),
        "gap_more_s": during.longest_gap.as_secs_f64() - paused.longest_gap.as_secs_f64(),
        "update_ended_after_s": ended_after.as_secs_f64(),
    }))
}
