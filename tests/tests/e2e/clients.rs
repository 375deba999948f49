//! Clients that were not written for Hone. Recorded sessions with them are replayed, message by
//! message and with the recorded times.
//!
//! A line of a recording (`tests/recordings/*.jsonl`) holds a message of the client or of the
//! server, and the time at which it was sent. Offer ids differ in every run, so the ids of this
//! run replace the recorded ones.

use feedback::event::{EventKind, Evidence, NextEditOutcome, Outcome};
use rehearsal::client::{Client, Pending};
use serde_json::{Value, json};
use std::collections::HashMap;
use tests::{Home, Model, QUICK};

/// Messages before the clock can be moved, and after: the server starts or ends.
const OUTSIDE: [&str; 4] = ["initialize", "initialized", "shutdown", "exit"];

/// A recording that is being replayed.
struct Replay<'a> {
    editor: &'a Client,
    /// From the recorded ids and texts of offers to those of this run.
    live: HashMap<String, String>,
    /// From the recorded id of a request to the request of this run.
    pending: HashMap<u64, Pending>,
    /// Offers in the order they were made.
    offers: Vec<String>,
}

impl Replay<'_> {
    fn send(&mut self, mut message: Value) {
        substitute(&mut message, &self.live);
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let params = message["params"].take();
        match message["id"].as_u64() {
            Some(id) => {
                let request =
                    self.editor.request_async(&method, params).expect("a request is sent");
                self.pending.insert(id, request);
            }
            None if method == "$/cancelRequest" => {
                let request = params["id"].as_u64().and_then(|id| self.pending.get(&id));
                if let Some(request) = request {
                    self.editor.cancel(request).expect("it is cancelled");
                }
            }
            // It is an answer to the server.
            None if method.is_empty() => {}
            None => self.editor.notify(&method, params).expect("a notification is sent"),
        }
    }

    fn expect(&mut self, recorded: &Value) {
        let Some(request) = recorded["id"].as_u64().and_then(|id| self.pending.remove(&id)) else {
            return;
        };
        match self.editor.wait(request) {
            Ok(answer) => {
                assert!(recorded.get("error").is_none(), "{recorded} now is {answer}");
                self.compare(&recorded["result"], &answer);
            }
            Err(error) => assert_eq!(error.code(), recorded["error"]["code"].as_i64(), "{error}"),
        }
    }

    /// Checks that the answer is the recorded one, apart from ids and versions.
    fn compare(&mut self, recorded: &Value, answer: &Value) {
        let (then, now) = (offers(recorded), offers(answer));
        if then.is_empty() {
            // The answer to `initialize` holds the server's version too, which may differ.
            let compared = |answer: &Value| answer.get("capabilities").unwrap_or(answer).clone();
            assert_eq!(compared(recorded), compared(answer));
            return;
        }
        assert_eq!(then.len(), now.len(), "{recorded} now is {answer}");
        assert_eq!(then[0].1, now[0].1, "the first offer's text");
        for ((id, text), (live_id, live_text)) in then.into_iter().zip(now) {
            if !self.offers.contains(&live_id) {
                self.offers.push(live_id.clone());
            }
            self.live.insert(id, live_id);
            self.live.insert(text, live_text);
        }
    }
}

/// The ids and texts of the offers in an answer, in LSP's form or in that of the older agent, and
/// of the next edits.
fn offers(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = answer["items"].as_array().into_iter().flatten();
    let items =
        items.map(|item| (text(&item["command"]["arguments"][0]), text(&item["insertText"])));
    let completions = answer["completions"].as_array().into_iter().flatten();
    let completions = completions.map(|one| (text(&one["uuid"]), text(&one["displayText"])));
    let edits = answer["edits"].as_array().into_iter().flatten();
    let edits = edits.map(|one| (text(&one["command"]["arguments"][0]), text(&one["text"])));
    items.chain(completions).chain(edits).collect()
}

fn substitute(value: &mut Value, live: &HashMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(now) = live.get(text) {
                *text = now.clone();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| substitute(item, live)),
        Value::Object(fields) => fields.values_mut().for_each(|field| substitute(field, live)),
        _ => {}
    }
}

/// Replays a recording with these settings. Returns the ids of what was offered, in their order.
fn replay(name: &str, settings: &str) -> (Home, Vec<String>) {
    let home = Home::with(Model::Smol, settings);
    let path = format!("{}/recordings/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let recording = std::fs::read_to_string(&path).expect(&path);
    let editor = Client::spawn(home.hone().args(["lsp", "--manual-clock"])).expect("hone runs");
    let mut replay =
        Replay { editor: &editor, live: HashMap::new(), pending: HashMap::new(), offers: vec![] };
    let mut now_ms = 0;
    for line in recording.lines() {
        let line: Value = serde_json::from_str(line).expect("a line of a recording");
        if line["server"].is_object() {
            replay.expect(&line["server"]);
            continue;
        }
        let message = line["client"].clone();
        let at_ms = line["at_ms"].as_u64().expect("a time");
        if !OUTSIDE.contains(&message["method"].as_str().unwrap_or_default()) {
            let before_ms = std::mem::replace(&mut now_ms, at_ms);
            editor.advance_clock(at_ms - before_ms).expect("time passes");
        }
        replay.send(message);
    }
    let offers = replay.offers;
    drop(editor);
    tests::eventually("the session ends", || home.status()["daemon"]["sessions"] == 0);
    (home, offers)
}

/// Replays a recording. Returns the outcome of each offer in their order, and how many offers
/// were confirmed to be on screen.
fn play(name: &str) -> (Vec<Outcome>, usize) {
    let (home, offers) = replay(name, QUICK);
    let outcome = |id: &String| {
        let strongest = home.outcomes(id).into_iter().max_by_key(|(_, evidence)| *evidence);
        strongest.map(|(outcome, _): (Outcome, Evidence)| outcome).expect("every offer ends")
    };
    let shown = |event: &feedback::event::Event| matches!(event.kind, EventKind::Shown { .. });
    let shown = home.events().iter().filter(|event| shown(event)).count();
    assert_eq!(
        home.status()["episodes"]["total"],
        json!(offers.len()),
        "every offer was in an answer"
    );
    (offers.iter().map(outcome).collect(), shown)
}

/// Emacs over plain LSP. It runs an item's command after the change. It does not report that
/// the user turns to another item, or rejects one.
#[test]
fn lsp_mode() {
    let (outcomes, shown) = play("lsp-mode");
    let expected = [Outcome::Accepted, Outcome::RejectedEdit, Outcome::Unseen, Outcome::Unseen];
    assert_eq!((outcomes.as_slice(), shown), (expected.as_slice(), 0));
}

/// IntelliJ IDEA with LSP4IJ. It is not recorded but written after LSP4IJ's source, with this
/// server's answers. It asks 300 ms after a key, runs no command, and reports nothing; the brackets
/// that the editor closes come as a change of their own. The user takes the first offer with Tab,
/// writes something else over the second, and types the third by hand.
#[test]
fn lsp4ij() {
    let (outcomes, shown) = play("lsp4ij");
    let expected = [Outcome::Accepted, Outcome::RejectedEdit, Outcome::TypedThrough { utf16: 9 }];
    assert_eq!((outcomes.as_slice(), shown), (expected.as_slice(), 0));
}

/// Emacs over the Copilot language server's interface. It reports what it shows, a word that is
/// accepted, and an acceptance before its change.
#[test]
fn copilot_el() {
    let (outcomes, shown) = play("copilot.el");
    let expected = [Outcome::Accepted, Outcome::Accepted, Outcome::RejectedEdit];
    assert_eq!((outcomes.as_slice(), shown), (expected.as_slice(), 3));
}

/// Neovim over the older interface of the Copilot agent, which has requests of its own for
/// completions, for what is shown, and for what is accepted or dismissed. The user accepts a
/// word and then the rest, turns to another offer and accepts it, and dismisses the last.
#[test]
fn copilot_lua() {
    let (outcomes, shown) = play("copilot.lua");
    let expected = [
        // It was on the empty line, before anything was typed.
        Outcome::RejectedEdit,
        Outcome::Accepted,
        Outcome::Superseded,
        Outcome::Accepted,
        Outcome::Unseen,
        Outcome::RejectedEsc,
    ];
    assert_eq!((outcomes.as_slice(), shown), (expected.as_slice(), 5));
}

/// Replays a recording of next edits. Returns the outcome of each in their order.
fn play_edits(name: &str) -> Vec<NextEditOutcome> {
    let (home, edits) = replay(name, &format!("{QUICK}completion.next_edit = \"on\"\n"));
    let events = home.events();
    let outcome = |edit: &String| {
        events.iter().find_map(|event| match &event.kind {
            EventKind::NextEditOutcome { id, outcome, .. } if id == edit => Some(*outcome),
            _ => None,
        })
    };
    edits.iter().map(|edit| outcome(edit).expect("every edit ends")).collect()
}

/// Neovim 0.12 with sidekick.nvim. It checks the version, runs the command after the change, and
/// reports neither what is on screen nor that Escape takes it away. The user makes two edits by
/// hand, presses Tab four times, then Escape, and writes another line.
#[test]
fn sidekick_nvim() {
    let expected =
        [NextEditOutcome::Accepted, NextEditOutcome::Accepted, NextEditOutcome::Superseded];
    assert_eq!(play_edits("sidekick.nvim"), expected);
}

/// Neovim 0.12 with copilot.lua and the copilot-lsp that it uses for next edits. It reports what is
/// on screen, never runs the command, and clears the edit on Escape without a word. The user does
/// the same with its key.
#[test]
fn copilot_lua_next_edits() {
    let expected =
        [NextEditOutcome::Accepted, NextEditOutcome::Accepted, NextEditOutcome::Superseded];
    assert_eq!(play_edits("copilot.lua-next-edits"), expected);
}
