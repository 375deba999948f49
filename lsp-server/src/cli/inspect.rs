//! `hone status`. It asks the daemon if one runs, and else reads its files.

use crate::cli::event_log;
use crate::cli::output;
use crate::cli::settings::Configured;
use crate::daemon::client;
use crate::daemon::handshake::Command;
use crate::daemon::loading;
use adapters::registry::Registry;
use anyhow::{Context, Result};
use feedback::log::{EventLog, MemoryLog};
use host::paths::Paths;
use models::store::Store;
use report::status::{
    AdapterStatus, Evidence, LearnerView, ModelFile, ModelStatus, NextEditModelStatus, Status,
    screen,
};
use services::adapter_service::Swaps;
use services::derived_state::{DerivedInputs, DerivedState};
use services::learner_status::LearnerStatus;
use tokio::io::AsyncReadExt;

/// The status, from the daemon if one runs, and else from its files.
pub async fn current(home: &Paths) -> Result<Status> {
    loop {
        let Some(mut connection) = client::connect_settled(home, Command::Status).await? else {
            match from_files(home) {
                Err(error) if client::has_started_since(home, &error) => continue,
                status => return status,
            }
        };
        let mut text = String::new();
        connection.read.read_to_string(&mut text).await?;
        let status = serde_json::from_str(&text);
        let mut status: Status = status.context("the daemon's status cannot be read")?;
        // The daemon continues with the settings that it had, and the file may be wrong by now.
        let configured = Configured::read(home);
        status.restart_trouble = needs_another_file(home, &configured, &status.model);
        status.settings_problems = configured.problems;
        return Ok(status);
    }
}

/// Why a restart of the daemon would end completions, if it would, and what to do about it.
pub async fn restart_trouble(home: &Paths) -> Option<String> {
    let configured = Configured::read(home);
    let problem = super::model::problem(home, &configured);
    // The daemon is asked only then, because one that still loads its model answers late.
    problem.clone().or_else(|| missing_model(home, &configured))?;
    let status = client::question::<Status>(home, Command::Status).await.ok()??;
    problem.or_else(|| needs_another_file(home, &configured, &status.model))
}

/// The same of a daemon that serves this model.
fn needs_another_file(
    home: &Paths,
    configured: &Configured,
    served: &ModelStatus,
) -> Option<String> {
    let missing = missing_model(home, configured)?;
    let store = Store::new(home.models());
    // A daemon that was started with a file of its own (`--model`) takes that one again.
    configured.catalogue.iter().find(|known| store.path(known) == served.path)?;
    Some(match configured.model_name() == Some(&*served.name) {
        true => missing,
        false => format!("{missing}, or `hone model use {}` for the one that serves", served.name),
    })
}

/// The chosen model, if its file is not here, and how to fetch it.
fn missing_model(home: &Paths, configured: &Configured) -> Option<String> {
    let name = configured.model_name()?;
    let file = ModelFile::of(&Store::new(home.models()), configured.model());
    Some(format!("{name} is chosen and {}", file.trouble(None)?))
}

pub async fn status(home: &Paths, json: bool) -> Result<()> {
    let status = current(home).await?;
    if json {
        emit!("{}", serde_json::to_string_pretty(&status)?)?;
    } else {
        say!("{}", screen(&status, output::layout()))?;
    }
    Ok(())
}

/// The status while no daemon runs.
fn from_files(home: &Paths) -> Result<Status> {
    home.create()?;
    let configured = Configured::read(home);
    let (config, manifest) = (&configured.config, configured.model());
    let store = Store::new(home.models());
    let base_sha256 = configured.base_sha256(home);
    let (registry, trouble) = Registry::open(&home.adapters(), &base_sha256);
    let log: Box<dyn EventLog> = if home.event_log().exists() {
        Box::new(event_log::open(home)?)
    } else {
        Box::new(MemoryLog::default())
    };
    let DerivedState { fold, learned_state, .. } =
        DerivedState::of(&*log, &DerivedInputs::of(&registry, &base_sha256))?;
    let evidence = Evidence::of(&learned_state, &registry, config.gate.enabled);
    let waiting = fold.waiting();
    let killed = loading::killed(home).map(|killed| killed.to_string());
    let learner = LearnerView::of(
        LearnerStatus::default(),
        config,
        &manifest.architecture,
        &registry,
        waiting,
        killed.or(trouble),
    );
    Ok(Status {
        version: env!("CARGO_PKG_VERSION").into(),
        paths: home.paths(),
        daemon: None,
        model: ModelStatus {
            name: manifest.name.clone(),
            arch: manifest.architecture.clone(),
            path: store.path(manifest),
            sha256: manifest.sha256.clone(),
            backend: None,
            memory: None,
            context: None,
            file: Some(ModelFile::of(&store, manifest)),
        },
        next_edit_model: configured
            .next_edit_model()
            .map(|manifest| NextEditModelStatus::of(&store, manifest, None)),
        adapter: AdapterStatus::of(&registry, Swaps::default()),
        episodes: fold.counts(),
        evidence,
        completions_paused: !config.completion.enabled,
        last_request: None,
        withheld: 0,
        learner,
        settings_problems: configured.problems,
        restart_trouble: None,
    })
}
