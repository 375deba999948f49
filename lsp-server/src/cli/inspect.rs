//! `hone status` and `hone events`. They ask the daemon if one runs, and else
//! read its files.

use crate::adapters::registry::Registry;
use crate::cli::settings::Configured;
use crate::daemon::client;
use crate::daemon::handshake::Command;
use crate::paths::Paths;
use crate::report::export::{stream, without_code};
use crate::report::offers::{OfferHistory, Offers};
use crate::report::status::{
    AdapterStatus, Evidence, LearnerView, ModelFile, ModelStatus, Status, screen,
};
use crate::services::adapter_service::Swaps;
use crate::services::derived_state::{DerivedInputs, DerivedState};
use crate::services::learner_status::LearnerStatus;
use anyhow::{Context, Result};
use feedback::event::Event;
use feedback::log::{EventLog, MemoryLog};
use feedback::sled_log::SledLog;
use models::store::Store;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, BufReader};

/// Bytes between the log's reader and this command's printing.
const PIPE_BYTES: usize = 64 * 1024;

/// The status, from the daemon if one runs, and else from its files.
pub async fn current(home: &Paths) -> Result<Status> {
    match client::connect_settled(home, Command::Status).await? {
        Some(mut connection) => {
            let mut text = String::new();
            connection.read.read_to_string(&mut text).await?;
            let status = serde_json::from_str(&text);
            let mut status: Status = status.context("the daemon's status cannot be read")?;
            // The daemon goes on with the settings that it had, and the file may be wrong by now.
            status.settings_problems = Configured::read(home).problems;
            Ok(status)
        }
        None => from_files(home),
    }
}

pub async fn status(home: &Paths, json: bool) -> Result<()> {
    let status = current(home).await?;
    if json {
        say!("{}", serde_json::to_string_pretty(&status)?)?;
    } else {
        say!("{}", screen(&status))?;
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
        Box::new(SledLog::open(&home.event_log())?)
    } else {
        Box::new(MemoryLog::default())
    };
    let DerivedState { fold, learned_state, .. } =
        DerivedState::of(&*log, &DerivedInputs::of(&registry, &base_sha256))?;
    let evidence = Evidence::of(&learned_state, &registry, config.gate.enabled);
    let waiting = fold.waiting();
    let learner = LearnerView::of(
        LearnerStatus::default(),
        &config.learning,
        &manifest.architecture,
        &registry,
        waiting,
        trouble,
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
            file: Some(ModelFile::of(store.status(manifest), manifest.bytes)),
        },
        adapter: AdapterStatus::of(&registry, Swaps::default()),
        episodes: fold.counts(),
        evidence,
        completions_paused: !config.completion.enabled,
        last_request: None,
        withheld: 0,
        workspaces: vec![],
        learner,
        settings_problems: configured.problems,
    })
}

pub async fn events(home: &Paths, with_code: bool) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let mut failed = None;
    let mut print = |event: Event| -> Result<()> {
        let value = if with_code { serde_json::to_value(&event)? } else { without_code(&event)? };
        Ok(writeln!(output, "{value}")?)
    };
    each_event(home, |event| match print(event) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })
    .await?;
    match failed {
        // A reader that has enough, such as `head`, ends the pipe; that is no error.
        Some(error) if !is_broken_pipe(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Visits each offer with what became of it, oldest first.
pub async fn each_offer(home: &Paths, each: impl FnMut(OfferHistory) -> Result<()>) -> Result<()> {
    let mut offers = Offers::new(each);
    let mut failed = None;
    each_event(home, |event| match offers.event(event) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })
    .await?;
    failed.map_or_else(|| offers.finish(), Err)
}

pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Visits what was recorded, in order. It comes from the daemon if one runs.
async fn each_event(home: &Paths, visit: impl FnMut(Event) -> ControlFlow<()>) -> Result<()> {
    if let Some(connection) = client::connect_settled(home, Command::Events).await? {
        return each_line(connection.read, visit).await.map(drop);
    }
    if !home.event_log().exists() {
        return Ok(());
    }
    let log = Arc::new(SledLog::open(&home.event_log())?);
    let (read, mut write) = tokio::io::duplex(PIPE_BYTES);
    let writing = async move { stream(log, &mut write).await };
    let (written, visited) = tokio::join!(writing, each_line(BufReader::new(read), visit));
    visited.and_then(|all| if all { written } else { Ok(()) })
}

/// Visits each line, and returns whether all were visited.
async fn each_line(
    reader: impl AsyncBufRead + Unpin,
    mut visit: impl FnMut(Event) -> ControlFlow<()>,
) -> Result<bool> {
    let mut lines = reader.lines();
    while let Some(line) = lines.next_line().await? {
        let event: Event = serde_json::from_str(&line).context("the log cannot be read")?;
        if visit(event).is_break() {
            return Ok(false);
        }
    }
    Ok(true)
}
