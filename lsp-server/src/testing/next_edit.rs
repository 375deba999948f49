//! Measures what next edits cost, for `cargo xtask bench overhead`: a keystroke with and without
//! them, the time from an edit to the offer, and an update of their gate. There are 50 open
//! documents of 5,000 lines each. Everything goes over real connections; only the model is missing.
//! The test asserts that every request was answered, but not how fast.

use crate::testing::daemon::{Editor, TestDaemon};
use crate::testing::row;
use feedback::event::{Event, EventKind, Evidence, NextEdit, NextEditKind, NextEditOutcome};
use policy::next_edit::EditGate;
use policy::next_edit::surroundings::Surroundings;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use settings::NextEdit as Setting;
use std::fmt::Write;
use std::time::{Duration, Instant};

const DOCUMENTS: usize = 50;
const LINES: u32 = 5_000;

/// The names in these documents. A low number stands in many lines, and a high one in few.
const NAMES: usize = 3_000;

/// How often two alike edits are made.
const ROUNDS: usize = 300;

/// The keys that are timed after each two edits.
const KEYS: u32 = 4;

const GATE_UPDATES: u64 = 10_000;

const FIRST: &str = "file:///0.rs";

fn name(random: &mut StdRng) -> String {
    format!("name_{}", (random.random::<f32>().powi(3) * NAMES as f32) as usize)
}

/// The lines of a block of these documents.
const BLOCK_LINES: u32 = 8;

/// The beginning of a line that calls a method.
const CALL: &str = "    self.";

/// In the third and the fourth line of each block, the same method is called. The user renames it.
fn text(random: &mut StdRng) -> String {
    let mut pair = String::new();
    (0..LINES).fold(String::new(), |mut text, line| {
        let (a, b, c) = (name(random), name(random), name(random));
        if line % BLOCK_LINES == 2 {
            pair = name(random);
        }
        let _ = match line % BLOCK_LINES {
            0 => writeln!(text, "fn {a}({b}: &mut Ledger) -> Result<u64, Error> {{"),
            1 => writeln!(text, "    // What {a} has is counted with \"{b}\"."),
            2 | 3 => writeln!(text, "{CALL}{pair}(here);"),
            7 => writeln!(text, "}}"),
            _ => writeln!(text, "    let {a} = self.{b}({c}, \"{line}\")?;"),
        };
        text
    })
}

/// An editor of a daemon of its own.
struct User {
    editor: Editor,
    version: u32,
    /// The lines of the first document, as they were opened.
    lines: Vec<String>,
    _daemon: TestDaemon,
}

impl User {
    async fn of(setting: Setting) -> User {
        let engine = fixtures::engine(&["call(x);"]);
        let daemon =
            TestDaemon::start_as(engine, |config| config.completion.next_edit = setting).await;
        let mut editor = Editor::over(daemon.connect()).await;
        let mut random = StdRng::seed_from_u64(1);
        let mut lines = vec![];
        for document in (0..DOCUMENTS).rev() {
            let text = text(&mut random);
            editor.open(&format!("file:///{document}.rs"), &text).await;
            lines = text.lines().map(str::to_owned).collect();
        }
        User { editor, version: 0, lines, _daemon: daemon }
    }

    /// Replaces so many characters of a line by a text.
    async fn change(&mut self, line: u32, column: u32, removed: u32, text: &str) {
        self.version += 1;
        let at = |character| json!({"line": line, "character": character});
        let range = json!({"start": at(column), "end": at(column + removed)});
        let document = json!({"uri": FIRST, "version": self.version});
        let changes = json!([{"range": range, "text": text}]);
        let params = json!({"textDocument": document, "contentChanges": changes});
        let message = self.editor.notification("textDocument/didChange", params);
        self.editor.send(&message).await;
    }

    async fn ask(&mut self, method: &str, line: u32, column: u32) -> u64 {
        let params = json!({
            "textDocument": {"uri": FIRST, "version": self.version},
            "position": {"line": line, "character": column},
            "context": {"triggerKind": 2},
        });
        let (id, request) = self.editor.request(method, params);
        self.editor.send(&request).await;
        id
    }

    async fn answer(&mut self, id: u64) -> Value {
        self.editor.until(|message| message["id"] == id && message["method"].is_null()).await
    }

    /// Renames what two lines call. Returns how long the next edit takes from the second change on,
    /// and whether there is one.
    async fn edit_twice(&mut self, line: u32, new: &str) -> (Duration, bool) {
        let rest = self.lines[line as usize].strip_prefix(CALL).expect("the line calls something");
        let length = rest.find('(').expect("a call has arguments") as u32;
        let column = CALL.len() as u32;
        self.change(line, column, length, new).await;
        let began = Instant::now();
        self.change(line + 1, column, length, new).await;
        let end = column + new.len() as u32;
        let id = self.ask("textDocument/copilotInlineEdit", line + 1, end).await;
        let answer = self.answer(id).await;
        let edits = answer["result"]["edits"].as_array().expect("a list");
        (began.elapsed(), !edits.is_empty())
    }

    /// Types a key. Returns how long its completion takes.
    async fn key(&mut self, line: u32, column: u32) -> Duration {
        let began = Instant::now();
        self.change(line, column, 0, "x").await;
        let id = self.ask("textDocument/inlineCompletion", line, column + 1).await;
        let answer = self.answer(id).await;
        assert!(answer["error"].is_null(), "{answer}");
        began.elapsed()
    }
}

/// Returns how long the gate takes to learn from an outcome.
fn gate_updates() -> Vec<Duration> {
    let mut gate = EditGate::default();
    let mut random = StdRng::seed_from_u64(2);
    let tell = |gate: &mut EditGate, kind| assert!(gate.apply(&Event { seq: 0, at_ms: 0, kind }));
    let update = |number: u64| {
        let seen = Surroundings {
            rule: random.random_range(0..500),
            kind: NextEditKind::Rewrite,
            support: random.random_range(2..9),
            lines_away: Some(random.random_range(0..400)),
            is_in_same_block: random.random_bool(0.5),
            by_model: None,
        };
        let id = format!("e-{number}");
        let edit = NextEdit {
            id: id.clone(),
            path: "/a.rs".into(),
            real_name: None,
            language: "rust".into(),
            line: 1,
            rule: seen.rule,
            kind: seen.kind,
            support: seen.support,
            invoked: false,
            gate: Some(gate.judge(&seen, 0.5)),
        };
        tell(&mut gate, EventKind::NextEdit(Box::new(edit)));
        let is_accepted = random.random_bool(0.7);
        let outcome =
            if is_accepted { NextEditOutcome::Accepted } else { NextEditOutcome::Rejected };
        let evidence = Evidence::Command;
        let began = Instant::now();
        tell(&mut gate, EventKind::NextEditOutcome { id, outcome, evidence });
        began.elapsed()
    };
    let times = (0..GATE_UPDATES).map(update).collect();
    assert_eq!(gate.labels(), GATE_UPDATES, "each outcome was learned from");
    times
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: `cargo xtask bench overhead`"]
async fn bench_next_edits() {
    let (mut off, mut on) = (User::of(Setting::Off).await, User::of(Setting::On).await);
    let mut random = StdRng::seed_from_u64(3);
    let (mut offers, mut keys_off, mut keys_on, mut found) = (vec![], vec![], vec![], 0);
    let (mut between_off, mut between_on) = (vec![], vec![]);
    let mut blocks: Vec<u32> = (0..LINES / BLOCK_LINES).collect();
    blocks.shuffle(&mut random);
    for (round, block) in blocks.into_iter().take(ROUNDS).enumerate() {
        let line = block * BLOCK_LINES + 2;
        let new = format!("changed_{round}");
        let (took, is_found) = on.edit_twice(line, &new).await;
        let (_, never) = off.edit_twice(line, &new).await;
        assert!(!never, "they are switched off");
        offers.push(took);
        found += usize::from(is_found);
        for key in 0..KEYS {
            // The search for the next edit is under way while this key is pressed.
            let (below, column) = (line + 2, key);
            for which in [key % 2, 1 - key % 2] {
                if which == 0 {
                    keys_off.push(off.key(below, column).await);
                } else {
                    on.ask("textDocument/copilotInlineEdit", line + 1, 0).await;
                    keys_on.push(on.key(below, column).await);
                }
            }
        }
        // Once the last search has its answer, none is under way while a key is pressed.
        let last = on.ask("textDocument/copilotInlineEdit", line + 1, 0).await;
        on.answer(last).await;
        for key in KEYS..2 * KEYS {
            for which in [key % 2, 1 - key % 2] {
                if which == 0 {
                    between_off.push(off.key(line + 2, key).await);
                } else {
                    between_on.push(on.key(line + 2, key).await);
                }
            }
        }
    }
    assert!(found > 0, "some rules come next somewhere");
    let report = json!({
        "documents": DOCUMENTS,
        "lines": LINES,
        "found": found,
        "offer": row(&offers),
        "keys_off": row(&keys_off),
        "keys_on": row(&keys_on),
        "between_off": row(&between_off),
        "between_on": row(&between_on),
        "gate": row(&gate_updates()),
    });
    // The line break separates the report from the output of the test runner.
    println!("\n{report}");
}
