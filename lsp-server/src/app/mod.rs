//! The process as a whole. It runs in `hone serve` behind a socket, or in `hone lsp --in-process`
//! behind stdio.

mod adopt;
mod background;
mod forget;
mod retention;
mod sessions;
pub mod startup;
mod status;
mod status_line;
pub mod team;

use anyhow::Result;
use engine::worker::EngineHandle;
use feedback::clock::Clock;
use feedback::log::EventLog;
use host::paths::Paths;
use learning::{contribution, trial_runner};
use report::status::StatusLine;
use services::Services;
use services::adapter_service::ServedModel;
use services::learner_status::{LearnerState, LearnerStatus};
use services::next_edit_model::NextEditModel;
use services::part::Part;
use session::Session;
use sessions::{Client, Sessions};
use settings::Config;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tokio::sync::{mpsc, watch};

pub struct App {
    pub paths: Paths,
    pub services: Arc<Services>,
    started: Instant,
    sessions: Sessions,
    /// The state of the learner. Only the supervisor writes it.
    learner: watch::Sender<LearnerStatus>,
    status_line: watch::Receiver<StatusLine>,
    /// Asks the supervisor to learn for the team, once there is a supervisor.
    contributions: OnceLock<mpsc::Sender<contribution::Request>>,
}

impl App {
    pub async fn start(
        paths: &Paths,
        config: Config,
        model: ServedModel,
        engine: EngineHandle,
        clock: Arc<dyn Clock>,
        log: Arc<dyn EventLog>,
        next_edit_model: Option<Arc<NextEditModel>>,
    ) -> Result<Arc<App>> {
        let services =
            Services::start(paths, config, model, engine, clock, log, next_edit_model).await?;
        Ok(App::run(paths, services))
    }

    /// Starts the background tasks.
    fn run(paths: &Paths, services: Arc<Services>) -> Arc<App> {
        let learner = watch::Sender::new(LearnerStatus::default());
        let line = status_line::line(&services, &learner.borrow());
        let (lines, status_line) = watch::channel(line);
        let weak = Arc::downgrade(&services);
        let parts = services.parts.clone();
        parts.watch(Part::Engine, services.engine.panicked());
        parts
            .spawn(Part::StatusLine, status_line::follow(weak.clone(), learner.subscribe(), lines));
        parts.spawn(Part::Trials, trial_runner::run(weak));
        let app = Arc::new(App {
            paths: paths.clone(),
            services,
            started: Instant::now(),
            sessions: Sessions::default(),
            learner,
            status_line,
            contributions: OnceLock::new(),
        });
        parts.spawn(Part::Upkeep, background::tick(Arc::downgrade(&app)));
        parts.spawn(Part::Settings, background::follow_settings(Arc::downgrade(&app)));
        app
    }

    /// Opens the session of a text that an HTTP client works in.
    pub fn session(&self) -> Arc<Session> {
        self.sessions.open(Client::Http, self.services.clone())
    }

    /// Opens the session of an editor's connection.
    pub fn editor_session(&self) -> Arc<Session> {
        self.sessions.open(Client::Editor, self.services.clone())
    }

    /// Returns the session that made one of these offers, wherever the message about it came from.
    /// It is `own` if no other session did.
    pub fn session_of(&self, own: &Arc<Session>, ids: &[&str]) -> Arc<Session> {
        let made = |session: &Arc<Session>| ids.iter().any(|id| session.made(id));
        if made(own) {
            return own.clone();
        }
        self.sessions.all().into_iter().find(made).unwrap_or_else(|| own.clone())
    }

    #[cfg(test)]
    pub fn sessions(&self) -> Vec<Arc<Session>> {
        self.sessions.all()
    }

    /// The number of editors' open connections.
    pub fn open_editors(&self) -> usize {
        self.sessions.count(Client::Editor)
    }

    /// The number of texts of HTTP clients that are followed.
    pub fn http_texts(&self) -> usize {
        self.sessions.count(Client::Http)
    }

    pub fn is_training(&self) -> bool {
        self.learner.borrow().state == LearnerState::Training
    }

    /// The line that editors show. Every change is sent to every connection.
    pub fn status_line(&self) -> watch::Receiver<StatusLine> {
        self.status_line.clone()
    }

    /// Checks the open offers of every session for their timeout.
    pub fn tick(&self) {
        self.sessions.all().iter().for_each(|session| session.tick());
    }
}

#[cfg(test)]
mod tests;
