//! The server, `hone serve`: the one daemon of a user, behind a private Unix socket.

use crate::app::App;
use crate::app::startup::{self, ServeOptions};
use crate::config::Config;
use crate::daemon::election::elect;
use crate::daemon::handshake::{Command, Hello, PROTOCOL, Reply, Welcome, read_line, write_line};
use crate::learning::LearnNow;
use crate::paths::Paths;
use crate::platform::connection::{self, Listener, Stream};
use crate::platform::process::Termination;
use crate::protocol::handlers;
use crate::report::export;
use anyhow::Result;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// The time between two checks whether an editor is connected.
const IDLE_CHECK: Duration = Duration::from_secs(10);

/// The most connections at a time. An editor window has one.
const MAX_CONNECTIONS: usize = 256;

/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The time in which open connections must end when the daemon stops.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// Runs the daemon until it is idle, stopped or terminated.
pub async fn run(home: Paths, options: &ServeOptions) -> Result<()> {
    home.create()?;
    let socket = home.socket()?;
    let _elected = elect(&home)?;
    let (app, learn) = startup::start(home, options).await?;
    let mut listener = Listener::open(&socket)?;
    tracing::info!("serving {} on {}", app.services.adapters.model().name, socket.display());

    let server = Server {
        app,
        learn,
        stop: Arc::new(Notify::new()),
        connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
    };
    let mut termination = Termination::listen()?;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(stream) => server.accept(stream),
                // There are no more file descriptors. The client still waits, and another attempt
                // at once would fail in the same way.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            limit_s = idle(&server.app) => {
                tracing::info!("no editor for {limit_s} s: ending");
                break;
            }
            () = server.stop.notified() => break,
            () = termination.requested() => break,
        }
    }
    let _ = std::fs::remove_file(&socket);
    drop(listener);
    server.drain().await;
    Ok(())
}

/// What all connections share.
struct Server {
    app: Arc<App>,
    learn: LearnNow,
    /// A connection notifies it when the daemon should end.
    stop: Arc<Notify>,
    /// One permit for each connection.
    connections: Arc<Semaphore>,
}

impl Server {
    /// Serves a connection in the background, or drops it if it is not allowed.
    fn accept(&self, stream: Stream) {
        // The folder's mode keeps other users out, unless the user has loosened it.
        if !connection::is_with_own_user(&stream).unwrap_or(false) {
            tracing::warn!("a connection of another user was refused");
            return;
        }
        let Ok(permit) = self.connections.clone().try_acquire_owned() else {
            tracing::warn!("more than {MAX_CONNECTIONS} connections: one was refused");
            return;
        };
        let (app, stop, learn) = (self.app.clone(), self.stop.clone(), self.learn.clone());
        tokio::spawn(async move {
            if let Err(error) = connection(stream, &app, &stop, learn).await {
                tracing::debug!("connection ended: {error:#}");
            }
            drop(permit);
        });
    }

    /// Waits until every event is on disk and the connections have ended.
    async fn drain(&self) {
        let _ = self.app.services.recorder.flush().await;
        // The client that asked the daemon to stop waits for the end of its stream.
        let all = self.connections.acquire_many(MAX_CONNECTIONS as u32);
        let _ = tokio::time::timeout(DRAIN_LIMIT, all).await;
        let _ = self.app.services.recorder.flush().await;
    }
}

/// Resolves when no client has been connected for the configured time, with that time in seconds.
async fn idle(app: &App) -> u64 {
    let limit_s = || app.services.settings.current().daemon.idle_exit_s;
    let limit = || Duration::from_secs(limit_s());
    let mut since = Instant::now();
    while since.elapsed() < limit() {
        tokio::time::sleep(IDLE_CHECK.min(limit())).await;
        if app.open_sessions() > 0 || app.is_training() {
            since = Instant::now();
        }
    }
    limit_s()
}

async fn connection(stream: Stream, app: &Arc<App>, stop: &Notify, learn: LearnNow) -> Result<()> {
    let (read, mut write) = connection::split(stream);
    let mut read = BufReader::new(read);
    let hello: Hello = read_line(&mut read).await?;
    if let Some(error) = refusal(&hello) {
        write_line(&mut write, &Welcome::no(error)).await?;
        if hello.protocol > PROTOCOL {
            stop.notify_one();
        }
        return Ok(());
    }
    write_line(&mut write, &Welcome::yes()).await?;
    match hello.command {
        Command::Lsp => handlers::serve(app.clone(), learn, read, &mut write).await,
        Command::Status => write_line(&mut write, &app.status()).await?,
        Command::Why => write_line(&mut write, &app.services.requests.latest()).await?,
        Command::Snooze { snooze } => {
            app.services.snoozes.apply(&snooze);
            write_line(&mut write, &Reply::from(Ok(()))).await?;
        }
        Command::Learn => write_line(&mut write, &learn_now(app, &learn)).await?,
        Command::UseAdapter { adapter } => {
            let used = app.services.adapters.use_adapter(adapter).await;
            write_line(&mut write, &Reply::from(used)).await?;
        }
        Command::ImportAdapter { path } => {
            write_line(&mut write, &sendable(app.import_adapter(path).await)).await?;
        }
        Command::Configure => {
            let config = Config::load(&app.paths.config_file());
            let replaced = config.map(|config| app.services.settings.replace(config));
            write_line(&mut write, &Reply::from(replaced)).await?;
        }
        Command::Forget { scope, plan: true } => {
            write_line(&mut write, &sendable(app.plan_to_forget(scope).await)).await?;
        }
        Command::Forget { scope, plan: false } => {
            write_line(&mut write, &sendable(app.forget(scope).await)).await?;
        }
        Command::Contribute { members, epsilon_parts } => {
            let epsilon = epsilon_parts.map(|parts| parts as f64 / 1000.0);
            write_line(&mut write, &sendable(app.contribute(members, epsilon).await)).await?;
        }
        Command::Receive { message } => {
            write_line(&mut write, &sendable(app.receive(message).await)).await?;
        }
        Command::Events => export::stream(app.services.recorder.log().clone(), &mut write).await?,
        Command::Stop => {
            stop.notify_one();
            // The end of this stream tells the client that everything is on disk, or that the
            // daemon's log says why not.
            let _ = app.services.recorder.flush().await;
        }
        Command::Unknown => {}
    }
    write.shutdown().await.ok();
    Ok(())
}

/// The reason why a client is refused, if it is, and what to do about it.
fn refusal(hello: &Hello) -> Option<String> {
    let version = env!("CARGO_PKG_VERSION");
    if hello.protocol > PROTOCOL {
        return Some(format!("this daemon ({version}) is older and makes way"));
    }
    if hello.protocol < PROTOCOL {
        return Some(format!(
            "`hone {}` is older than the running daemon ({version}); restart the editor, or \
             `hone stop` and reinstall",
            hello.version,
        ));
    }
    let is_unknown = hello.command == Command::Unknown;
    is_unknown.then(|| "unknown command; update the program that asked".to_owned())
}

fn learn_now(app: &App, learn: &LearnNow) -> serde_json::Value {
    let waiting = app.services.recorder.labels_waiting();
    let error = app.services.adapters.learning_refusal();
    if waiting > 0 && error.is_none() {
        let _ = learn.try_send(());
    }
    serde_json::json!({ "waiting": waiting, "error": error })
}

/// The result in the form that is sent.
fn sendable<T>(result: Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{error:#}"))
}
