//! Starts the services with a scripted engine and without an app: no background task runs.

use crate::services::Services;
use crate::services::adapter_service::ServedModel;
use crate::services::next_edit_model::NextEditModel;
use engine::Engine;
use engine::worker::{EngineHandle, IdleRule};
use feedback::clock::{Clock, ManualClock};
use feedback::log::EventLog;
use feedback::sled_log::SledLog;
use host::paths::Paths;
use settings::Config;
use std::sync::Arc;

/// The model of services whose engine is scripted.
pub fn scripted_model() -> ServedModel {
    ServedModel {
        name: "scripted".into(),
        architecture: "llama".into(),
        path: "none.gguf".into(),
        sha256: "base".into(),
        bytes: 0,
        template: &models::fim::templates()[0],
    }
}

pub async fn start<E: Engine + Send + 'static>(
    paths: &Paths,
    config: Config,
    engine: E,
    clock: Arc<dyn Clock>,
    log: Arc<dyn EventLog>,
) -> Arc<Services> {
    start_with(paths, config, engine, clock, log, None).await
}

/// The same with a model for next edits.
pub async fn start_with<E: Engine + Send + 'static>(
    paths: &Paths,
    config: Config,
    engine: E,
    clock: Arc<dyn Clock>,
    log: Arc<dyn EventLog>,
    next_edit_model: Option<Arc<NextEditModel>>,
) -> Arc<Services> {
    let engine = EngineHandle::start(move || Ok(engine), |_| (), IdleRule::default()).unwrap();
    let model = scripted_model();
    Services::start(paths, config, model, engine, clock, log, next_edit_model).await.unwrap()
}

/// Starts services on the files of this home. Their engine always gives the same answer, their
/// clock does not move, and their gate is off.
pub async fn start_in(paths: &Paths) -> Arc<Services> {
    paths.create().unwrap();
    let mut config = Config::default();
    config.gate.enabled = false;
    let log = Arc::new(SledLog::open(&paths.event_log()).unwrap());
    start(paths, config, fixtures::engine(&["x"]), Arc::new(ManualClock::starting_at(0)), log).await
}
