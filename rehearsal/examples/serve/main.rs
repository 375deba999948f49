//! Compares completions at every keystroke from Hone with those from a llama-server on the same
//! model. `cargo xtask bench serve` runs it.
//!
//! A stretch of a real file is typed, and each key is followed by a request. Both sides get every
//! request, one after the other, and take turns at being first. So a machine that slows down slows
//! both.

mod superseded;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::{Document, Encoding, Position, Range};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The context that both sides see. These are Hone's defaults.
const PREFIX_CHARS: usize = 1500;
const SUFFIX_CHARS: usize = 500;

/// Tokens that both sides may generate. This is Hone's default.
const MAX_TOKENS: usize = 32;

/// The pause between two requests to a side.
const PAUSE: Duration = Duration::from_millis(15);

/// The pause between opening a file and the first key in it.
const LOOKS_AROUND: Duration = Duration::from_secs(3);

/// Longest wait until the peer has loaded its model, and for each of its answers.
const PEER_LIMIT: Duration = Duration::from_secs(120);

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
    /// A llama-server, and the file of the model for it
    #[arg(long, requires = "gguf")]
    peer: Option<PathBuf>,
    #[arg(long)]
    gguf: Option<PathBuf>,
    /// Keys typed in each file
    #[arg(long)]
    keys: usize,
    #[arg(long)]
    threads: usize,
    /// Requests that are superseded while they are computed
    #[arg(long)]
    superseded: usize,
    /// A line for Hone's config.toml
    #[arg(long = "set")]
    settings: Vec<String>,
    /// The files to type
    files: Vec<PathBuf>,
}

/// A stretch of a file as it is typed.
struct Trace {
    name: String,
    language: &'static str,
    text: String,
    /// Byte offset of the cursor before the first key, and after each key.
    cursors: Vec<usize>,
    /// Where the text begins that stands behind the typed stretch.
    end: usize,
}

impl Trace {
    fn of(path: &Path, keys: usize) -> Result<Trace> {
        let text = text_of(path)?;
        let language = match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => "rust",
            Some("ts") => "typescript",
            Some("lua") => "lua",
            Some("py") => "python",
            other => bail!("{}: a trace of {other:?} files has no language", path.display()),
        };
        let middle = (text.len() / 2..).find(|&at| text.is_char_boundary(at)).unwrap_or_default();
        let is_code = |line: &str| {
            let line = line.trim();
            !line.is_empty()
                && !["//", "#", "--", "\"\"\"", "*"].iter().any(|c| line.starts_with(c))
        };
        let mut start = middle + text[middle..].find('\n').context("one line is no trace")? + 1;
        while !is_code(text[start..].lines().next().context("no code in the second half")?) {
            start += text[start..].find('\n').context("no code in the second half")? + 1;
        }
        let blanks =
            |at: usize, marks: &[char]| at + text[at..].find(|c| !marks.contains(&c)).unwrap_or(0);
        let mut cursors = vec![blanks(start, &[' ', '\t'])];
        while cursors.len() <= keys {
            let at = cursors[cursors.len() - 1];
            let key = text[at..].chars().next().context("the file ends before the trace")?;
            let mut next = at + key.len_utf8();
            if key == '\n' {
                // The editor inserts the indentation.
                next = blanks(next, &[' ', '\t', '\n']);
            }
            cursors.push(next);
        }
        let last = cursors[keys];
        let end = text[last..].find('\n').map_or(text.len(), |at| last + at);
        let name = path.display().to_string();
        Ok(Trace { name, language, text, cursors, end })
    }

    fn before(&self, key: usize) -> &str {
        &self.text[..self.cursors[key]]
    }

    /// The rest of the line that the user will have typed.
    fn truth(&self, key: usize) -> &str {
        self.text[self.cursors[key]..self.end].split('\n').next().unwrap_or_default()
    }

    fn after(&self) -> &str {
        &self.text[self.end..]
    }
}

/// The answer of a side to one key.
struct Answer {
    ms: f64,
    text: String,
}

#[derive(Default)]
struct Side {
    ms: Vec<f64>,
    cold_ms: Vec<f64>,
    right: usize,
    offers: usize,
    wholly_right: usize,
}

impl Side {
    fn add(&mut self, key: usize, truth: &str, answer: &Answer) {
        if key == 0 {
            self.cold_ms.push(answer.ms);
        } else {
            self.ms.push(answer.ms);
        }
        let right = truth.chars().zip(answer.text.chars()).take_while(|(a, b)| a == b).count();
        self.right += right;
        self.offers += usize::from(!answer.text.is_empty());
        self.wholly_right += usize::from(!truth.is_empty() && answer.text.trim_end() == truth);
    }

    fn report(&mut self) -> Value {
        let requests = self.ms.len() + self.cold_ms.len();
        json!({
            "requests": requests,
            "p50_ms": quantile(&mut self.ms, 0.5),
            "p95_ms": quantile(&mut self.ms, 0.95),
            "mean_ms": self.ms.iter().sum::<f64>() / self.ms.len() as f64,
            "cold_ms": quantile(&mut self.cold_ms, 0.5),
            "offers": self.offers,
            "right_chars_per_request": self.right as f64 / requests as f64,
            "right_chars_per_offer": self.right as f64 / self.offers as f64,
            "wholly_right": self.wholly_right,
        })
    }
}

fn text_of(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn quantile(values: &mut [f64], q: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(((values.len().saturating_sub(1)) as f64 * q).round() as usize).copied()
}

struct Hone {
    client: Client,
    document: Document,
    uri: String,
}

impl Hone {
    fn open(&mut self, trace: &Trace) -> Result<()> {
        self.uri = format!("file:///bench/{}", trace.name);
        let text = format!("{}{}", trace.before(0), trace.after());
        self.document = Document::new(text.clone(), Encoding::Utf16);
        self.client.open(&self.uri, trace.language, &text)?;
        // The plugins for VS Code and Neovim report in this way where the cursor is.
        let at = Self::cursor(trace, 0);
        self.client.notify(
            "textDocument/didFocus",
            json!({"textDocument": {"uri": self.uri}, "position": at}),
        )?;
        Ok(())
    }

    fn cursor(trace: &Trace, key: usize) -> Position {
        let before = trace.before(key);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Position {
            line: before.matches('\n').count() as u32,
            character: line.encode_utf16().count() as u32,
        }
    }

    fn key(&mut self, trace: &Trace, key: usize) -> Result<Answer> {
        let started = Instant::now();
        if key > 0 {
            let at = Self::cursor(trace, key - 1);
            let typed = &trace.text[trace.cursors[key - 1]..trace.cursors[key]];
            self.client.change(&self.uri, Some(Range { start: at, end: at }), typed)?;
        }
        let items = self.client.inline_completion(
            &self.uri,
            Self::cursor(trace, key),
            TriggerKind::Automatic,
        )?;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        let text = items.into_iter().next().map(|item| item.insert_text).unwrap_or_default();
        Ok(Answer { ms, text })
    }
}

struct Peer {
    child: Child,
    agent: ureq::Agent,
    url: String,
    /// Start of the context. It stays the same for a trace, as in a good client.
    from: usize,
    prompt_ms: Vec<f64>,
}

impl Peer {
    fn start(program: &Path, gguf: &Path, threads: usize) -> Result<Peer> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(program)
            .arg("--model")
            .arg(gguf)
            .args(["--port", &port.to_string(), "--ctx-size", "4096", "--parallel", "1"])
            .args(["--threads", &threads.to_string(), "--threads-batch", &threads.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{}: cannot start it", program.display()))?;
        let agent = ureq::Agent::config_builder().timeout_global(Some(PEER_LIMIT)).build().into();
        let url = format!("http://127.0.0.1:{port}");
        let mut peer = Peer { child, agent, url, from: 0, prompt_ms: vec![] };
        let deadline = Instant::now() + PEER_LIMIT;
        while peer.agent.get(format!("{}/health", peer.url)).call().is_err() {
            if let Some(status) = peer.child.try_wait()? {
                bail!("{}: ended while it loaded the model ({status})", program.display());
            }
            ensure!(Instant::now() < deadline, "{}: does not get ready", program.display());
            sleep(Duration::from_millis(200));
        }
        Ok(peer)
    }

    fn open(&mut self, trace: &Trace) {
        let before = trace.before(0);
        let chars = before.chars().count().saturating_sub(PREFIX_CHARS);
        let at = before.char_indices().nth(chars).map_or(0, |(at, _)| at);
        self.from =
            if chars == 0 { 0 } else { before[at..].find('\n').map_or(at, |line| at + line + 1) };
    }

    /// Asks as llama.vim and llama.vscode do, with the current line behind the middle token.
    fn key(&mut self, trace: &Trace, key: usize) -> Result<Answer> {
        let before = &trace.before(key)[self.from..];
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let body = json!({
            "input_prefix": &before[..line],
            "prompt": &before[line..],
            "input_suffix": trace.after().chars().take(SUFFIX_CHARS).collect::<String>(),
            "n_predict": MAX_TOKENS,
            "temperature": 0,
            "top_k": 1,
            "samplers": ["top_k"],
            "stop": ["\n"],
            "cache_prompt": true,
        });
        let body = serde_json::to_vec(&body)?;
        let started = Instant::now();
        let mut response = self
            .agent
            .post(format!("{}/infill", self.url))
            .content_type("application/json")
            .send(&body[..])?;
        let answer = response.body_mut().read_to_string()?;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        let answer: Value = serde_json::from_str(&answer)?;
        let text = answer["content"].as_str().context("the peer answered no content")?.to_owned();
        if key > 0 {
            self.prompt_ms.extend(answer["timings"]["prompt_ms"].as_f64());
        }
        Ok(Answer { ms, text })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let home = tempfile::tempdir()?;
    std::os::unix::fs::symlink(
        std::path::absolute(&arguments.models)?,
        home.path().join("models"),
    )?;
    // Here the next key follows each answer at once, so the pause in typing means nothing.
    let mut config = format!(
        "model.name = \"{}\"\nlearning.enabled = false\ncompletion.adaptive_debounce = false\n",
        arguments.model
    );
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
    let document = Document::new(String::new(), Encoding::Utf16);
    let mut ours = Hone { client, document, uri: String::new() };
    let measured = measure(&mut ours, &arguments, &|| {
        let output = hone("events").arg("--json").output()?;
        ensure!(output.status.success(), "`hone events` failed");
        Ok(String::from_utf8(output.stdout)?)
    });
    let measured = measured.and_then(|mut measured| {
        if arguments.superseded > 0 {
            eprintln!("   {} requests are superseded", arguments.superseded);
            measured["superseded"] =
                superseded::measure(&ours.client, &arguments.files, arguments.superseded)?;
        }
        Ok(measured)
    });
    drop(ours);
    hone("stop").stdout(Stdio::null()).status()?;
    println!("{}", measured?);
    Ok(())
}

fn measure(
    hone: &mut Hone,
    arguments: &Arguments,
    events: &dyn Fn() -> Result<String>,
) -> Result<Value> {
    let mut peer = match (&arguments.peer, &arguments.gguf) {
        (Some(program), Some(gguf)) => Some(Peer::start(program, gguf, arguments.threads)?),
        _ => None,
    };
    let (mut ours, mut theirs) = (Side::default(), Side::default());
    for path in &arguments.files {
        let trace = Trace::of(path, arguments.keys)?;
        hone.open(&trace)?;
        sleep(LOOKS_AROUND);
        if let Some(peer) = &mut peer {
            peer.open(&trace);
        }
        for key in 0..=arguments.keys {
            let truth = trace.truth(key);
            let ask_peer = |peer: &mut Option<Peer>, theirs: &mut Side| -> Result<()> {
                let Some(peer) = peer else { return Ok(()) };
                sleep(PAUSE);
                theirs.add(key, truth, &peer.key(&trace, key)?);
                Ok(())
            };
            if key % 2 == 1 {
                ask_peer(&mut peer, &mut theirs)?;
            }
            sleep(PAUSE);
            ours.add(key, truth, &hone.key(&trace, key)?);
            if key % 2 == 0 {
                ask_peer(&mut peer, &mut theirs)?;
            }
        }
        eprintln!("   {}: {} keys", trace.name, arguments.keys);
    }
    let mut report = json!({ "hone": ours.report() });
    let timing = timing(&events()?)?;
    report["hone"]["first_token_ms"] = timing["first_token_ms"].clone();
    report["hone"]["decode_step_ms"] = timing["decode_step_ms"].clone();
    report["hone"]["per_computed"] = timing["per_computed"].clone();
    report["hone"]["computed"] = timing["computed"].clone();
    if let Some(peer) = &mut peer {
        report["llama_server"] = theirs.report();
        report["llama_server"]["first_token_ms"] = json!(quantile(&mut peer.prompt_ms, 0.5));
        report["ratios"] = ratios(&report);
    }
    Ok(report)
}

/// Our numbers divided by theirs, for each number that both sides have.
fn ratios(report: &Value) -> Value {
    let keys = [
        "p50_ms",
        "p95_ms",
        "mean_ms",
        "cold_ms",
        "first_token_ms",
        "right_chars_per_request",
        "right_chars_per_offer",
    ];
    let mut ratios = json!({});
    for key in keys {
        let (a, b) = (&report["hone"][key], &report["llama_server"][key]);
        ratios[key] = json!(a.as_f64().zip(b.as_f64()).map(|(a, b)| a / b));
    }
    ratios
}

/// What the server recorded about the requests that went to the model: the time to the first token
/// with a warm prompt, and the time of a decode step.
fn timing(events: &str) -> Result<Value> {
    let (mut first, mut steps, mut computed) = (vec![], vec![], 0);
    let (mut prompts, mut tokens_read, mut tokens_made) = (0.0, 0.0, 0.0);
    for line in events.lines() {
        let event: Value = serde_json::from_str(line)?;
        let number = |key: &str| event["timing"][key].as_f64();
        let (Some(reused), Some(evaluated)) = (number("prompt_reused"), number("prompt_evaluated"))
        else {
            continue;
        };
        computed += 1;
        prompts += number("prompt_ms").unwrap_or_default();
        tokens_read += evaluated;
        let tokens = event["logprobs"].as_array().map_or(0, Vec::len);
        if reused > 0.0 && evaluated <= 8.0 {
            first.extend(number("prompt_ms"));
        }
        tokens_made += tokens as f64;
        if let (true, Some(ms)) = (tokens > 1, number("decode_ms")) {
            steps.push(ms / (tokens - 1) as f64);
        }
    }
    Ok(json!({
        "computed": computed,
        "per_computed": {
            "prompt_ms": prompts / f64::from(computed),
            "prompt_tokens_evaluated": tokens_read / f64::from(computed),
            "tokens_generated": tokens_made / f64::from(computed),
        },
        "first_token_ms": quantile(&mut first, 0.5),
        // Tokens that were generated before cost nothing. The slower steps were computed.
        "decode_step_ms": quantile(&mut steps, 0.75),
    }))
}
