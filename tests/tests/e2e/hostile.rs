//! Whatever comes over the socket, the daemon neither dies nor hangs, and its memory does not
//! grow.

use rehearsal::client::framing;
use serde_json::{Value, json};
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tests::buffer::Buffer;
use tests::processes::resident_mb;
use tests::soak::{Draws, rounds, seed};
use tests::{Home, Model, QUICK, eventually};

const BATCHES: u64 = 8;
const BATCHES_LONG: u64 = 1_000;

/// Messages between two checks that the daemon still answers.
const BATCH: u64 = 1_000;

/// How much more memory the daemon may hold at any time than before the messages.
const GROWTH_MB: f64 = 128.0;

/// A daemon that does not answer for this long hangs.
const HANG: Duration = Duration::from_secs(120);

/// The largest error of a wrong length, in bytes of the following message.
const WRONG_BY: u64 = 64;

const METHODS: &[&str] = &[
    "initialize",
    "initialized",
    "textDocument/didOpen",
    "textDocument/didChange",
    "textDocument/didClose",
    "textDocument/inlineCompletion",
    "textDocument/didShowCompletion",
    "textDocument/didPartiallyAcceptCompletion",
    "textDocument/didFocus",
    "textDocument/copilotInlineEdit",
    "textDocument/didShowInlineEdit",
    "textDocument/hover",
    "workspace/executeCommand",
    "workspace/didChangeConfiguration",
    "getCompletions",
    "getCompletionsCycling",
    "notifyShown",
    "notifyAccepted",
    "notifyRejected",
    "checkStatus",
    "hone/didReject",
    "hone/status",
    "hone/learn",
    "hone/forget",
    "hone/advanceClock",
    "$/cancelRequest",
    "$/setTrace",
    "",
    "no/such",
];

const TEXTS: &[&str] =
    &["", "x", "fn a() {\n}\n", "😀é\u{202e}\r\n\0", "\r", "\n\n\n", "ａ̈\u{feff}"];

/// Makes messages that no editor sends.
struct Enemy {
    draws: Draws,
    next_id: u64,
}

impl Enemy {
    fn uri(&mut self) -> Value {
        let known = ["file:///a.rs", "file:///b.rs", "untitled:1", "x", "", "file:///%ff%00"];
        json!(*self.draws.pick(&known))
    }

    fn number(&mut self) -> Value {
        match self.draws.below(8) {
            0 => json!(0),
            1 => json!(u32::MAX),
            2 => json!(i64::MIN),
            3 => json!(1e300),
            4 => json!(u64::MAX),
            5 => json!(null),
            _ => json!(self.draws.below(5)),
        }
    }

    fn position(&mut self) -> Value {
        json!({"line": self.number(), "character": self.number()})
    }

    fn text(&mut self) -> Value {
        json!(*self.draws.pick(TEXTS))
    }

    fn anything(&mut self, depth: u64) -> Value {
        match self.draws.below(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => self.number(),
            2 => self.text(),
            3 => json!(true),
            4 => self.uri(),
            5 => (0..self.draws.below(4)).map(|_| self.anything(depth - 1)).collect(),
            _ => {
                let names = ["uri", "textDocument", "position", "item", "id", "arguments", "doc"];
                let fields = (0..self.draws.below(4))
                    .map(|_| (self.draws.pick(&names).to_string(), self.anything(depth - 1)));
                Value::Object(fields.collect::<Vec<_>>().into_iter().collect())
            }
        }
    }

    /// Parameters of the right shape with wrong values, or of any shape.
    fn params(&mut self, method: &str) -> Value {
        let document = json!({"uri": self.uri(), "version": self.number(), "languageId": "rust",
            "text": self.text()});
        match (self.draws.below(4), method) {
            (0, _) => self.anything(4),
            (_, "textDocument/didOpen" | "textDocument/didClose") => {
                json!({"textDocument": document})
            }
            (_, "textDocument/didChange") => {
                let changes: Vec<Value> = (0..self.draws.below(4))
                    .map(|_| match self.draws.below(3) {
                        0 => json!({"text": self.text()}),
                        _ => {
                            let range = json!({"start": self.position(), "end": self.position()});
                            json!({"range": range, "text": self.text()})
                        }
                    })
                    .collect();
                json!({"textDocument": document, "contentChanges": changes})
            }
            (_, "textDocument/inlineCompletion") => json!({"textDocument": document,
                "position": self.position(), "context": {"triggerKind": self.number()}}),
            (_, "getCompletions" | "getCompletionsCycling") => {
                json!({"doc": {"uri": self.uri(), "position": self.position()}})
            }
            (_, "workspace/executeCommand") => {
                json!({"command": "hone.accept", "arguments": self.anything(2)})
            }
            _ => json!({"item": {"command": {"arguments": [self.text()]}}, "id": self.text(),
                "reason": "esc", "uuid": self.text(), "uri": self.uri(), "ms": self.number(),
                "acceptedLength": self.number(), "uuids": self.anything(2)}),
        }
    }

    fn message(&mut self) -> Value {
        let method = *self.draws.pick(METHODS);
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        message["params"] = self.params(method);
        match self.draws.below(8) {
            0 => {}
            1 => message["id"] = self.anything(1),
            _ => {
                self.next_id += 1;
                message["id"] = json!(self.next_id);
            }
        }
        match self.draws.below(20) {
            0 => message["jsonrpc"] = self.anything(1),
            1 => message["method"] = self.anything(1),
            2 => {
                message = json!({"jsonrpc": "2.0", "id": self.next_id, "result": self.anything(2)})
            }
            3 => message = self.anything(3),
            _ => {}
        }
        message
    }

    fn bytes(&mut self) -> Vec<u8> {
        let mut body = self.message().to_string().into_bytes();
        match self.draws.below(12) {
            0 => body.truncate(self.draws.below(body.len() as u64) as usize),
            1 => {
                let at = self.draws.below(body.len() as u64) as usize;
                body[at] = self.draws.below(256) as u8;
            }
            2 => return (0..self.draws.below(200)).map(|_| self.draws.below(256) as u8).collect(),
            _ => {}
        }
        let length = body.len() as u64;
        let length = match self.draws.below(40) {
            0 => (length + self.draws.below(WRONG_BY)).to_string(),
            1 => length.saturating_sub(self.draws.below(WRONG_BY)).to_string(),
            2 => u64::MAX.to_string(),
            3 => "-1".into(),
            4 => String::new(),
            _ => length.to_string(),
        };
        let mut wire = format!("Content-Length: {length}\r\n\r\n").into_bytes();
        wire.extend(body);
        wire
    }
}

/// A connection like a forwarder's. A thread reads its answers.
struct Line {
    stream: UnixStream,
    answers: Receiver<Value>,
}

impl Line {
    fn open(home: &Home) -> Line {
        let mut stream = UnixStream::connect(home.path().join("run/hone.sock")).unwrap();
        let protocol = tests::protocol(home);
        let hello = json!({"protocol": protocol, "version": "hostile", "purpose": "lsp"});
        writeln!(stream, "{hello}").unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        std::io::BufRead::read_line(&mut reader, &mut String::new()).unwrap();
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            while let Ok(Some(message)) = framing::read(&mut reader) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Line { stream, answers }
    }

    /// Waits for the answer with this id, and drops every other one.
    fn wait(&self, id: &str) -> Value {
        loop {
            let answer = self.answers.recv_timeout(HANG).expect("an answer, not a hang");
            if answer["id"] == id {
                return answer;
            }
        }
    }

    fn ask(&mut self, id: &str, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        // If a wrong length is still to be filled, these bytes fill it.
        self.stream.write_all(&b"\n".repeat(2 * WRONG_BY as usize)).unwrap();
        framing::write(&mut self.stream, &request).unwrap();
        self.wait(id)
    }
}

#[test]
fn soak_malformed_messages_neither_kill_nor_hang_nor_fill_it() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    let pid = home.daemon_pid().unwrap();
    let mut enemy = Enemy { draws: Draws::new(seed()), next_id: 0 };
    let mut line = Line::open(&home);
    line.ask("first", "initialize", json!({"capabilities": {}}));
    // A client that forgets everything unloads the model. The memory before the messages is
    // therefore read while the model is loaded, and the largest memory after it counts.
    let buffer = Buffer::open(&editor, "a.rs", "// one, two, three, |\n");
    assert!(buffer.complete().is_some(), "the editor is served before any wrong message");
    let before = resident_mb(pid);
    let mut largest = 0.0_f64;
    let batches = rounds(BATCHES, BATCHES_LONG);
    for batch in 0..batches {
        for _ in 0..BATCH {
            let wire = enemy.bytes();
            line.stream.write_all(&wire).unwrap();
        }
        let id = format!("batch-{batch}");
        let answer = line.ask(&id, "hone/status", Value::Null);
        assert_eq!(answer["result"]["daemon"]["pid"], pid, "{answer}");
        largest = largest.max(resident_mb(pid));
    }
    // The hostile client may still be forgetting everything, again and again, which leaves a
    // request without an offer. How long that takes depends on the disk. An editor asks again as
    // its user types on. It asks at another place, because the answer at the first one may be
    // remembered.
    let buffer = Buffer::open(&editor, "b.rs", "// four, five, six, |\n");
    eventually("the editor is served", || buffer.complete().is_some());
    assert_eq!(home.daemon_pid(), Some(pid), "it is the same daemon");
    largest = largest.max(resident_mb(pid));
    eprintln!("{} messages; {before:.0} MiB before, at most {largest:.0} MiB", batches * BATCH);
    assert!(largest - before < GROWTH_MB, "{before} MiB, {largest} MiB");
    let log = home.daemon_log();
    assert!(!log.contains("panicked"), "{log}");
}

/// The forwarder gets the same noise from its editor, and still serves it.
#[test]
fn noise_before_a_message_does_not_cost_the_editor_its_server() {
    let home = Home::with(Model::Smol, QUICK);
    let mut child = home
        .hone()
        .args(["lsp", "--manual-clock"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut enemy = Enemy { draws: Draws::new(seed()), next_id: 0 };
    let mut ask = |id: &str, method: &str| {
        let request =
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"capabilities": {}}});
        stdin.write_all(&b"\n".repeat(2 * WRONG_BY as usize)).unwrap();
        framing::write(&mut stdin, &request).unwrap();
        loop {
            let answer = framing::read(&mut reader).unwrap().expect("an answer");
            if answer["id"] == id {
                break;
            }
        }
        for _ in 0..20 {
            stdin.write_all(&enemy.bytes()).unwrap();
        }
    };
    ask("first", "initialize");
    for round in 0..20 {
        ask(&round.to_string(), "hone/status");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
