//! Starts an [`App`] from the files and flags: chooses the model, the engine and the clock.

use crate::app::App;
use adapters::registry::adapter_file;
use anyhow::{Context, Result, ensure};
use engine::EngineError;
use engine::caching_engine::CachingEngine;
use engine::llama::{LlamaConfig, LlamaEngine};
use engine::unloading::{AdapterFiles, UnloadingEngine};
use engine::worker::{EngineHandle, IdleRule};
use feedback::clock::{Clock, ManualClock, MovableClock, SystemClock};
use feedback::log::EventLog;
use feedback::sled_log::SledLog;
use host::paths::Paths;
use learning::LearnNow;
use learning::LearnerProgram;
use learning::preemption::LearnerPreemption;
use learning::supervisor::Supervisor;
use models::checked_file::CheckedFile;
use models::fim::FimTemplate;
use models::gguf::Gguf;
use models::manifest::{Catalogue, Manifest};
use models::store::Store;
use services::adapter_service::ServedModel;
use services::health::{Health, TroubleSource};
use services::next_edit_model::{Load, NextEditModel};
use services::part::Part;
use settings::{Config, place};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The most threads that the model gets by default. More rarely help a small model and always slow
/// down other programs.
const MAX_THREADS: usize = 8;

/// The default time without a request after which the model is unloaded. Memory of a GPU is scarcer
/// than other memory.
const GPU_IDLE_LIMIT: Duration = Duration::from_secs(300);
const CPU_IDLE_LIMIT: Duration = Duration::from_secs(1800);

/// The pause in typing after which adapters are compared. A user who looks at an offer pauses for
/// one or two seconds.
const SCORE_AFTER: Duration = Duration::from_secs(3);

/// The setting that names the model for next edits.
pub const NEXT_EDIT_MODEL: &str = "completion.next_edit_model";

/// The longest prompt of the model for next edits, with its answer: a file, the latest changes and
/// a window three times.
const NEXT_EDIT_PROMPT_TOKENS: usize = 4096;

/// The time at which a manual clock starts. It can be any fixed time; this is 2026-01-01T00:00:00Z.
const MANUAL_EPOCH_MS: u64 = 1_767_225_600_000;

/// The number of `hone learn` requests that may wait. One is enough, because they all mean the
/// same.
const LEARN_QUEUE: usize = 1;

/// The number of contributions to a team that may wait. A round asks for one.
const CONTRIBUTION_QUEUE: usize = 1;

/// The variable by which tests get a clock that passes and can be moved: `movable`. An editor that
/// they drive starts the daemon, and knows no option for that.
const CLOCK: &str = "HONE_CLOCK";

#[derive(Debug, Clone, Default, clap::Args)]
pub struct ServeOptions {
    /// Serve this GGUF file instead of the configured model
    #[arg(long, value_name = "FILE.gguf")]
    pub model: Option<PathBuf>,
    /// FIM template of --model, if its vocabulary does not tell
    #[arg(long, value_name = "NAME", requires = "model")]
    pub template: Option<String>,
    /// Move the clock only by `hone/advanceClock` (tests, rehearsal)
    #[arg(long, hide = true)]
    pub manual_clock: bool,
    /// Share the prompts' KV with other daemons through this folder (rehearsal)
    #[arg(long, value_name = "DIR", hide = true)]
    pub prompt_cache: Option<PathBuf>,
}

impl ServeOptions {
    /// Checks that the file that is to be served is a model, whoever serves.
    pub fn check_model(&self) -> Result<()> {
        if let Some(model) = &self.model {
            Gguf::open(&std::path::absolute(model)?)?;
        }
        Ok(())
    }

    /// The same options as arguments of another `hone`.
    pub fn to_args(&self) -> Vec<std::ffi::OsString> {
        let mut args = vec![];
        // The daemon has another working folder.
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        if let Some(model) = &self.model {
            args.extend(["--model".into(), absolute(model).into()]);
        }
        if let Some(template) = &self.template {
            args.extend(["--template".into(), template.into()]);
        }
        if self.manual_clock {
            args.push("--manual-clock".into());
        }
        if let Some(folder) = &self.prompt_cache {
            args.extend(["--prompt-cache".into(), absolute(folder).into()]);
        }
        args
    }
}

/// The manifest of the configured model.
pub fn configured_manifest<'a>(
    home: &Paths,
    catalogue: &'a Catalogue,
    config: &Config,
) -> Result<&'a Manifest> {
    Ok(match &config.model.name {
        Some(name) => catalogue
            .completing(name)
            .with_context(|| format!("{}: model.name", place(&home.config_file(), "model.name")))?,
        None => catalogue.default_model(),
    })
}

fn find_model(
    home: &Paths,
    config: &Config,
    options: &ServeOptions,
) -> Result<(ServedModel, CheckedFile)> {
    if let Some(path) = &options.model {
        let path = std::path::absolute(path)?;
        let file = CheckedFile::before_checksum(&path);
        let local = models::inspect::inspect(&path, options.template.as_deref())?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (architecture, sha256, template) = (local.arch, local.sha256, local.template);
        let bytes = path.metadata()?.len();
        return Ok((ServedModel { name, architecture, path, sha256, bytes, template }, file));
    }
    let catalogue = Catalogue::load(&home.models())?;
    let manifest = configured_manifest(home, &catalogue, config)?;
    let store = Store::new(home.models());
    let file = CheckedFile::before_checksum(&store.path(manifest));
    let path = store.verified(manifest)?;
    if let Some(notice) = &manifest.notice {
        tracing::info!("{}: {notice}", manifest.name);
    }
    let served = ServedModel {
        name: manifest.name.clone(),
        architecture: manifest.architecture.clone(),
        bytes: path.metadata()?.len(),
        path,
        sha256: manifest.sha256.clone(),
        template: manifest.template,
    };
    Ok((served, file))
}

/// The manifest of the model for next edits that the settings name.
///
/// # Errors
/// Nobody knows it, or it cannot be asked for next edits.
pub fn configured_next_edit_manifest<'a>(
    home: &Paths,
    catalogue: &'a Catalogue,
    name: &str,
) -> Result<&'a Manifest> {
    let at = || format!("{}: {NEXT_EDIT_MODEL}", place(&home.config_file(), NEXT_EDIT_MODEL));
    next_edit_manifest(catalogue, name).with_context(at)
}

/// The manifest of a model that can be asked for next edits.
///
/// # Errors
/// Nobody knows it, or it does not read several files.
pub fn next_edit_manifest<'a>(catalogue: &'a Catalogue, name: &str) -> Result<&'a Manifest> {
    let manifest = catalogue.get(name)?;
    ensure!(
        manifest.template.files.is_some(),
        "{name} cannot write next edits, because it does not read several files; `hone model \
         list` marks those that are made for them with –"
    );
    Ok(manifest)
}

/// Notes what is wrong with the model for next edits, if anything is. Everything else works without
/// it.
fn check_next_edit_model(home: &Paths, name: &str, health: &Health) {
    let catalogue = Catalogue::usable(&home.models()).0;
    if let Err(error) = configured_next_edit_manifest(home, &catalogue, name) {
        // A request for a next edit reports the same text, which is logged once.
        let trouble = format!("the model for next edits: {error:#}");
        tracing::warn!("{trouble}");
        health.report(TroubleSource::NextEditModel, trouble);
    }
}

/// Returns what loads the model for next edits. Its manifest and its file may come after the daemon
/// has started.
fn loading(home: Paths, config: Config, name: String, preempts: Arc<LearnerPreemption>) -> Load {
    Box::new(move || {
        let failed = |error: &dyn std::fmt::Display| EngineError::Failed(format!("{error:#}"));
        let catalogue = Catalogue::usable(&home.models()).0;
        let manifest = configured_next_edit_manifest(&home, &catalogue, &name)
            .map_err(|error| failed(&error))?;
        let store = Store::new(home.models());
        let mut file = CheckedFile::before_checksum(&store.path(manifest));
        let path = store.verified(manifest).map_err(|error| failed(&error))?;
        let llama = LlamaConfig {
            prompt_tokens: NEXT_EDIT_PROMPT_TOKENS,
            records_experts: false,
            ..engine_config(&config, &path, manifest.template)
        };
        let idle = IdleRule { unload_after: idle_limit(&config, &llama), ..IdleRule::default() };
        let (residence, checksum) = (idle.residence.clone(), manifest.sha256.clone());
        let preempts = preempts.clone();
        let load = move || {
            check_same(&mut file, &llama.path, &checksum)?;
            LlamaEngine::load(&llama)
        };
        // It has no adapters.
        let files: AdapterFiles = Box::new(|_| PathBuf::new());
        let unloading = move || UnloadingEngine::new(load, files, residence);
        EngineHandle::start(unloading, move |busy| preempts.set_busy(busy), idle)
    })
}

/// Starts the app and its learner. The second value asks the learner for an update.
pub async fn start(home: Paths, options: &ServeOptions) -> Result<(Arc<App>, LearnNow)> {
    home.create()?;
    Prepared::new(home, options)?.start().await
}

/// An app whose files are found and read, and whose model is not in memory yet. What a user can get
/// wrong is known by now.
pub struct Prepared {
    home: Paths,
    options: ServeOptions,
    config: Config,
    log: Arc<dyn EventLog>,
    model: ServedModel,
    file: CheckedFile,
}

impl Prepared {
    pub fn new(home: Paths, options: &ServeOptions) -> Result<Prepared> {
        let config = Config::load(&home.config_file())?;
        let log: Arc<dyn EventLog> = Arc::new(SledLog::open(&home.event_log())?);
        let (model, file) = find_model(&home, &config, options)?;
        Ok(Prepared { home, options: options.clone(), config, log, model, file })
    }

    pub fn model_name(&self) -> &str {
        &self.model.name
    }

    /// The log, for whoever closes it when the daemon ends.
    pub fn log(&self) -> Arc<dyn EventLog> {
        self.log.clone()
    }

    /// Loads the model, which takes a second and more, and starts what needs it.
    pub async fn start(self) -> Result<(Arc<App>, LearnNow)> {
        let Prepared { home, options, config, log, model, mut file } = self;
        let mut llama = engine_config(&config, &model.path, model.template);
        // Only rehearsals have such a folder, and nobody types there.
        llama.scores_in_background = options.prompt_cache.is_none();
        let idle = IdleRule {
            score_after: SCORE_AFTER,
            unload_after: idle_limit(&config, &llama),
            ..IdleRule::default()
        };
        let preemption = Arc::new(LearnerPreemption::default());
        let preempts = preemption.clone();
        let on_busy = move |busy| preempts.set_busy(busy);
        let name = config.completion.next_edit_model.clone();
        let next_edit_model = name.clone().map(|name| {
            let load = loading(home.clone(), config.clone(), name, preemption.clone());
            Arc::new(NextEditModel::new(load))
        });
        let checksum = model.sha256.clone();
        let mut load = move || {
            check_same(&mut file, &llama.path, &checksum)?;
            LlamaEngine::load(&llama)
        };
        let engine = tokio::task::block_in_place(|| match options.prompt_cache.clone() {
            None => {
                let (residence, folder) = (idle.residence.clone(), home.adapters());
                let files: AdapterFiles = Box::new(move |version| adapter_file(&folder, version));
                let unloading = move || UnloadingEngine::new(load, files, residence);
                EngineHandle::start(unloading, on_busy, idle)
            }
            Some(folder) => {
                let model = model.sha256.clone();
                let cached = move || CachingEngine::new(load()?, &folder, &model);
                EngineHandle::start(cached, on_busy, IdleRule::default())
            }
        });
        let engine = engine.map_err(|error| match error {
            EngineError::Failed(reason) => anyhow::anyhow!("{reason}"),
            other => other.into(),
        })?;
        let clock: Arc<dyn Clock> = if options.manual_clock {
            Arc::new(ManualClock::starting_at(MANUAL_EPOCH_MS))
        } else if std::env::var_os(CLOCK).is_some_and(|clock| clock == "movable") {
            Arc::new(MovableClock::default())
        } else {
            Arc::new(SystemClock::default())
        };
        let app = App::start(&home, config, model, engine, clock, log, next_edit_model).await?;
        if let Some(name) = &name {
            check_next_edit_model(&home, name, &app.services.health);
        }
        let (learn_now, asked) = tokio::sync::mpsc::channel(LEARN_QUEUE);
        let learner =
            LearnerProgram { path: learner_program()?, prompt_cache: options.prompt_cache.clone() };
        let (contribute, contributions) = tokio::sync::mpsc::channel(CONTRIBUTION_QUEUE);
        let supervisor =
            Supervisor::new(app.services.clone(), app.learner.clone(), learner, preemption)
                .with_contributions(contributions);
        app.contributions.get_or_init(|| contribute);
        app.services.parts.spawn(Part::Learning, supervisor.run(asked));
        Ok((app, learn_now))
    }
}

/// Checks that a model that is loaded, perhaps not for the first time, is the one under whose
/// checksum offers are recorded and learned from.
fn check_same(file: &mut CheckedFile, path: &Path, checksum: &str) -> Result<(), EngineError> {
    let at = path.display();
    match file.still_has(checksum) {
        Ok(true) => Ok(()),
        Ok(false) => Err(EngineError::Failed(format!(
            "{at}: it is another file than when Hone started; put that one back, or run `hone \
             stop` and restart the editor to use this one"
        ))),
        Err(error) => Err(EngineError::Failed(format!("{at}: {error}"))),
    }
}

/// The settings of an engine that serves this model.
pub fn engine_config(config: &Config, model: &Path, template: &'static FimTemplate) -> LlamaConfig {
    let threads = match config.model.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS),
        threads => threads,
    };
    LlamaConfig {
        adapts_threads: config.model.threads == 0,
        gpu_layers: config.model.gpu_layers,
        ..LlamaConfig::on_cpu(model, template, threads, config.lab.prompt_tokens)
    }
}

/// The time without a request after which the model is unloaded.
fn idle_limit(config: &Config, llama: &LlamaConfig) -> Option<Duration> {
    match config.model.idle_unload_s {
        Some(0) => None,
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None if llama.may_use_gpu() => Some(GPU_IDLE_LIMIT),
        None => Some(CPU_IDLE_LIMIT),
    }
}

/// The path of `hone-learner`: next to this binary, unless `HONE_LEARNER` names another.
pub fn learner_program() -> Result<PathBuf> {
    match std::env::var_os("HONE_LEARNER").filter(|value| !value.is_empty()) {
        Some(program) => Ok(program.into()),
        None => sibling("hone-learner"),
    }
}

/// The path of a program in the same folder as this one.
pub fn sibling(name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot tell where this program is")?;
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    Ok(this.parent().unwrap_or(Path::new(".")).join(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wrong name stopped all completions.
    #[test]
    fn a_model_that_cannot_write_next_edits_is_noted_with_what_to_do() {
        let (_folder, home) = fixtures::home();
        let noted = |name: &str| {
            let health = Health::default();
            check_next_edit_model(&home, name, &health);
            health.latest()
        };
        assert_eq!(noted("sweep-next-edit-0.5b"), None, "its file may come later");
        assert_eq!(noted("qwen2.5-coder-0.5b"), None, "it reads several files");
        for (name, parts) in [
            ("sweep-next-edit-9b", ["unknown model", "`hone model list`"]),
            ("smollm2-135m", ["does not read several files", "`hone model list`"]),
        ] {
            let trouble = noted(name).unwrap();
            let file = home.config_file().display().to_string();
            let begins = format!("the model for next edits: {file}: {NEXT_EDIT_MODEL}: ");
            assert!(trouble.starts_with(&begins), "{trouble}");
            assert!(parts.iter().all(|part| trouble.contains(part)), "{trouble}");
            assert_eq!(trouble.lines().count(), 1, "{trouble}");
        }
    }
}
