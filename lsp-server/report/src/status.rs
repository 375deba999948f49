//! The status that `hone status` shows: JSON for other tools, one screen for a person, and the line
//! in editors.

use crate::layout::Layout;
use adapters::registry::{IMPORTED, Registry};
use feedback::episode::Counts;
use feedback::event::AdapterVersion;
use host::paths::PathsView;
use models::manifest::Manifest;
use models::size::Size;
use models::store::{ModelStatus as StoreStatus, Store};
use policy::gate::GateStatus;
use policy::learned_state::{LearnedState, Trend};
use policy::trial::{Rewards, TrialStatus, Verdict};
use policy::written::{Span, Written};
use printable::count;
use serde::{Deserialize, Serialize};
use services::adapter_service::Swaps;
use services::learner_status::{LearnerState, LearnerStatus};
use services::recent_requests::RecentRequest;
use settings::Config;
use std::path::PathBuf;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    pub version: String,
    pub paths: PathsView,
    /// `None` when no daemon runs.
    pub daemon: Option<DaemonStatus>,
    pub model: ModelStatus,
    /// `None` if there is none.
    pub next_edit_model: Option<NextEditModelStatus>,
    pub adapter: AdapterStatus,
    pub episodes: Counts,
    pub evidence: Evidence,
    /// True if `hone pause completions` is in force. Then only an invoked completion is answered.
    pub completions_paused: bool,
    /// The last request for a completion that was answered, and why it ended as it did.
    pub last_request: Option<RecentRequest>,
    /// The number of offers of which nothing was stored since this daemon started, because their
    /// file is ignored or a secret is near.
    pub withheld: u64,
    pub learner: LearnerView,
    /// What is wrong with the settings, each with its file and line. A daemon that runs continues
    /// with the settings that it had.
    pub settings_problems: Vec<String>,
    /// Why a restart of the daemon would end completions, if it would, and what to do about it: the
    /// file of the chosen model is missing.
    pub restart_trouble: Option<String>,
}

/// What was derived from the verdicts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Evidence {
    pub trend: Trend,
    /// What the user wrote lately, and how much of it is completions that were kept.
    pub written: Written,
    pub gate: Option<GateStatus>,
    pub gate_enabled: bool,
    pub trial: Option<TrialStatus>,
    /// The candidate and the verdict of the last trial that has ended.
    pub last_trial: Option<(AdapterVersion, Verdict)>,
}

impl Evidence {
    pub fn of(learned_state: &LearnedState, registry: &Registry, gate_enabled: bool) -> Evidence {
        let ended = registry.entries().iter().rev();
        let mut ended = ended.filter_map(|entry| Some((entry.version, entry.verdict.clone()?)));
        Evidence {
            trend: learned_state.trend.clone(),
            written: learned_state.written.clone(),
            gate: Some(learned_state.gate.status()),
            gate_enabled,
            trial: learned_state.trial.as_ref().map(|trial| trial.status()),
            last_trial: ended.next(),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DaemonStatus {
    pub pid: u32,
    pub uptime_s: u64,
    /// The open connections of editors.
    pub sessions: usize,
    /// The texts of HTTP clients that are followed.
    #[serde(default)]
    pub http_texts: usize,
    /// The memory that the daemon takes, with the model's.
    pub memory_bytes: Option<u64>,
    /// True if a setting has changed that takes effect only at the next start.
    pub needs_restart: bool,
}

impl DaemonStatus {
    /// Which process it is, for whom it works, and what that takes.
    pub fn at_work(&self) -> String {
        let texts = match self.http_texts {
            0 => String::new(),
            texts => format!(", {} of HTTP clients", count(texts, "text")),
        };
        let memory = self.memory_bytes.map_or(String::new(), |bytes| format!(", {}", Size(bytes)));
        let (pid, minutes) = (self.pid, self.uptime_s / 60);
        let sessions = count(self.sessions, "editor session");
        format!("pid {pid}, up {minutes} min, {sessions}{texts}{memory}")
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelStatus {
    pub name: String,
    pub arch: String,
    pub path: PathBuf,
    pub sha256: String,
    /// `None` when no daemon runs.
    pub backend: Option<String>,
    /// Whether the model is in memory. `None` when no daemon runs.
    pub memory: Option<ModelMemory>,
    /// Whether the model's file is here.
    pub file: Option<ModelFile>,
    /// The other code that prompts may hold. `None` when no daemon runs.
    pub context: Option<ContextStatus>,
}

/// The model for next edits, which is loaded next to the one that completes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NextEditModelStatus {
    pub name: String,
    pub file: ModelFile,
    /// Whether it is in memory. `None` before its first request, and when no daemon runs.
    pub memory: Option<ModelMemory>,
}

impl NextEditModelStatus {
    pub fn of(
        store: &Store,
        manifest: &Manifest,
        memory: Option<ModelMemory>,
    ) -> NextEditModelStatus {
        let (name, file) = (manifest.name.clone(), ModelFile::of(store, manifest));
        NextEditModelStatus { name, file, memory }
    }
}

/// How much other code a prompt may hold.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ContextStatus {
    pub chars: usize,
    /// Why it is so many, if Hone has chosen it. `None`: the user has.
    pub reason: Option<String>,
}

/// A model's file, found without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFile {
    Here,
    Missing,
    /// A pull was interrupted.
    Partial {
        percent: u64,
    },
    Damaged,
}

impl ModelFile {
    pub fn of(store: &Store, manifest: &Manifest) -> ModelFile {
        match store.status(manifest) {
            StoreStatus::Present | StoreStatus::Verified => ModelFile::Here,
            StoreStatus::Missing => ModelFile::Missing,
            StoreStatus::Partial { bytes } => {
                ModelFile::Partial { percent: 100 * bytes / manifest.bytes.max(1) }
            }
            StoreStatus::Wrong => ModelFile::Damaged,
        }
    }

    /// Returns what is wrong, if anything is, and the command that helps. The chosen model needs no
    /// name.
    pub fn trouble(self, name: Option<&str>) -> Option<String> {
        let state = match self {
            ModelFile::Here => return None,
            ModelFile::Missing => "not here".to_owned(),
            ModelFile::Partial { percent } => format!("not here yet ({percent} % of it is)"),
            ModelFile::Damaged => "damaged".to_owned(),
        };
        let name = name.map_or(String::new(), |name| format!(" {name}"));
        Some(format!("{state}: run `hone model pull{name}`"))
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelMemory {
    Loaded,
    /// Nobody asked for a completion for a while, or something was forgotten.
    GivenBack,
    Loading,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AdapterStatus {
    /// 0: the base model alone.
    pub active: AdapterVersion,
    pub parent: Option<AdapterVersion>,
    /// How many adapters were learned and not forgotten.
    #[serde(default)]
    pub learned: usize,
    /// The repository from whose history it learned, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<PathBuf>,
    /// Unix milliseconds.
    pub updated_at: Option<u64>,
    /// The number of swaps since this daemon started.
    pub swaps: u64,
    /// The time for which the last swap stopped the engine.
    pub last_swap_ms: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LearnerView {
    pub state: LearnerState,
    pub updates: u64,
    /// The duration of the last update.
    pub last_update_ms: Option<u64>,
    pub last_error: Option<String>,
    /// The number of labelled episodes that no update has learned from yet.
    pub waiting: usize,
    /// The number of labels that start an update.
    pub batch: usize,
    /// What the running job does, in a few words.
    pub progress: Option<String>,
    /// Why labels wait although there are enough, or why nothing can be learned.
    pub held_back: Option<String>,
}

impl LearnerView {
    pub fn of(
        learner: LearnerStatus,
        config: &Config,
        architecture: &str,
        registry: &Registry,
        waiting: usize,
        last_error: Option<String>,
    ) -> LearnerView {
        let batch = config.lab.batch_episodes;
        let refusal = models::architecture::learning_refusal(architecture);
        let refusal = refusal.or_else(|| registry.learning_refusal());
        let is_on = config.learning.enabled && refusal.is_none();
        let state = match learner.state {
            LearnerState::Idle | LearnerState::Backoff if !is_on => LearnerState::Off,
            LearnerState::Idle if waiting >= batch => LearnerState::Waiting,
            state => state,
        };
        let mut updates = registry.entries().iter().rev();
        let last_update = updates.find(|entry| entry.report.job != IMPORTED);
        LearnerView {
            state,
            updates: registry.entries().len() as u64,
            last_update_ms: last_update.map(|entry| entry.report.total_ms),
            last_error,
            waiting,
            batch,
            progress: learner.progress,
            held_back: refusal.or(learner.held_back),
        }
    }
}

impl AdapterStatus {
    pub fn of(registry: &Registry, swaps: Swaps) -> AdapterStatus {
        let entry = registry.entry(registry.active());
        AdapterStatus {
            active: registry.active(),
            parent: entry.map(|entry| entry.parent),
            learned: registry.entries().iter().filter(|entry| !entry.forgotten).count(),
            history: entry.and_then(|entry| entry.history.clone()),
            updated_at: entry.map(|entry| entry.created_at_ms),
            swaps: swaps.count,
            last_swap_ms: swaps.last_ms,
        }
    }
}

/// The parameters of `didChangeStatus`, which an editor's status bar shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLine {
    pub busy: bool,
    /// `Normal`, `Warning` or `Error`.
    pub kind: String,
    pub message: String,
}

impl StatusLine {
    /// The line of a daemon whose model is not in memory yet. VS Code's status bar knows this
    /// message.
    pub fn loading() -> StatusLine {
        let message = "loading the model".into();
        StatusLine { busy: true, kind: "Normal".into(), message }
    }
}

/// The status as one screen for a person.
pub fn screen(status: &Status, layout: Layout) -> String {
    let mut fields = vec![("daemon", daemon_line(status)), ("model", model_line(status))];
    if let Some(context) = &status.model.context {
        fields.push(("context", context_line(context)));
    }
    if let Some(model) = &status.next_edit_model {
        fields.push(("next edits", next_edit_model_line(model)));
    }
    if !status.settings_problems.is_empty() {
        fields.push(("settings", status.settings_problems.join("\n")));
    }
    fields.push(("adapter", adapter_line(&status.adapter, status.evidence.trial.as_ref())));
    fields.push(("offers", offers_line(&status.episodes)));
    if let Some(gate) = &status.evidence.gate {
        fields.push(("gate", gate_line(gate, status.evidence.gate_enabled)));
    }
    if status.completions_paused {
        let paused = "paused, except when invoked; `hone resume completions` turns them on again";
        fields.push(("completions", paused.into()));
    }
    let silent = status.last_request.as_ref().filter(|last| !last.why.is_offer());
    if let Some(last) = silent {
        let line = format!("nothing was shown. {} `hone why` says more", last.why.sentence());
        fields.push(("last key", line));
    }
    if status.withheld > 0 {
        fields.push(("withheld", withheld_line(status.withheld)));
    }
    fields.push(("learner", learner_line(&status.learner)));
    let trial = trial_lines(&status.evidence);
    if !trial.is_empty() {
        fields.push(("trial", trial.join("\n")));
    }
    if let Some(error) = &status.learner.last_error {
        fields.push(("last error", error.clone()));
    }
    fields.push(("files", status.paths.home.display().to_string()));
    let headline = headline(&status.evidence.written);
    let above = layout.wrapped(&format!("Hone {}\n{headline}", status.version));
    format!("{above}\n{}", layout.fields(fields))
}

/// Returns what Hone is worth to the user, as a line of its own. It is empty before anything was
/// written.
fn headline(written: &Written) -> String {
    let total = written.total();
    let Some(share) = total.kept_share() else { return String::new() };
    let wrong = match total.wrong_per_100_lines() {
        Some(wrong) => format!("; {wrong:.0} wrong offers for every 100 lines that you typed"),
        None => String::new(),
    };
    let sparks = sparkline(written.spans().filter_map(Span::kept_share));
    format!(
        "{sparks} {:.0} % of what you wrote lately are completions that you kept{wrong}\n",
        100.0 * share
    )
}

fn daemon_line(status: &Status) -> String {
    let restart = "; `hone restart` takes the changed settings";
    match &status.daemon {
        None => "not running (an editor starts it)".into(),
        Some(daemon)
            if daemon.needs_restart
                && status.restart_trouble.is_none()
                && status.settings_problems.is_empty() =>
        {
            format!("{}{restart}", daemon.at_work())
        }
        Some(daemon) => daemon.at_work(),
    }
}

fn model_line(status: &Status) -> String {
    let trouble = status.model.file.and_then(|file| file.trouble(None));
    let backend = match (&trouble, &status.model.backend) {
        (_, Some(backend)) => backend.clone(),
        (Some(trouble), None) => trouble.clone(),
        (None, None) => "not loaded".to_owned(),
    };
    let resident = match status.model.memory {
        Some(ModelMemory::GivenBack) => "; gave its memory back, and the next key loads it",
        Some(ModelMemory::Loading) => "; it is being loaded",
        Some(ModelMemory::Loaded) | None => "",
    };
    // A daemon that holds the model needs the file again when it has given the memory back.
    let file = match (&status.restart_trouble, trouble) {
        (Some(trouble), _) => format!("; {trouble}"),
        (None, Some(trouble)) if status.model.backend.is_some() => {
            format!("; its file is {trouble}")
        }
        (None, _) => String::new(),
    };
    format!("{} ({}), {backend}{resident}{file}", status.model.name, status.model.arch)
}

fn next_edit_model_line(model: &NextEditModelStatus) -> String {
    let trouble = model.file.trouble(Some(&model.name));
    let state = match (&trouble, model.memory) {
        (Some(trouble), _) => trouble.as_str(),
        (None, Some(ModelMemory::Loaded)) => "in memory",
        (None, Some(ModelMemory::Loading)) => "it is being loaded",
        (None, Some(ModelMemory::GivenBack) | None) => "the next request for an edit loads it",
    };
    format!("{}, {state}", model.name)
}

fn context_line(context: &ContextStatus) -> String {
    let amount = match context.chars {
        0 => "no other code in prompts".to_owned(),
        chars => format!("{chars} characters of other code in a prompt"),
    };
    let reason = context.reason.as_deref().unwrap_or("you have set completion.context_chars");
    format!("{amount}: {reason}")
}

fn adapter_line(adapter: &AdapterStatus, trial: Option<&TrialStatus>) -> String {
    let swap = match adapter.last_swap_ms {
        Some(ms) => {
            let swaps = count(adapter.swaps, "swap");
            format!(", {swaps}, the last held completions for {ms:.0} ms")
        }
        None => String::new(),
    };
    let tried = match trial {
        Some(trial) => format!("; v{} is being tried", trial.arms.candidate),
        None => String::new(),
    };
    match adapter.active {
        0 if trial.is_some() => format!("none so far{tried}"),
        0 if adapter.learned > 0 => {
            "none: the model alone serves; `hone adapter` shows what was learned".into()
        }
        0 => "none yet: the model alone serves (`hone learn --history` learns from a repository's \
              commits)"
            .into(),
        active => match &adapter.history {
            Some(root) => {
                format!("v{active}, learned from the history of {}{swap}{tried}", root.display())
            }
            None => {
                format!("v{active}, learned from v{}{swap}{tried}", adapter.parent.unwrap_or(0))
            }
        },
    }
}

fn offers_line(counts: &Counts) -> String {
    if counts.total == 0 {
        return "none yet".into();
    }
    let judged = counts.total - counts.superseded - counts.unseen - counts.unlabelled;
    let accepted = counts.accepted + counts.partly_accepted + counts.typed_through;
    let rate = match judged {
        0 => String::new(),
        judged => format!(" = {:.0} %", 100.0 * accepted as f64 / judged as f64),
    };
    format!(
        "{} made; {accepted} of {judged} judged were accepted{rate} ({} whole, {} partly, {} \
         typed through; rejected: {} by Esc, {} after 10 s, {} typed on)",
        counts.total,
        counts.accepted,
        counts.partly_accepted,
        counts.typed_through,
        counts.rejected_esc,
        counts.rejected_timeout,
        counts.rejected_edit,
    )
}

/// The marks of a sparkline, lowest first.
const MARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One mark for each share, from 0 to 1.
fn sparkline(shares: impl Iterator<Item = f64>) -> String {
    shares.map(|share| MARKS[((share * 8.0) as usize).min(7)]).collect()
}

fn gate_line(gate: &GateStatus, enabled: bool) -> String {
    let state = if enabled { "" } else { "off, but learns; " };
    match gate.labels {
        0 => format!("{state}at its prior; it learns from every label (`hone gate`)"),
        labels => format!("{state}{} learned (`hone gate` shows what)", count(labels, "label")),
    }
}

/// With fewer offers of an adapter, or texts, a share says nothing.
const TELLING_OFFERS: u64 = 20;

/// One line for the running trial, and one for the trial that ended last.
pub fn trial_lines(evidence: &Evidence) -> Vec<String> {
    let ended = evidence.last_trial.as_ref();
    let ended = ended.map(|(version, verdict)| verdict_line(*version, verdict));
    evidence.trial.as_ref().map(trial_line).into_iter().chain(ended).collect()
}

fn trial_line(trial: &TrialStatus) -> String {
    let before = match trial.arms.incumbent {
        0 => "the model alone".into(),
        version => format!("v{version}"),
    };
    let offers = trial.candidate.offers + trial.incumbent.offers;
    let mut line = format!(
        "v{} is being tried against {before}: {offers} of up to {} offers",
        trial.arms.candidate, trial.longest
    );
    let rate = |rewards: &Rewards| {
        let mean = rewards.mean().filter(|_| rewards.offers >= TELLING_OFFERS);
        mean.map(|mean| (100.0 * mean).round())
    };
    if let (Some(own), Some(other)) = (rate(&trial.candidate), rate(&trial.incumbent)) {
        line.push_str(&format!(
            "; {own} % of its offers were accepted, and {other} % of the other's"
        ));
    }
    if trial.references >= TELLING_OFFERS {
        line.push_str(&format!("; {}", trial.references_line()));
    }
    line
}

fn verdict_line(version: AdapterVersion, verdict: &Verdict) -> String {
    let end = match verdict.end {
        policy::trial::End::Promoted => "serves",
        policy::trial::End::Dropped => "was given up",
        policy::trial::End::Undecided => "did not prove itself",
    };
    // The holdout check refuses a candidate before it makes any offer.
    let after = match verdict.offers {
        0 => String::new(),
        offers => format!(" after {}", count(offers, "offer")),
    };
    format!("v{version} {end}{after}: {}", verdict.reason)
}

fn withheld_line(offers: u64) -> String {
    let offers = count(offers, "offer");
    format!("{offers} more, of which nothing is stored: in ignored files, or near a secret")
}

fn learner_line(learner: &LearnerView) -> String {
    let state = match learner.state {
        LearnerState::Off if let Some(reason) = &learner.held_back => reason.clone(),
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
    format!("{state}; {}{last}", count(learner.updates, "update"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_for_next_edits_is_named_with_its_memory_or_how_to_fetch_it() {
        let line = |file, memory| {
            next_edit_model_line(&NextEditModelStatus { name: "small".into(), file, memory })
        };
        let unasked = line(ModelFile::Here, None);
        assert_eq!(unasked, "small, the next request for an edit loads it");
        assert_eq!(line(ModelFile::Here, Some(ModelMemory::Loaded)), "small, in memory");
        let missing = line(ModelFile::Missing, None);
        assert_eq!(missing, "small, not here: run `hone model pull small`");
    }
}
