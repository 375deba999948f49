//! One arm of a rehearsal: a home, a daemon and an editor of its own.

use crate::client::Client;
use crate::document::Encoding;
use crate::limits;
use crate::run::RunSettings;
use crate::run::interrupt;
use crate::run::record::{Learned, ReferenceScores};
use crate::run::status::DaemonStatus;
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toml_edit::{DocumentMut, Item, Value};

/// The log file in the arm's home, with the output of the daemon and the forwarder.
const LOG_FILE: &str = "rehearsal.log";

/// What an arm may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ArmKind {
    /// The base model to the end; every offer is shown
    Frozen,
    /// The base model to the end, behind the gate
    Gate,
    /// Learns from accepts and rejects by PPO; each update that passes the holdout check serves
    Ppo,
    /// The same behind the gate
    PpoGate,
    /// Learns from accepts and rejects, and from what was typed instead
    PpoDemo,
    /// The same behind the gate
    PpoDemoGate,
    /// Learns only from what was typed instead
    Demo,
    /// Learner, trial and gate, as installed
    Everything,
}

impl ArmKind {
    /// Returns true if its adapter changes.
    pub fn learns(self) -> bool {
        !matches!(self, ArmKind::Frozen | ArmKind::Gate)
    }

    /// The settings of this kind, by their dotted names.
    fn settings(self) -> Vec<(&'static str, Value)> {
        let gates = matches!(
            self,
            ArmKind::Gate | ArmKind::PpoGate | ArmKind::PpoDemoGate | ArmKind::Everything
        );
        let mut settings = vec![
            ("lab.budget_ms", limits::COMPLETION_BUDGET_MS.into()),
            ("gate.enabled", gates.into()),
            ("learning.enabled", self.learns().into()),
            ("learning.on_battery", true.into()),
            ("lab.trial", (self == ArmKind::Everything).into()),
        ];
        let (policy, demonstration) = match self {
            ArmKind::Ppo | ArmKind::PpoGate => (1.0, 0.0),
            ArmKind::PpoDemo | ArmKind::PpoDemoGate => (1.0, 1.0),
            ArmKind::Demo => (0.0, 1.0),
            ArmKind::Frozen | ArmKind::Gate | ArmKind::Everything => return settings,
        };
        settings.push(("lab.ppo.policy_coefficient", policy.into()));
        settings.push(("lab.ppo.demonstration_coefficient", demonstration.into()));
        settings
    }
}

/// An arm as the command line names it: `KIND`, or `NAME=KIND,SETTING=VALUE,…`.
#[derive(Debug, Clone)]
pub struct ArmSpec {
    pub name: String,
    pub kind: ArmKind,
    /// The settings that differ from the kind's, by dotted name.
    pub set: Vec<(String, Value)>,
}

impl ArmSpec {
    pub fn of(kind: ArmKind) -> ArmSpec {
        let name = kind.to_possible_value().map(|value| value.get_name().to_owned());
        ArmSpec { name: name.unwrap_or_default(), kind, set: Vec::new() }
    }

    /// The arm's `config.toml`. It is an error to set a value inside another value.
    pub fn config(&self) -> Result<String> {
        let mut config = DocumentMut::new();
        let kind = self.kind.settings().into_iter().map(|(key, value)| (key.to_owned(), value));
        for (key, value) in kind.chain(self.set.iter().cloned()) {
            let mut at = config.as_item_mut();
            for part in key.split('.') {
                let table = at.or_insert(toml_edit::table()).as_table_like_mut();
                let table =
                    table.with_context(|| format!("{key}: a part of this name is a value"))?;
                at = table.entry(part).or_insert(Item::None);
            }
            *at = Item::Value(value);
        }
        Ok(config.to_string())
    }
}

impl FromStr for ArmSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<ArmSpec, String> {
        let kind = |name: &str| {
            ArmKind::from_str(name, true).map_err(|_| {
                let known: Vec<_> =
                    ArmKind::value_variants().iter().map(|k| ArmSpec::of(*k).name).collect();
                format!("no arm is called `{name}`; there are {}", known.join(", "))
            })
        };
        let mut parts = text.split(',');
        let (name, of) = match parts.next().unwrap_or_default().split_once('=') {
            Some((name, of)) => (name.to_owned(), kind(of)?),
            None => (text.to_owned(), kind(text)?),
        };
        let set = parts.map(setting).collect::<Result<_, _>>()?;
        let spec = ArmSpec { name, kind: of, set };
        spec.config().map_err(|error| error.to_string())?;
        Ok(spec)
    }
}

fn setting(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text
        .split_once('=')
        .filter(|(key, _)| key.contains('.') && key.split('.').all(|part| !part.is_empty()))
        .ok_or_else(|| {
            format!("`{text}` is not SETTING=VALUE, such as completion.multiline=never")
        })?;
    // A text that is not a TOML value is a string without its quotes.
    let value = value.parse::<Value>().unwrap_or_else(|_| Value::from(value));
    Ok((key.to_owned(), value))
}

/// A daemon in a home of its own, and one editor window that is connected to it. When this is
/// dropped, both end and the home is removed.
pub struct Arm {
    pub name: String,
    pub learns: bool,
    // Fields are dropped in this order: the editor leaves, the daemon ends, the home is removed.
    client: Client,
    daemon: Daemon,
    home: Option<TempDir>,
}

/// An empty home. Its path is short, because the path of the socket in it may have 108 bytes.
pub fn temporary_home() -> Result<TempDir> {
    let home = tempfile::Builder::new().prefix("hone-").tempdir();
    home.context("cannot create a temporary home for the rehearsal")
}

impl Arm {
    /// Starts the arm in `home` and continues from what is there. Its editor has `folder` open.
    pub fn start(
        spec: &ArmSpec,
        settings: &RunSettings,
        home: TempDir,
        folder: Option<&Path>,
    ) -> Result<Arm> {
        let hone = settings.hone.as_path();
        let config = home.path().join("config.toml");
        fs::write(&config, spec.config()?)
            .with_context(|| format!("cannot write {}", config.display()))?;

        let mut daemon = Daemon::spawn(settings, home.path())?;
        let started = daemon.wait_until_ready().and_then(|()| {
            let log = log_file(home.path())?;
            let client = Client::spawn(
                Command::new(hone).arg("lsp").env("HONE_HOME", home.path()).stderr(log),
            )
            .with_context(|| format!("cannot start {} lsp", hone.display()))?;
            client.initialize_in(&[Encoding::Utf16], folder)?;
            Ok(client)
        });
        match started {
            Ok(client) => {
                let name = spec.name.clone();
                let learns = spec.kind.learns();
                let arm = Arm { name, learns, client, daemon, home: Some(home) };
                Ok(arm)
            }
            Err(error) => {
                drop(daemon);
                // Ctrl-C ends the daemons too, so there is nothing to look into.
                if interrupt::requested() {
                    return Err(error);
                }
                Err(error.context(kept_log(&spec.name, home)))
            }
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn status(&self) -> Result<DaemonStatus> {
        let value = self.client.status()?;
        serde_json::from_value(value).context("hone/status does not answer as documented")
    }

    /// Returns what the arm's updates report.
    pub fn learned(&self) -> Result<Learned> {
        let list = self.daemon.run_for_json(&["adapter", "list", "--json"])?;
        let mut learned = Learned::default();
        for adapter in list["adapters"].as_array().into_iter().flatten() {
            let report = &adapter["report"];
            learned.kl_base = report["kl_base"].as_f64();
            if let Ok(references) = ReferenceScores::deserialize(&report["demonstrated"]) {
                learned.references.push(references);
            }
        }
        Ok(learned)
    }

    /// The daemon's verdicts: the outcome of each offer that was accepted or rejected, by its id.
    pub fn verdicts(&self) -> Result<HashMap<String, String>> {
        let printed = self.daemon.run(&["events", "--verdicts"])?;
        let mut verdicts = HashMap::new();
        for line in printed.lines() {
            let label: serde_json::Value =
                serde_json::from_str(line).context("`hone events --verdicts` printed no JSON")?;
            let outcome = label["outcome"]["kind"].as_str();
            if let (Some(offer), Some(outcome)) = (label["offer"].as_str(), outcome) {
                verdicts.insert(offer.to_owned(), outcome.to_owned());
            }
        }
        Ok(verdicts)
    }

    /// Waits until no update is under way, and calls `progress` at each poll. Without this wait,
    /// the adapter that serves a request would depend on the machine's speed and not on the seed.
    pub fn wait_for_update(
        &self,
        mut progress: impl FnMut(&DaemonStatus, Duration),
    ) -> Result<DaemonStatus> {
        let begun = Instant::now();
        loop {
            let status = self.status()?;
            if !status.is_learning() {
                return Ok(status);
            }
            if begun.elapsed() > limits::UPDATE {
                bail!("an update has not ended within {} s", limits::UPDATE.as_secs());
            }
            interrupt::check()?;
            progress(&status, begun.elapsed());
            std::thread::sleep(limits::UPDATE_POLL);
        }
    }

    /// Ends the daemon and returns the home.
    pub fn stop(mut self) -> Option<TempDir> {
        let home = self.home.take();
        drop(self);
        home
    }

    /// Runs a program of the user's with this arm's home, and waits for it.
    pub fn visit(&self, program: &Path) -> Result<()> {
        let mut command = Command::new(program);
        command.env("HONE_HOME", &self.daemon.home).env("HONE_REHEARSAL_ARM", &self.name);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        let status = status.with_context(|| format!("cannot start {}", program.display()))?;
        ensure!(status.success(), "{} ended with {status}", program.display());
        Ok(())
    }

    /// Leaves the home on the disk when the arm ends.
    pub fn keep_home(&mut self) -> Option<PathBuf> {
        self.home.take().map(TempDir::keep)
    }

    /// Adds to an error of this arm where its log is, and whether the daemon has died. The home
    /// with the log stays on the disk.
    pub fn with_log(&mut self, error: anyhow::Error) -> anyhow::Error {
        // Ctrl-C ends the daemons too, so there is nothing to look into.
        if interrupt::requested() {
            return error;
        }
        let Some(home) = self.home.take() else { return error };
        let log = kept_log(&self.name, home);
        match self.daemon.exited() {
            Some(status) => error.context(format!("the daemon died ({status}); {log}")),
            None => error.context(log),
        }
    }
}

fn log_file(home: &Path) -> Result<File> {
    let path = home.join(LOG_FILE);
    File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The last line of the arm's log, for an error.
fn last_log_line(home: &Path) -> String {
    let log = fs::read_to_string(home.join(LOG_FILE)).unwrap_or_default();
    log.trim().lines().next_back().map_or_else(String::new, |line| format!(": {line}"))
}

fn kept_log(name: &str, home: TempDir) -> String {
    format!("{name} arm: its log is {}", home.keep().join(LOG_FILE).display())
}

struct Daemon {
    child: Child,
    hone: PathBuf,
    home: PathBuf,
}

impl Daemon {
    fn spawn(settings: &RunSettings, home: &Path) -> Result<Daemon> {
        let hone = settings.hone.as_path();
        let log = log_file(home)?;
        let mut command = Command::new(hone);
        command.arg("serve").arg("--model").arg(&settings.model).arg("--manual-clock");
        if let Some(template) = &settings.template {
            command.arg("--template").arg(template);
        }
        if let Some(folder) = &settings.prompt_cache {
            command.arg("--prompt-cache").arg(folder);
        }
        let child = command
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

    /// Waits until `hone status` finds this very daemon. If `hone lsp` connected earlier, it would
    /// start a second daemon, which runs on the system's clock.
    fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < limits::DAEMON_START {
            interrupt::check()?;
            if let Some(status) = self.exited() {
                bail!(
                    "hone serve ended before it was ready ({status}){}",
                    last_log_line(&self.home)
                );
            }
            let status = self.run_for_json(&["status", "--json"]).ok();
            let pid = status.and_then(|status| status["daemon"]["pid"].as_u64());
            if pid == Some(u64::from(self.child.id())) {
                return Ok(());
            }
            std::thread::sleep(limits::DAEMON_POLL);
        }
        bail!("hone serve was not ready within {} s", limits::DAEMON_START.as_secs())
    }

    /// The JSON that `hone` prints about this home.
    fn run_for_json(&self, arguments: &[&str]) -> Result<serde_json::Value> {
        serde_json::from_str(&self.run(arguments)?)
            .with_context(|| format!("`hone {}` printed no JSON", arguments.join(" ")))
    }

    /// Returns what `hone` prints about this home.
    fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.hone)
            .args(arguments)
            .env("HONE_HOME", &self.home)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", self.hone.display()))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // First the daemon is asked to stop, so that it can end its learner. Then it is killed.
        if self.exited().is_none() {
            let _ = Command::new(&self.hone)
                .arg("stop")
                .env("HONE_HOME", &self.home)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            let begun = Instant::now();
            while self.exited().is_none() && begun.elapsed() < limits::DAEMON_STOP {
                std::thread::sleep(limits::DAEMON_POLL);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_is_a_kind_with_settings_of_its_own() {
        let plain: ArmSpec = "ppo-gate".parse().unwrap();
        assert_eq!(
            (plain.name.as_str(), plain.kind, plain.set.len()),
            ("ppo-gate", ArmKind::PpoGate, 0)
        );
        let hot: ArmSpec = "hot=ppo,lab.ppo.learning_rate=3e-4,gate.enabled=true".parse().unwrap();
        assert_eq!((hot.name.as_str(), hot.kind), ("hot", ArmKind::Ppo));
        let config: DocumentMut = hot.config().unwrap().parse().unwrap();
        assert_eq!(config["lab"]["ppo"]["learning_rate"].as_float(), Some(3e-4));
        assert_eq!(config["lab"]["ppo"]["demonstration_coefficient"].as_float(), Some(0.0));
        assert_eq!(config["gate"]["enabled"].as_bool(), Some(true), "the arm's own setting counts");
        for (text, says) in [
            ("chilled", "there are frozen, gate"),
            ("x=ppo,rank=3", "SETTING=VALUE"),
            ("x=ppo,.a=3", "SETTING=VALUE"),
            ("x=ppo,gate.enabled.a=3", "gate.enabled.a"),
        ] {
            let error = text.parse::<ArmSpec>().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_text_needs_no_quotes() {
        let arm: ArmSpec = "g=ppo,lab.ppo.advantage=group".parse().unwrap();
        let config = arm.config().unwrap();
        assert!(config.contains("advantage = \"group\""), "{config}");
    }
}
