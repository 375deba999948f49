//! Clients that nobody wrote for Hone, as they really talk: recorded sessions of
//! theirs are played again, message by message and at their own pace.
//!
//! A line of a recording (`tests/recordings/*.jsonl`) is a message of the client
//! or of the server, and when it was sent. Offer ids differ at every run, so the
//! recorded ones stand for those of this run.

use feedback::event::{EventKind, Evidence, Outcome};
use rehearsal::client::{Client, Pending};
use serde_json::{Value, json};
use std::collections::HashMap;
use tests::{Home, Model, QUICK};

/// What needs no clock, or has none: the server is not there yet, or leaves.
const OUTSIDE: [&str; 4] = ["initialize", "initialized", "shutdown", "exit"];

/// A recording under way.
struct Replay<'a> {
    editor: &'a Client,
    /// Recorded offer ids and texts → those of this run.
    live: HashMap<String, String>,
    /// Recorded request id → the request now.
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
            // An answer to the server.
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
                self.meet(&recorded["result"], &answer);
            }
            Err(error) => assert_eq!(error.code(), recorded["error"]["code"].as_i64(), "{error}"),
        }
    }

    /// The same answer, but for what each run has of its own.
    fn meet(&mut self, recorded: &Value, answer: &Value) {
        let (then, now) = (offers(recorded), offers(answer));
        if then.is_empty() {
            // The server's version, which `initialize` tells too, may differ.
            let told = |answer: &Value| answer.get("capabilities").unwrap_or(answer).clone();
            assert_eq!(told(recorded), told(answer));
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

/// Ids and texts of the offers in an answer of either kind.
fn offers(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = answer["items"].as_array().into_iter().flatten();
    let items =
        items.map(|item| (text(&item["command"]["arguments"][0]), text(&item["insertText"])));
    let completions = answer["completions"].as_array().into_iter().flatten();
    let completions = completions.map(|one| (text(&one["uuid"]), text(&one["displayText"])));
    items.chain(completions).collect()
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

/// Plays a recording; answers what became of each offer, in order, and how many
/// were confirmed to be on screen.
fn play(name: &str) -> (Vec<Outcome>, usize) {
    let home = Home::with(Model::Smol, QUICK);
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
    let fate = |id: &String| {
        let strongest = home.outcomes(id).into_iter().max_by_key(|(_, evidence)| *evidence);
        strongest.map(|(outcome, _): (Outcome, Evidence)| outcome).expect("every offer ends")
    };
    let shown = |event: &feedback::event::Event| matches!(event.kind, EventKind::Shown { .. });
    let shown = home.events().iter().filter(|event| shown(event)).count();
    assert_eq!(home.status()["episodes"]["total"], json!(offers.len()), "no offer went unnoticed");
    (offers.iter().map(fate).collect(), shown)
}

/// Emacs, by LSP alone: it runs an item's command after the change, turns to
/// another item without a word, and says nothing of a rejection.
#[test]
fn lsp_mode() {
    let (fates, shown) = play("lsp-mode");
    let expected = [Outcome::Accepted, Outcome::RejectedEdit, Outcome::Unseen, Outcome::Unseen];
    assert_eq!((fates.as_slice(), shown), (expected.as_slice(), 0));
}

/// Emacs, by the Copilot language server's interface: it tells what it shows, a
/// word taken, and the acceptance before its change.
#[test]
fn copilot_el() {
    let (fates, shown) = play("copilot.el");
    let expected = [Outcome::Accepted, Outcome::Accepted, Outcome::RejectedEdit];
    assert_eq!((fates.as_slice(), shown), (expected.as_slice(), 3));
}

/// Neovim, by the Copilot agent's older interface: completions, what is shown,
/// taken and dismissed by requests of its own. A word is taken, then the rest;
/// another offer turned to and taken; the last one dismissed.
#[test]
fn copilot_lua() {
    let (fates, shown) = play("copilot.lua");
    let expected = [
        // On the empty line, before anything was typed.
        Outcome::RejectedEdit,
        Outcome::Accepted,
        Outcome::Superseded,
        Outcome::Accepted,
        Outcome::Unseen,
        Outcome::RejectedEsc,
    ];
    assert_eq!((fates.as_slice(), shown), (expected.as_slice(), 5));
}
