//! Starts the app with a scripted engine, for unit tests.

use crate::adapters::registry::{Candidate, Entry, Registry};
use crate::app::App;
use crate::config::Config;
use crate::learning::trial_runner;
use crate::paths::Home;
use crate::services::adapter_service::ServedModel;
use anyhow::Result;
use engine::Engine;
use engine::scripted::ScriptedEngine;
use engine::worker::EngineHandle;
use feedback::clock::{Clock, ManualClock};
use feedback::log::EventLog;
use feedback::sled_log::SledLog;
use std::sync::Arc;
use std::time::Duration;

/// The model of an app whose engine is scripted.
pub fn scripted_model() -> ServedModel {
    ServedModel {
        name: "scripted".into(),
        architecture: "none".into(),
        path: "none.gguf".into(),
        sha256: "base".into(),
    }
}

pub async fn start<E: Engine + Send + 'static>(
    paths: &Home,
    config: Config,
    engine: E,
    clock: Arc<dyn Clock>,
    log: Arc<dyn EventLog>,
) -> Arc<App> {
    let engine = EngineHandle::start(move || Ok(engine), |_| ()).unwrap();
    App::start(paths, config, scripted_model(), engine, clock, log).await.unwrap()
}

/// Starts an app on the files of this home. Its engine always gives the same answer, its clock does
/// not move, and its gate is off.
pub async fn start_in(paths: &Home) -> Arc<App> {
    paths.create().unwrap();
    let engine = ScriptedEngine { answers: &["x"], learned: None, takes: Duration::ZERO };
    let mut config = Config::default();
    config.gate.enabled = false;
    let log = Arc::new(SledLog::open(&paths.event_log()).unwrap());
    start(paths, config, engine, Arc::new(ManualClock::starting_at(0)), log).await
}

/// Starts a trial of the app's first adapter, whose file has any content.
pub async fn try_first_adapter(
    app: &App,
    still_wanted: impl FnOnce(&Registry) -> Result<()>,
) -> Result<Option<String>> {
    let (adapter, _) = app.services.adapters.serving().job_files("test");
    std::fs::write(&adapter, "adapter")?;
    let entry = Entry {
        version: 1,
        parent: 0,
        sha256: models::file::sha256(&adapter)?,
        base_sha256: "base".into(),
        created_at_ms: 0,
        labels: (0, 0),
        offers: None,
        forgotten: false,
        verdict: None,
        report: Default::default(),
    };
    let candidate = Candidate { entry, adapter, optimizer: None };
    trial_runner::try_candidate(&app.services, candidate, still_wanted).await
}
