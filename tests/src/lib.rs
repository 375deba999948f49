//! The base of the end-to-end tests: a temporary `HONE_HOME` with a real model in it, the real
//! `hone` that serves it, and a small editor that drives `hone`.
#![cfg(unix)]

pub mod adapters;
pub mod buffer;
pub mod disk;
pub mod git;
pub mod http;
pub mod processes;
pub mod scripts;
pub mod skip;
pub mod soak;

use feedback::event::{Completion, Event, EventKind, Evidence, Outcome};
use rehearsal::client::Client;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest wait for something that happens in the background. It is a failure to wait as long,
/// and no test may depend on something that happens earlier.
pub const PATIENCE: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(50);

/// How far the log-probability of one token may differ between two batches, in nats.
/// llama.cpp rounds activations to 8 bits, and the rounding depends on the batch.
pub const NOISE: f32 = 0.3;

/// Settings for tests that run at the same time as others on few cores. The model has one thread,
/// because threads wait for each other at every layer, and threads that outnumber the cores wait
/// long. The time budget is one that a busy machine keeps.
pub const PATIENT: &str = "\
model.threads = 1
lab.budget_ms = 120000
";

/// The same with short answers, for tests in which the answer's text matters little.
pub const QUICK: &str = "\
model.threads = 1
lab.max_tokens = 8
lab.budget_ms = 120000
";

/// The models of the manifests, by the names of their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// The default. It is trained to fill in; its architecture is qwen2.
    Qwen,
    /// Small and fast. It sees the prefix alone; its architecture is llama.
    Smol,
}

impl Model {
    pub fn name(self) -> &'static str {
        match self {
            Model::Qwen => "qwen2.5-coder-0.5b",
            Model::Smol => "smollm2-135m",
        }
    }

    /// The model's file, which `cargo xtask test` has fetched.
    pub fn file(self) -> PathBuf {
        let folder = std::env::var_os("HONE_TEST_MODELS").map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| target().join("../test-home/models"));
        let home = folder.parent().map(std::path::absolute);
        let home = home.and_then(Result::ok).unwrap_or_default();
        let listed = Command::new(hone())
            .env("HONE_HOME", home)
            .args(["model", "list", "--json"])
            .output()
            .expect("target/release/hone runs; `cargo xtask test` builds it");
        let listed: Value = serde_json::from_slice(&listed.stdout).expect("a list of models");
        let mut models = listed["models"].as_array().expect("models").iter();
        let model = models.find(|model| model["name"] == self.name()).expect("a known model");
        let path = model["path"].as_str().unwrap_or_else(|| {
            panic!(
                "{} is needed in {}; run `cargo xtask test`, which fetches it",
                self.name(),
                folder.display()
            )
        });
        PathBuf::from(path)
    }
}

fn target() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent().and_then(Path::parent).map(Path::to_owned).unwrap_or_default()
}

/// The binary under test, built next to this test.
pub fn hone() -> PathBuf {
    target().join("hone")
}

/// The learner that the binary under test starts, next to it.
pub fn learner() -> PathBuf {
    let hone = hone().canonicalize().expect("target/release/hone is built");
    hone.with_file_name("hone-learner")
}

/// A temporary home. Dropping it stops its daemon.
pub struct Home {
    folder: TempDir,
    environment: Vec<(&'static str, OsString)>,
}

impl Home {
    /// A home with nothing in it.
    pub fn empty() -> Home {
        Home::below(&std::env::temp_dir())
    }

    fn below(folder: &Path) -> Home {
        // Some tests put files of their own into the home before Hone uses it, which refuses such a
        // folder if others can read it.
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let folder =
            tempfile::Builder::new().prefix("hone").permissions(private).tempdir_in(folder);
        Home { folder: folder.expect("a temp folder"), environment: vec![] }
    }

    /// A home whose configuration serves `model`, with `config` added to it.
    pub fn with(model: Model, config: &str) -> Home {
        Home::with_below(&std::env::temp_dir(), model, config)
    }

    /// The same in a folder that the test chooses.
    pub fn with_below(folder: &Path, model: Model, config: &str) -> Home {
        let home = Home::below(folder);
        home.add(model);
        // These hold offers back, draw between adapters, cut offers short, leave prose out, and
        // show the model other files. A test that is not about them must not depend on them.
        let off = [
            "gate.enabled = false",
            "lab.trial = false",
            "lab.min_token_probability = 0",
            "completion.prose = true",
            "completion.context_chars = 0",
        ];
        let unsaid = off
            .into_iter()
            .filter(|line| line.split(" = ").next().is_some_and(|key| !config.contains(key)));
        let off: String = unsaid.flat_map(|line| [line, "\n"]).collect();
        home.configure(&format!("model.name = \"{}\"\n{off}{config}", model.name()));
        home
    }

    /// Brings a model into the home, which does not serve it yet.
    pub fn add(&self, model: Model) {
        let models = self.path().join("models");
        std::fs::create_dir_all(&models).expect("a models folder");
        let file = model.file();
        let name = file.file_name().expect("a model has a name");
        std::os::unix::fs::symlink(&file, models.join(name)).expect("a link to the model");
        // The checksum lies next to the model. Computing it again costs each test a second.
        let checksum = format!("{}.sha256.json", name.to_string_lossy());
        std::fs::copy(file.with_file_name(&checksum), models.join(&checksum))
            .expect("a model's checksum lies next to it");
    }

    pub fn configure(&self, text: &str) {
        std::fs::write(self.path().join("config.toml"), text).expect("config.toml is written");
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Sets an environment variable for every `hone` that this home runs from now on.
    pub fn set_env(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.environment.push((name, value.into()));
    }

    /// Installs a learner that waits as long as a file exists. Returns the file's path.
    pub fn hold_learner(&mut self) -> PathBuf {
        let (script, hold) = (self.path().join("learner.sh"), self.path().join("hold"));
        let wait = format!("while [ -e {} ]; do sleep 0.1; done", hold.display());
        let body = format!("#!/bin/sh\n{wait}\nexec {}\n", learner().display());
        std::fs::write(&script, body).expect("a script");
        std::fs::set_permissions(&script, Permissions::from_mode(0o700)).expect("its mode");
        self.set_env("HONE_LEARNER", &script);
        hold
    }

    /// `hone` in this home.
    pub fn hone(&self) -> Command {
        self.hone_at(&hone())
    }

    /// A copy of `hone` in this home.
    pub fn hone_at(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("HONE_HOME", self.path()).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.hone().args(args).output().expect("hone runs")
    }

    /// Runs `hone`, which must succeed. Returns its standard output.
    pub fn output(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "hone {args:?}: {stderr}");
        String::from_utf8(output.stdout).expect("hone writes UTF-8")
    }

    /// Runs `hone`, which must fail. Returns the one line that says why.
    pub fn error(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(!output.status.success(), "hone {args:?} succeeded");
        let stderr = String::from_utf8(output.stderr).expect("hone writes UTF-8");
        let lines: Vec<_> = stderr.lines().filter(|line| line.starts_with("Error: ")).collect();
        assert_eq!(lines.len(), 1, "one line must say what is wrong: {stderr}");
        lines[0].trim_start_matches("Error: ").to_owned()
    }

    /// An editor on the daemon of this home, which it starts if there is none. The test moves
    /// the daemon's clock.
    pub fn editor(&self) -> Client {
        self.editor_with(&["lsp", "--manual-clock"])
    }

    pub fn editor_with(&self, args: &[&str]) -> Client {
        self.try_editor(args).expect("the server answers initialize")
    }

    pub fn try_editor(&self, args: &[&str]) -> Result<Client, String> {
        let mut command = self.hone();
        command.args(args);
        let client = Client::spawn(&mut command).map_err(|error| error.to_string())?;
        client.initialize(&[]).map_err(|error| error.to_string())?;
        Ok(client)
    }

    pub fn status(&self) -> Value {
        serde_json::from_str(&self.output(&["status", "--json"])).expect("status is JSON")
    }

    pub fn events(&self) -> Vec<Event> {
        let text = self.output(&["events", "--json", "--with-code"]);
        text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
    }

    pub fn completions(&self) -> Vec<Completion> {
        let completion = |event: Event| match event.kind {
            EventKind::Completion(completion) => Some(*completion),
            _ => None,
        };
        self.events().into_iter().filter_map(completion).collect()
    }

    /// The outcomes recorded for an offer, in order.
    pub fn outcomes(&self, offer: &str) -> Vec<(Outcome, Evidence)> {
        let outcome = |event: Event| match event.kind {
            EventKind::Outcome { id, outcome, evidence } if id == offer => {
                Some((outcome, evidence))
            }
            _ => None,
        };
        self.events().into_iter().filter_map(outcome).collect()
    }

    /// The process id of the running daemon.
    pub fn daemon_pid(&self) -> Option<u64> {
        self.status()["daemon"]["pid"].as_u64()
    }

    /// The registry on disk.
    pub fn registry(&self) -> Value {
        let path = self.path().join("adapters/registry.json");
        let text = std::fs::read_to_string(path).expect("a registry was written");
        serde_json::from_str(&text).expect("the registry is JSON")
    }

    pub fn daemon_log(&self) -> String {
        std::fs::read_to_string(self.path().join("logs/daemon.log")).unwrap_or_default()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.run(&["stop"]);
    }
}

/// Waits until something has happened in the background. After [`PATIENCE`] it panics, and
/// says that it waited for `what`.
pub fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        std::thread::sleep(POLL);
    }
}

/// The version of the handshake that this home's daemon speaks.
pub fn protocol(home: &Home) -> u64 {
    let mut stream = UnixStream::connect(home.path().join("run/hone.sock")).expect("a daemon");
    let stranger = serde_json::json!({"protocol": 0, "version": "0", "purpose": "lsp"});
    writeln!(stream, "{stranger}").expect("a line is written");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("a line is read");
    let welcome: Value = serde_json::from_str(&line).expect("JSON");
    welcome["protocol"].as_u64().expect("a number")
}

/// Starts an update from the waiting labels, and waits until its adapter is served.
pub fn learn(editor: &Client) -> Value {
    let updates = |status: &Value| status["learner"]["updates"].as_u64().unwrap_or(0);
    let before = updates(&editor.status().expect("a status"));
    let answer = editor.learn().expect("hone/learn is answered");
    assert!(answer.started, "labels wait: {answer:?}");
    let mut status = Value::Null;
    eventually("an update", || {
        status = editor.status().expect("a status");
        let error = &status["learner"]["last_error"];
        assert!(error.is_null(), "the update failed: {error}");
        updates(&status) > before && status["learner"]["state"] != "training"
    });
    status
}
