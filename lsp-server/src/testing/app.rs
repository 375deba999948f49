//! The app on a scripted engine, as unit tests of what lies around it start it.

use crate::app::App;
use crate::config::Config;
use crate::paths::Home;
use crate::services::adapter_service::ServedModel;
use engine::Engine;
use engine::worker::EngineHandle;
use feedback::clock::Clock;
use feedback::log::EventLog;
use std::sync::Arc;

pub async fn start<E: Engine + Send + 'static>(
    paths: &Home,
    config: Config,
    engine: E,
    clock: Arc<dyn Clock>,
    log: Arc<dyn EventLog>,
) -> Arc<App> {
    let model = ServedModel {
        name: "scripted".into(),
        architecture: "none".into(),
        path: "none.gguf".into(),
        sha256: "base".into(),
    };
    let engine = EngineHandle::start(move || Ok(engine), |_| ()).unwrap();
    App::start(paths, config, model, engine, clock, log).await.unwrap()
}
