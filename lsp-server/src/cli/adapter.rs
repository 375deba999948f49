//! `hone adapter`: what was learned, and which of it serves.

use crate::app::startup::configured_manifest;
use crate::cli::settings::Configured;
use crate::cli::{inspect, output};
use crate::daemon::handshake::Command;
use crate::daemon::{client, election};
use adapters::import::{self, ImportedFile};
use adapters::registry::adoption::{Basis, Outdated};
use adapters::registry::{Entry, HISTORY_JOB, IMPORTED, Origin, Registry, TEAM_JOB};
use anyhow::{Context, Result, ensure};
use clap::{Subcommand, ValueEnum};
use feedback::clock::{Clock, SystemClock};
use feedback::event::AdapterVersion;
use feedback::job::{BeforeAfter, PhaseTimes, UpdateReport};
use host::paths::Paths;
use jiff::Timestamp;
use models::adapter::LoraAdapter;
use models::gguf::Gguf;
use models::manifest::Manifest;
use models::peft;
use models::store::Store;
use policy::trial::End;
use report::layout::{Column, Layout};
use report::status::trial_lines;
use serde_json::json;
use settings::Config;
use std::fs::File;
use std::path::{Path, PathBuf};

const COLUMNS: [Column; 10] = [
    Column::Text(""),
    Column::Text("version"),
    Column::Text("from"),
    Column::Text("learned"),
    Column::Number("labels"),
    Column::Text("trial"),
    Column::Text("kept"),
    Column::Number("reward"),
    Column::Number("KL"),
    Column::Number("took"),
];

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AdapterArgs {
    #[command(subcommand)]
    command: Option<AdapterCommand>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum AdapterCommand {
    /// List what was learned, as `hone adapter` alone does (scripts)
    #[command(hide = true)]
    List {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show how an adapter came to be: its labels, its training, how far it is from the base
    ///
    /// Without a version, it also shows how the newest adapter fares against what served before
    /// it. An update must prove itself: until it has, it answers a part of the requests.
    Show {
        /// A version from `hone adapter`; the one that serves if left out
        #[arg(value_parser = version)]
        version: Option<AdapterVersion>,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Serve this adapter from the next completion on; 0 is the model alone
    ///
    /// Learning continues from it.
    Use {
        /// A version from `hone adapter`
        #[arg(value_parser = version)]
        version: AdapterVersion,
    },
    /// Serve the adapter that the active one was learned from
    Rollback,
    /// Write an adapter for other programs
    ///
    ///   hone adapter export my-adapter              Hugging Face PEFT (a folder)
    ///   hone adapter export my.gguf --format gguf   llama.cpp, `--lora my.gguf`
    #[command(verbatim_doc_comment)]
    Export {
        /// A folder (peft) or a file (gguf) that does not exist yet
        path: PathBuf,
        /// A version from `hone adapter`; the one that serves if left out
        #[arg(value_parser = version)]
        version: Option<AdapterVersion>,
        #[arg(long, value_enum, default_value_t = Format::Peft)]
        format: Format,
    },
    /// Register a LoRA adapter that PEFT has saved or Hone has exported
    ///
    ///   hone adapter import my-adapter     a folder of PEFT's
    ///   hone adapter import my.gguf        a file that Hone has exported
    ///
    /// It must be for the served model, and PEFT's must adapt q, k, v, o, gate, up and down_proj.
    /// It does not serve before `hone adapter use`. Learning can continue from it if its rank and
    /// alpha are those of the settings.
    #[command(verbatim_doc_comment)]
    Import {
        /// A folder with adapter_config.json and adapter_model.safetensors, or a GGUF file
        path: PathBuf,
    },
    /// Register an adapter and have it serve, unless something else serves by now or something was
    /// forgotten (`hone rehearse --adopt`)
    #[command(hide = true)]
    Adopt {
        /// A GGUF file
        path: PathBuf,
        /// The version that served when it was compared
        #[arg(long, value_parser = version)]
        compared_with: AdapterVersion,
        /// The generation of `hone adapter --json` when it began to learn
        #[arg(long)]
        generation: u64,
        /// The folder of the repository from whose history it learned
        #[arg(long, value_name = "DIR")]
        history: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Peft,
    Gguf,
}

/// A version as the list shows it, with or without the `v`.
fn version(text: &str) -> Result<AdapterVersion, String> {
    let number = text.strip_prefix('v').unwrap_or(text);
    number.parse().map_err(|_| "a version is a number that `hone adapter` shows, such as 3".into())
}

pub async fn run(home: &Paths, args: AdapterArgs) -> Result<()> {
    home.create()?;
    let configured = Configured::read(home);
    let config = &configured.config;
    let manifest = configured_manifest(home, &configured.catalogue, config)?;
    let base_sha256 = manifest.sha256.clone();
    let (registry, trouble) = Registry::open(&home.adapters(), &base_sha256);
    if let Some(trouble) = trouble {
        tell!("note: {trouble}");
    }
    match args.command.unwrap_or(AdapterCommand::List { json: args.json }) {
        AdapterCommand::List { json } => list(&registry, json),
        AdapterCommand::Show { version, json } => show(home, &registry, version, json).await,
        AdapterCommand::Use { version } => {
            choose(home, &registry, |_| Ok(version), &base_sha256).await
        }
        AdapterCommand::Rollback if registry.active() == 0 => {
            say!("the model alone serves: there is nothing to roll back")
        }
        AdapterCommand::Rollback => choose(home, &registry, parent_of_active, &base_sha256).await,
        AdapterCommand::Export { path, version, format } => {
            let version = version.unwrap_or(registry.active());
            export(home, &registry, version, manifest, &path, format)
        }
        AdapterCommand::Import { path } => {
            let base = Store::new(home.models()).verified(manifest)?;
            import(home, config, &path, &base, &base_sha256).await
        }
        AdapterCommand::Adopt { path, compared_with, generation, history } => {
            let base = Store::new(home.models()).verified(manifest)?;
            let base = (base.as_path(), base_sha256.as_str());
            let basis = Basis { compared_with, generation };
            // `hone forget` finds by it what the adapter may have learned.
            let history = history.map(|folder| folder.canonicalize().unwrap_or(folder));
            let origin = history.map(|history| Origin { history, report: Box::default() });
            let version = adopt(home, &path, base, origin, basis).await??;
            emit!("{}", json!({ "version": version }))
        }
    }
}

fn parent_of_active(registry: &Registry) -> Result<AdapterVersion> {
    let active = registry.entry(registry.active());
    Ok(active.context("the model serves alone: there is nothing to roll back")?.parent)
}

async fn choose(
    home: &Paths,
    registry: &Registry,
    version: impl Fn(&Registry) -> Result<AdapterVersion>,
    base_sha256: &str,
) -> Result<()> {
    let (mut chosen, mut before) = (version(registry)?, registry.active());
    if !client::ask(home, Command::UseAdapter { adapter: chosen }).await? {
        let mut own = OwnRegistry::open(home, base_sha256)?;
        (chosen, before) = (version(&own.registry)?, own.registry.active());
        own.serve(chosen, base_sha256)?;
    }
    say!("{} serves from now on (before: {})", name(chosen), name(before))?;
    Ok(())
}

/// The registry while no daemon runs, and none may start. It is read after the daemon's lock
/// is taken, because a daemon that has just ended may have changed it until then.
struct OwnRegistry {
    registry: Registry,
    _elected: File,
}

impl OwnRegistry {
    fn open(home: &Paths, base_sha256: &str) -> Result<OwnRegistry> {
        let _elected = election::elect(home)?;
        let (registry, _) = Registry::open(&home.adapters(), base_sha256);
        Ok(OwnRegistry { registry, _elected })
    }

    fn serve(&mut self, version: AdapterVersion, base_sha256: &str) -> Result<()> {
        self.registry.check(version, base_sha256)?;
        self.registry.activate(version)
    }
}

/// The adapter of a version, from its checked file.
fn read(registry: &Registry, version: AdapterVersion, base_sha256: &str) -> Result<LoraAdapter> {
    ensure!(version > 0, "0 is the model alone, which has no adapter");
    registry.check(version, base_sha256)?;
    Ok(LoraAdapter::read(&registry.adapter_file(version))?)
}

fn export(
    home: &Paths,
    registry: &Registry,
    version: AdapterVersion,
    manifest: &Manifest,
    path: &Path,
    format: Format,
) -> Result<()> {
    ensure!(!path.exists(), "{}: is there already; name a new one", path.display());
    let adapter = read(registry, version, &manifest.sha256)?;
    match format {
        // The order of its rows depends on the model's architecture. For llama.cpp the adapter's
        // own file will do, so that a rehearsal's home, which has no model, can be exported from.
        Format::Peft => {
            let base = Store::new(home.models()).verified(manifest)?;
            peft::export(&adapter, &Gguf::open(&base)?, path)?;
        }
        Format::Gguf => {
            adapter.write(path)?;
        }
    }
    say!("{} is in {}", name(version), path.display())?;
    Ok(())
}

async fn import(
    home: &Paths,
    config: &Config,
    path: &Path,
    base: &Path,
    base_sha256: &str,
) -> Result<()> {
    let path = std::path::absolute(path)?;
    // Read here first: what is wrong with it is wrong without a daemon too.
    let adapter = import::read(&path, base, base_sha256)?;
    let version = register(home, path, &adapter, base_sha256).await?;
    say!("imported as v{version}; `hone adapter use {version}` serves it")?;
    let hyper = &config.lab.ppo;
    if (adapter.rank, adapter.alpha) != (hyper.lora_rank, hyper.lora_alpha) {
        say!(
            "note: learning continues from it with its own rank {} and alpha {}; the settings hold \
             for an adapter that starts from the model",
            adapter.rank,
            adapter.alpha
        )?;
    }
    if adapter.invocation.is_empty() {
        say!("note: it was trained to act on every token; Hone has it act behind the prompt only")?;
    }
    Ok(())
}

/// Registers what was trained outside the daemon and makes it serve, unless what it stands on has
/// changed. The daemon does it, or this process if none runs.
pub async fn adopt(
    home: &Paths,
    file: &Path,
    base: (&Path, &str),
    origin: Option<Origin>,
    basis: Basis,
) -> Result<Result<AdapterVersion, Outdated>> {
    let (model, base_sha256) = base;
    let file = std::path::absolute(file)?;
    let adapter = import::read(&file, model, base_sha256)?;
    let command = Command::Adopt { file, origin: origin.clone(), basis };
    type Answer = Result<Result<AdapterVersion, Outdated>, String>;
    if let Some(answer) = client::question::<Answer>(home, command).await? {
        return answer.map_err(anyhow::Error::msg);
    }
    let mut own = OwnRegistry::open(home, base_sha256)?;
    own.registry.check_writable()?;
    if let Err(outdated) = own.registry.check_basis(basis) {
        return Ok(Err(outdated));
    }
    let (file, now_ms) =
        (ImportedFile::write(&home.adapters(), &adapter)?, SystemClock::default().unix_ms());
    Ok(Ok(file.adopt(&mut own.registry, base_sha256, origin, now_ms)?))
}

/// Asks the daemon to register an adapter, or registers it if no daemon runs.
async fn register(
    home: &Paths,
    path: PathBuf,
    adapter: &LoraAdapter,
    base_sha256: &str,
) -> Result<AdapterVersion> {
    let command = Command::ImportAdapter { path };
    if let Some(answer) = client::question::<Result<AdapterVersion, String>>(home, command).await? {
        return answer.map_err(anyhow::Error::msg);
    }
    let mut own = OwnRegistry::open(home, base_sha256)?;
    own.registry.check_writable()?;
    let file = ImportedFile::write(&home.adapters(), adapter)?;
    file.import(&mut own.registry, base_sha256, None, SystemClock::default().unix_ms())
}

fn name(version: AdapterVersion) -> String {
    match version {
        0 => "the model alone".into(),
        version => format!("v{version}"),
    }
}

fn list(registry: &Registry, json: bool) -> Result<()> {
    if json {
        let adapters: Vec<_> =
            registry.entries().iter().map(|entry| object(registry, entry)).collect();
        let all = json!({
            "active": registry.active(),
            "generation": registry.generation(),
            "adapters": adapters,
        });
        emit!("{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    if registry.entries().is_empty() {
        say!("nothing learned yet: `hone status` says how many labels are missing")?;
        return Ok(());
    }
    say!("{}", adapters_table(registry, output::layout()))?;
    Ok(())
}

fn adapters_table(registry: &Registry, layout: Layout) -> String {
    let row = |entry: &Entry| {
        let report = &entry.report;
        vec![
            if entry.version == registry.active() { "→".to_owned() } else { String::new() },
            name(entry.version),
            origin(entry),
            date(entry.created_at_ms),
            report.episodes_used.to_string(),
            tried(registry, entry).to_owned(),
            kept(registry, entry).to_owned(),
            format!("{:+.2}", report.mean_reward),
            format!("{:.4}", report.kl_base),
            format!("{:.0} s", report.total_ms as f64 / 1000.0),
        ]
    };
    let table = layout.table(&COLUMNS, &registry.entries().iter().map(row).collect::<Vec<_>>());
    let legend = "reward: mean of its labels; KL: nats per token away from the model alone";
    format!("{table}\n{}", layout.wrapped(legend))
}

/// Returns whether its file is still here, or was removed by `hone forget`.
fn kept(registry: &Registry, entry: &Entry) -> &'static str {
    match registry.is_kept(entry.version) {
        _ if entry.forgotten => "forgotten",
        true => "yes",
        false => "no",
    }
}

/// Returns how its trial stands.
fn tried(registry: &Registry, entry: &Entry) -> &'static str {
    let end = entry.verdict.as_ref().map(|verdict| verdict.end);
    match end {
        Some(End::Promoted) => "passed",
        Some(End::Dropped) => "given up",
        Some(End::Undecided) => "undecided",
        None if registry.trial().is_some_and(|arms| arms.candidate == entry.version) => "under way",
        None => "–",
    }
}

/// Returns what an adapter was made of.
fn origin(entry: &Entry) -> String {
    match entry.parent {
        _ if entry.report.job == IMPORTED => "import".into(),
        _ if entry.report.job == HISTORY_JOB => "history".into(),
        _ if entry.report.job.starts_with(TEAM_JOB) => "team".into(),
        0 => "model".into(),
        parent => name(parent),
    }
}

/// Shows an adapter, or the one that serves with the trial of the newest one. The trial also comes
/// with the adapter that is on it.
async fn show(
    home: &Paths,
    registry: &Registry,
    version: Option<AdapterVersion>,
    json: bool,
) -> Result<()> {
    let candidate = registry.trial().map(|arms| arms.candidate);
    let evidence = if version.is_none() || version == candidate {
        Some(inspect::current(home).await?.evidence)
    } else {
        None
    };
    let entry = match version.unwrap_or(registry.active()) {
        0 => None,
        version => Some(registry.entry(version).with_context(|| {
            format!("no adapter v{version} is registered; `hone adapter` shows what is there")
        })?),
    };
    if json {
        let mut shown = match entry {
            Some(entry) => object(registry, entry),
            None => json!({ "version": 0 }),
        };
        if let Some(evidence) = evidence {
            shown["trial"] = json!(evidence.trial);
            shown["last_trial"] = json!(evidence.last_trial);
        }
        return emit!("{}", serde_json::to_string_pretty(&shown)?);
    }
    let mut fields = match entry {
        Some(entry) => rows(registry, entry, &entry.report),
        None => vec![("version", "none: the model serves alone".to_owned())],
    };
    let trial = evidence.map_or(vec![], |evidence| trial_lines(&evidence));
    if !trial.is_empty() {
        fields.push(("trial", trial.join("\n")));
    }
    say!("{}", output::layout().fields(fields))
}

fn rows(registry: &Registry, entry: &Entry, report: &UpdateReport) -> Vec<(&'static str, String)> {
    let state = match entry {
        Entry { forgotten: true, .. } => ", removed by `hone forget`",
        _ if entry.version == registry.active() => ", serves now",
        _ => "",
    };
    let file = match registry.is_kept(entry.version) {
        true => registry.adapter_file(entry.version).display().to_string(),
        false => "removed".to_owned(),
    };
    let early = if report.stopped_early { ", stopped early by its distance from v" } else { "" };
    let parent = if report.stopped_early { entry.parent.to_string() } else { String::new() };
    let change = |change: &Option<BeforeAfter>| match change {
        None => "none in this update".to_owned(),
        Some(BeforeAfter { before, after }) => {
            format!("{before:.3} → {after:.3} nats per token ({:+.3})", after - before)
        }
    };
    vec![
        ("version", format!("{}{state}", name(entry.version))),
        (
            "learned from",
            match &entry.history {
                Some(repository) => {
                    let repository = repository.to_string_lossy();
                    format!("the history of {}", printable::name(&repository))
                }
                None => origin(entry),
            },
        ),
        ("learned at", date(entry.created_at_ms)),
        (
            "labels",
            format!(
                "{} used, {} dropped (log positions {} to {})",
                report.episodes_used, report.episodes_dropped, entry.labels.0, entry.labels.1
            ),
        ),
        ("mean reward", format!("{:+.3}", report.mean_reward)),
        ("steps", format!("{} over {} tokens{early}{parent}", report.steps, report.tokens_trained)),
        ("accepted offers", change(&report.logprob_rewarded)),
        ("rejected offers", change(&report.logprob_unrewarded)),
        ("KL to the model", format!("{:.4} nats per token", report.kl_base)),
        ("change of weights", format!("{:.1} %", 100.0 * report.update_ratio)),
        (
            "learner − server",
            format!(
                "mean {:.4}, p95 {:.4} nats over {} tokens",
                report.mismatch.mean, report.mismatch.p95, report.mismatch.count
            ),
        ),
        (
            "time",
            format!(
                "{:.1} s (load {:.1}, prompts {:.1}, training {:.1})",
                seconds(report.total_ms),
                seconds(report.load_ms),
                seconds(report.prompt_ms),
                seconds(report.train_ms)
            ),
        ),
        ("phases", phases(&report.phases)),
        ("computed on", report.gpu.clone().unwrap_or_else(|| "the CPU".to_owned())),
        ("prompts", format!("{} known already, the others computed", report.prompts_known)),
        ("peak memory", format!("{} MiB", report.peak_memory_mb)),
        ("file", file),
        ("SHA-256", entry.sha256.clone()),
    ]
}

/// The phases of an update in the order in which they come, and the time for which it stood still.
fn phases(times: &PhaseTimes) -> String {
    let phases = [
        ("prompts", times.prompts),
        ("log-probs before", times.references),
        ("forward", times.forward),
        ("backward", times.backward),
        ("optimizer", times.optimizer),
        ("log-probs after", times.check),
        ("writing", times.write),
        ("of all this stopped", times.stopped),
    ];
    let phases = phases.map(|(name, time)| format!("{name} {:.1}", seconds(time)));
    format!("{} s", phases.join(", "))
}

fn object(registry: &Registry, entry: &Entry) -> serde_json::Value {
    json!({
        "version": entry.version,
        "parent": entry.parent,
        "active": entry.version == registry.active(),
        "kept": registry.is_kept(entry.version),
        "forgotten": entry.forgotten,
        "path": registry.adapter_file(entry.version),
        "sha256": entry.sha256,
        "base_sha256": entry.base_sha256,
        "created_at": entry.created_at_ms,
        "labels": entry.labels,
        "report": entry.report,
    })
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

/// Returns a date in UTC, to the minute.
fn date(unix_ms: u64) -> String {
    let at = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| "?".into(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use adapters::testing::adapter;
    use models::manifest::Catalogue;
    use std::time::Duration;

    #[test]
    fn a_version_is_written_as_the_list_shows_it() {
        assert_eq!((version("3"), version("v3")), (Ok(3), Ok(3)));
        for wrong in ["", "v", "three", "-1", "vv3"] {
            assert!(version(wrong).unwrap_err().contains("`hone adapter`"), "{wrong}");
        }
    }

    /// Registers one more adapter, as the daemon does that holds the lock.
    fn register(home: &Paths, base_sha256: &str) {
        let (mut registry, _) = Registry::open(&home.adapters(), base_sha256);
        let file = ImportedFile::write(&home.adapters(), &adapter(base_sha256)).unwrap();
        file.import(&mut registry, base_sha256, None, 0).unwrap();
    }

    /// It stood there with the date, the reward and the path of a file that was gone.
    #[test]
    fn an_adapter_that_was_forgotten_is_marked_and_no_file_of_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let home = Paths::at(folder.path().into());
        home.create().unwrap();
        register(&home, "base");
        register(&home, "base");
        let (mut registry, _) = Registry::open(&home.adapters(), "base");
        registry.forget(&[1], 0).unwrap();
        registry.remove_unused().unwrap();
        let table = adapters_table(&registry, Layout::UNLIMITED);
        let is_marked = |line: &str| line.contains("forgotten");
        let marked: Vec<_> = table.lines().filter(|line| is_marked(line)).collect();
        assert!(marked.len() == 1 && marked[0].contains("v1 "), "{table}");
        let told = |version| {
            let entry = registry.entry(version).unwrap();
            Layout::UNLIMITED.fields(rows(&registry, entry, &entry.report))
        };
        assert!(told(1).contains("v1, removed by `hone forget`"), "{}", told(1));
        assert!(!told(1).contains("v0001.gguf") && told(2).contains("v0002.gguf"));
    }

    /// Without a daemon to ask, `hone adapter use` read the registry, waited for a daemon
    /// that was ending, took its lock and wrote what it had read. What that daemon had
    /// registered in between was lost, and its number was given again.
    #[tokio::test]
    async fn a_choice_keeps_what_a_daemon_that_ends_has_registered() {
        let folder = tempfile::tempdir().unwrap();
        let home = Paths::at(folder.path().into());
        home.create().unwrap();
        let base = Catalogue::load(&home.models()).unwrap().default_model().sha256.clone();
        register(&home, &base);
        let daemon = election::elect(&home).unwrap();
        let ends = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            register(&home, &base);
            drop(daemon);
        };
        let use_1 = AdapterArgs { command: Some(AdapterCommand::Use { version: 1 }), json: false };
        let (chosen, ()) = tokio::join!(run(&home, use_1), ends);
        chosen.unwrap();
        let (registry, trouble) = Registry::open(&home.adapters(), &base);
        assert_eq!((registry.active(), registry.entries().len(), trouble), (1, 2, None));
    }
}
