//! What `hone status` tells: the JSON other tools rely on, one screen for a
//! person, and the line editors show.

use crate::daemon::{Daemon, lock};
use crate::home::Paths;
use comfy_table::{Table, presets};
use feedback::episode::Counts;
use feedback::event::AdapterVersion;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub paths: Paths,
    /// `None` when no daemon runs.
    pub daemon: Option<DaemonStatus>,
    pub model: ModelStatus,
    pub adapter: AdapterStatus,
    pub episodes: Counts,
    pub learner: LearnerStatus,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DaemonStatus {
    pub pid: u32,
    pub uptime_s: u64,
    pub sessions: usize,
    /// A setting was changed that only the next start takes.
    pub needs_restart: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelStatus {
    pub name: String,
    pub arch: String,
    pub path: PathBuf,
    pub sha256: String,
    /// `None` when no daemon runs.
    pub backend: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AdapterStatus {
    /// 0: the base model alone.
    pub active: AdapterVersion,
    pub parent: Option<AdapterVersion>,
    /// Unix milliseconds.
    pub updated_at: Option<u64>,
    /// Swaps in this life of the daemon.
    pub swaps: u64,
    /// How long the engine was held by the last swap.
    pub last_swap_ms: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LearnerState {
    /// Nothing to do, or too few labels yet.
    Idle,
    /// Enough labels wait for the learner to start.
    Waiting,
    Training,
    /// Waits after a failure; `last_error` says which.
    Backoff,
    /// Paused: `learning.enabled = false`, or `hone pause`.
    Off,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LearnerStatus {
    pub state: LearnerState,
    pub updates: u64,
    /// How long the last update took.
    pub last_update_ms: Option<u64>,
    pub last_error: Option<String>,
    /// Labelled episodes that no update has learned from yet.
    pub waiting: usize,
    /// Labels that start an update.
    pub batch: usize,
    /// What the running job does, in a few words.
    pub progress: Option<String>,
    /// Why labels wait although there are enough.
    #[serde(default)]
    pub held_back: Option<String>,
    #[serde(skip)]
    pub swaps: u64,
    #[serde(skip)]
    pub last_swap_ms: Option<f64>,
}

impl LearnerStatus {
    pub fn new(enabled: bool) -> Self {
        LearnerStatus {
            state: if enabled { LearnerState::Idle } else { LearnerState::Off },
            updates: 0,
            last_update_ms: None,
            last_error: None,
            waiting: 0,
            batch: 0,
            progress: None,
            held_back: None,
            swaps: 0,
            last_swap_ms: None,
        }
    }
}

/// `didChangeStatus`: what an editor's status bar shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLine {
    pub busy: bool,
    /// `Normal`, `Warning` or `Error`.
    pub kind: String,
    pub message: String,
}

impl StatusLine {
    pub fn ready(model: &str, adapter: AdapterVersion) -> StatusLine {
        let message = match adapter {
            0 => model.to_owned(),
            version => format!("{model}, adapter v{version}"),
        };
        StatusLine { busy: false, kind: "Normal".into(), message }
    }

    pub fn paused(model: &str, adapter: AdapterVersion) -> StatusLine {
        let ready = StatusLine::ready(model, adapter);
        StatusLine { message: format!("{}, learning paused", ready.message), ..ready }
    }

    pub fn learning() -> StatusLine {
        StatusLine { busy: true, kind: "Normal".into(), message: "learning".into() }
    }

    pub fn warning(message: String) -> StatusLine {
        StatusLine { busy: false, kind: "Warning".into(), message }
    }
}

pub fn of(daemon: &Daemon) -> Status {
    let registry = lock(&daemon.registry);
    let active = registry.active();
    let entry = registry.entry(active);
    let (parent, updated_at) = (entry.map(|e| e.parent), entry.map(|e| e.created_at_ms));
    drop(registry);
    let mut learner = lock(&daemon.learner).clone();
    learner.waiting = daemon.waiting_episodes();
    learner.batch = daemon.config().learning.batch_episodes;
    if learner.state == LearnerState::Idle && learner.waiting >= learner.batch {
        learner.state = LearnerState::Waiting;
    }
    Status {
        version: env!("CARGO_PKG_VERSION").into(),
        paths: daemon.home.paths(),
        daemon: Some(DaemonStatus {
            pid: std::process::id(),
            uptime_s: daemon.started.elapsed().as_secs(),
            sessions: daemon.open_sessions(),
            needs_restart: daemon.needs_restart(),
        }),
        model: ModelStatus {
            name: daemon.model.name.clone(),
            arch: daemon.model.architecture.clone(),
            path: daemon.model.path.clone(),
            sha256: daemon.model.sha256.clone(),
            backend: Some(daemon.engine.info().backend.clone()),
        },
        adapter: AdapterStatus {
            active,
            parent,
            updated_at,
            swaps: learner.swaps,
            last_swap_ms: learner.last_swap_ms,
        },
        episodes: daemon.counts(),
        learner,
    }
}

/// One screen for a person.
pub fn screen(status: &Status) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.add_row(vec!["daemon".into(), daemon_line(status)]);
    table.add_row(vec!["model".into(), model_line(status)]);
    table.add_row(vec!["adapter".into(), adapter_line(&status.adapter)]);
    table.add_row(vec!["offers".into(), offers_line(&status.episodes)]);
    table.add_row(vec!["learner".into(), learner_line(&status.learner)]);
    if let Some(error) = &status.learner.last_error {
        table.add_row(vec!["last error".into(), error.clone()]);
    }
    table.add_row(vec!["files".into(), status.paths.home.display().to_string()]);
    format!("Hone {}\n{table}", status.version)
}

fn daemon_line(status: &Status) -> String {
    match &status.daemon {
        None => "not running (an editor starts it)".into(),
        Some(daemon) => format!(
            "pid {}, up {} min, {} editor session(s){}",
            daemon.pid,
            daemon.uptime_s / 60,
            daemon.sessions,
            if daemon.needs_restart { "; `hone stop`, and the next takes model.*" } else { "" }
        ),
    }
}

fn model_line(status: &Status) -> String {
    let backend = status.model.backend.as_deref().unwrap_or("not loaded");
    format!("{} ({}), {backend}", status.model.name, status.model.arch)
}

fn adapter_line(adapter: &AdapterStatus) -> String {
    let swap = match adapter.last_swap_ms {
        Some(ms) => {
            format!(", {} swap(s), the last held completions for {ms:.0} ms", adapter.swaps)
        }
        None => String::new(),
    };
    match adapter.active {
        0 => "none yet: the base model serves".into(),
        active => format!("v{active}, learned from v{}{swap}", adapter.parent.unwrap_or(0)),
    }
}

fn offers_line(counts: &Counts) -> String {
    let judged = counts.total - counts.superseded - counts.unseen - counts.unlabelled;
    let taken = counts.accepted + counts.partly_accepted + counts.typed_through;
    let rate = match judged {
        0 => String::new(),
        judged => format!(" = {:.0} %", 100.0 * taken as f64 / judged as f64),
    };
    format!(
        "{} made; {taken} of {judged} judged were taken{rate} ({} accepted, {} in part, {} typed \
         through; rejected: {} Esc, {} timeout, {} edit)",
        counts.total,
        counts.accepted,
        counts.partly_accepted,
        counts.typed_through,
        counts.rejected_esc,
        counts.rejected_timeout,
        counts.rejected_edit,
    )
}

fn learner_line(learner: &LearnerStatus) -> String {
    let state = match learner.state {
        LearnerState::Off => "paused; `hone resume` takes it up again".into(),
        LearnerState::Idle | LearnerState::Waiting if let Some(reason) = &learner.held_back => {
            format!("labels wait: {reason}")
        }
        LearnerState::Idle => {
            format!("{} of {} labels until the next update", learner.waiting, learner.batch)
        }
        LearnerState::Waiting => "an update is about to start".into(),
        LearnerState::Training => {
            format!("training: {}", learner.progress.as_deref().unwrap_or("starting"))
        }
        LearnerState::Backoff => "waiting after a failure".into(),
    };
    let last = match learner.last_update_ms {
        Some(ms) => format!(", the last took {:.0} s", ms as f64 / 1000.0),
        None => String::new(),
    };
    format!("{state}; {} update(s){last}", learner.updates)
}
