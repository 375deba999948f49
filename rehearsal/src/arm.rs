//! One arm of a rehearsal: its own home, its own daemon, its own editor.

use crate::client::Client;
use crate::document::Encoding;
use crate::interrupt;
use crate::status::Status;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Reading a model from a cold disk takes seconds; a minute is a fault.
const START_LIMIT: Duration = Duration::from_secs(120);
const START_POLL: Duration = Duration::from_millis(50);
/// Longest wait for one update to land.
const UPDATE_LIMIT: Duration = Duration::from_secs(600);
const UPDATE_POLL: Duration = Duration::from_millis(100);
/// How long a daemon may take to leave when told to.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Time a completion may take: so long that what is offered depends on the seed
/// and not on how busy the machine is. Latencies show what it cost.
const BUDGET_MS: u64 = 60_000;
/// Written in the arm's home; holds what the daemon and the forwarder say.
const LOG: &str = "rehearsal.log";

/// What tells the arms of a rehearsal apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The base model throughout, every offer shown
    #[value(skip)]
    Frozen,
    /// Learns from every label; each update serves at once
    Learning,
    /// The base model throughout, behind the gate
    Gate,
    /// Learner, trial and gate, as in daily use
    Everything,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Frozen => "frozen",
            Kind::Learning => "learning",
            Kind::Gate => "gate",
            Kind::Everything => "everything",
        }
    }

    /// The arm's `config.toml`.
    fn config(self) -> String {
        let learns = matches!(self, Kind::Learning | Kind::Everything);
        let gates = matches!(self, Kind::Gate | Kind::Everything);
        let tries = self == Kind::Everything;
        format!(
            "[completion]\nbudget_ms = {BUDGET_MS}\n\n[gate]\nenabled = {gates}\n\n\
             [learning]\nenabled = {learns}\ntrial = {tries}\n"
        )
    }
}

/// A daemon in a temporary home, and the client of one editor window on it.
/// Both end, and the home goes, when this is dropped.
pub struct Arm {
    pub kind: Kind,
    // In this order: the editor leaves, the daemon ends, the home is removed.
    client: Client,
    daemon: Daemon,
    home: Option<TempDir>,
}

impl Arm {
    pub fn start(kind: Kind, hone: &Path, model: &Path) -> Result<Arm> {
        // A short name: the path of the socket inside has a limit of 108 bytes.
        let home = tempfile::Builder::new()
            .prefix("hone-")
            .tempdir()
            .context("cannot create a temporary home for the rehearsal")?;
        let config = home.path().join("config.toml");
        fs::write(&config, kind.config())
            .with_context(|| format!("cannot write {}", config.display()))?;

        let mut daemon = Daemon::spawn(hone, model, home.path())?;
        let started = daemon.wait_until_ready(hone, home.path()).and_then(|()| {
            let log = log_file(home.path())?;
            let client = Client::spawn(
                Command::new(hone).arg("lsp").env("HONE_HOME", home.path()).stderr(log),
            )
            .with_context(|| format!("cannot start {} lsp", hone.display()))?;
            client.initialize(&[Encoding::Utf16])?;
            Ok(client)
        });
        match started {
            Ok(client) => Ok(Arm { kind, client, daemon, home: Some(home) }),
            Err(error) => {
                drop(daemon);
                Err(error.context(kept_log(kind, home)))
            }
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn status(&self) -> Result<Status> {
        let value = self.client.status()?;
        serde_json::from_value(value).context("hone/status does not answer as documented")
    }

    /// Waits until no update is on its way, telling `progress` of each look.
    /// Without this, which adapter serves a request would depend on the
    /// machine's speed and not on the seed.
    pub fn settled(&self, mut progress: impl FnMut(&Status, Duration)) -> Result<Status> {
        let begun = Instant::now();
        loop {
            let status = self.status()?;
            if !status.is_learning() {
                return Ok(status);
            }
            if begun.elapsed() > UPDATE_LIMIT {
                bail!("an update has not landed within {} s", UPDATE_LIMIT.as_secs());
            }
            interrupt::check()?;
            progress(&status, begun.elapsed());
            std::thread::sleep(UPDATE_POLL);
        }
    }

    /// Leaves the home behind when the arm ends.
    pub fn keep_home(&mut self) -> Option<PathBuf> {
        self.home.take().map(TempDir::keep)
    }

    /// Turns any failure of this arm into one that says where to look: keeps
    /// the home with its log, and says so if the daemon is gone.
    pub fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        // A signal ends the children too; then there is nothing to look into.
        if interrupt::requested() {
            return error;
        }
        let Some(home) = self.home.take() else { return error };
        let log = kept_log(self.kind, home);
        match self.daemon.exited() {
            Some(status) => error.context(format!("the daemon died ({status}); {log}")),
            None => error.context(log),
        }
    }
}

fn log_file(home: &Path) -> Result<File> {
    let path = home.join(LOG);
    File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn kept_log(kind: Kind, home: TempDir) -> String {
    format!("{} arm: its log is {}", kind.name(), home.keep().join(LOG).display())
}

struct Daemon {
    child: Child,
    hone: PathBuf,
    home: PathBuf,
}

impl Daemon {
    fn spawn(hone: &Path, model: &Path, home: &Path) -> Result<Daemon> {
        let log = log_file(home)?;
        let child = Command::new(hone)
            .arg("serve")
            .arg("--model")
            .arg(model)
            .arg("--manual-clock")
            .env("HONE_HOME", home)
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share the log")?)
            .stderr(log)
            .spawn()
            .with_context(|| {
                format!("cannot start {} (build it, or pass --hone PATH)", hone.display())
            })?;
        Ok(Daemon { child, hone: hone.to_owned(), home: home.to_owned() })
    }

    /// Waits until `hone status` finds this very daemon. Connecting earlier
    /// would make `hone lsp` start a second one, on the system's clock.
    fn wait_until_ready(&mut self, hone: &Path, home: &Path) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < START_LIMIT {
            interrupt::check()?;
            if let Some(status) = self.exited() {
                bail!("hone serve ended before it was ready ({status})");
            }
            let output = Command::new(hone)
                .args(["status", "--json"])
                .env("HONE_HOME", home)
                .stdin(Stdio::null())
                .output()
                .with_context(|| format!("cannot run {} status", hone.display()))?;
            let pid = serde_json::from_slice::<Value>(&output.stdout)
                .ok()
                .and_then(|status| status["daemon"]["pid"].as_u64());
            if pid == Some(u64::from(self.child.id())) {
                return Ok(());
            }
            std::thread::sleep(START_POLL);
        }
        bail!("hone serve was not ready within {} s", START_LIMIT.as_secs())
    }

    fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Asked first, so that it can end its learner; then made to.
        if self.exited().is_none() {
            let _ = Command::new(&self.hone)
                .arg("stop")
                .env("HONE_HOME", &self.home)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            let begun = Instant::now();
            while self.exited().is_none() && begun.elapsed() < STOP_LIMIT {
                std::thread::sleep(START_POLL);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
