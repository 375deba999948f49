//! Starts the app with a scripted engine, for unit tests.

use crate::app::App;
use adapters::registry::{AdapterCandidate, Registry};
use anyhow::Result;
use completion::document::{Document, Position};
use engine::Engine;
use engine::worker::{EngineHandle, IdleRule};
use feedback::clock::{Clock, ManualClock};
use feedback::log::EventLog;
use feedback::sled_log::SledLog;
use fixtures::scripted::scripted_model;
use host::paths::Paths;
use learning::trial_runner;
use ropey::Rope;
use session::request::Trigger;
use settings::Config;
use std::sync::Arc;
use std::time::Duration;

pub async fn start<E: Engine + Send + 'static>(
    paths: &Paths,
    config: Config,
    engine: E,
    clock: Arc<dyn Clock>,
    log: Arc<dyn EventLog>,
) -> Arc<App> {
    let engine = EngineHandle::start(move || Ok(engine), |_| (), IdleRule::default()).unwrap();
    App::start(paths, config, scripted_model(), engine, clock, log, None).await.unwrap()
}

/// Starts an app on the files of this home. Its engine always gives the same answer, its clock does
/// not move, and its gate is off.
pub async fn start_in(paths: &Paths) -> Arc<App> {
    paths.create().unwrap();
    let mut config = Config::default();
    config.gate.enabled = false;
    let log = Arc::new(SledLog::open(&paths.event_log()).unwrap());
    start(paths, config, fixtures::engine(&["x"]), Arc::new(ManualClock::starting_at(0)), log).await
}

/// Types at many places and accepts every offer, until no trial runs any more.
pub async fn accept_until_the_trial_ends(app: &Arc<App>) {
    const CURSOR: Position = Position { line: 1, column: 4 };
    let (session, adapters) = (app.session(), &app.services.adapters);
    for place in 0..200 {
        let uri = format!("file:///{place}.rs");
        let text = Rope::from_str(&format!("fn a{place}() {{\n    \n}}\n"));
        let (path, language) = (uri.clone(), "rust".into());
        session.open(uri.clone(), Document { path, language, version: 1, text });
        let completed = session.complete(&uri, CURSOR, Trigger::Automatic, None).await.unwrap();
        if let Some(offer) = completed.suggestions.first() {
            session.accepted(&offer.id).unwrap();
        }
        tokio::task::yield_now().await;
        if adapters.serving().trial().is_none() {
            break;
        }
    }
    // The trial ends in a task of its own, which writes the registry.
    let ended = async {
        while adapters.serving().trial().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the trial ends");
}

/// Starts a trial of the app's first adapter, whose file has any content.
pub async fn try_first_adapter(
    app: &App,
    still_wanted: impl FnOnce(&Registry) -> Result<()>,
) -> Result<Option<String>> {
    let (adapter, _) = app.services.adapters.serving().job_files("test");
    std::fs::write(&adapter, "adapter")?;
    let entry = adapters::testing::entry(1, models::file::sha256(&adapter)?);
    let candidate = AdapterCandidate { entry, adapter, optimizer: None };
    let tried = trial_runner::try_candidate(&app.services, candidate, still_wanted).await?;
    Ok(tried.refusal)
}
