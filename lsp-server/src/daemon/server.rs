//! The server, `hone serve`: the one daemon of a user, behind a private Unix socket.

use crate::app::App;
use crate::app::startup::{Prepared, ServeOptions};
use crate::daemon::anchors::{Anchors, Missing, elect_again};
use crate::daemon::election::elect;
use crate::daemon::handshake::{
    Command, Ending, Hello, PROTOCOL, Reply, Welcome, read_line, write_line,
};
use crate::daemon::http;
use crate::daemon::loading::LoadingNote;
use crate::daemon::log_file;
use crate::protocol::handlers;
use anyhow::{Result, anyhow, bail};
use host::paths::Paths;
use host::platform::connection::{self, Listener, Stream, WriteHalf};
use host::platform::process::Termination;
use host::tasks;
use learning::LearnNow;
use report::export;
use services::health::TroubleSource;
use services::part::Part;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
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
    let log_file = home.daemon_log();
    let mut elected = elect(&home)?;
    let mut loading_note = Some(LoadingNote::begin(&home));
    let prepared = Prepared::new(home.clone(), options)?;
    if let Some(note) = &mut loading_note {
        note.name(prepared.model_name());
    }
    let log = prepared.log();
    let mut listener = Listener::open(&socket)?;
    let mut anchors = Anchors::new(&home, &elected)?;
    let mut missing = anchors.follow();
    let (loading, progress) = watch::channel(Loading::Busy);
    let (http, questions) = mpsc::channel(1);
    let mut questions = Some(questions);
    let server = Server {
        progress,
        end: Arc::default(),
        connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        http,
    };
    let mut termination = Termination::listen()?;
    // Loading blocks its thread now and then. Connections are accepted meanwhile.
    let mut started = tokio::spawn(prepared.start());
    let mut log_checks = tokio::time::interval(log_file::CHECK_INTERVAL);
    let mut result = Ok(());
    // True if the user wants the daemon to end. Forwarders end too if they find no socket.
    let is_asked_to_end = loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(stream) => server.accept(stream),
                // There are no more file descriptors. The client still waits, and another attempt
                // at once would fail in the same way.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            app = tasks::ended(&mut started), if server.is_loading() => match app.flatten() {
                Ok((app, learn)) => {
                    drop(loading_note.take());
                    let mut progress = server.progress.clone();
                    let ends = async move { while progress.changed().await.is_ok() {} };
                    if let Some(questions) = questions.take() {
                        let following = http::follow(Arc::downgrade(&app), questions, ends);
                        app.services.parts.spawn(Part::Http, following);
                    }
                    let name = &app.services.adapters.model().name;
                    tracing::info!("serving {name} on {}", socket.display());
                    loading.send_replace(Loading::Done(app, learn));
                }
                Err(error) => {
                    loading.send_replace(Loading::Failed(format!("{error:#}").into()));
                    result = Err(error);
                    break false;
                }
            },
            limit_s = server.idle() => {
                tracing::info!("no editor for {limit_s} s: ending");
                break true;
            }
            _ = log_checks.tick() => {
                let path = log_file.clone();
                let cut = tokio::task::spawn_blocking(move || log_file::cut(&path)).await;
                if let Ok(Err(error)) = cut {
                    tracing::warn!("{}: it is long and cannot be cut: {error}", log_file.display());
                }
            }
            Some(what) = missing.recv() => {
                match restore(&home, what, &socket) {
                    Ok((again, opened)) => {
                        tracing::warn!("{what:?} was removed or replaced while the daemon ran");
                        elected = again.unwrap_or(elected);
                        listener = opened;
                        anchors = Anchors::new(&home, &elected)?;
                        missing = anchors.follow();
                    }
                    Err(error) => {
                        result = Err(error);
                        break false;
                    }
                }
            }
            part = server.vital_part_died() => {
                result = Err(anyhow!("{part} has ended by a fault of Hone's own; the next editor \
                    starts it again"));
                break false;
            }
            () = server.end.restart.notified() => break false,
            () = server.end.stop.notified() => break true,
            () = termination.requested() => break true,
        }
    };
    // Another daemon's socket may be there by now.
    if is_asked_to_end && anchors.has_its_socket() {
        let _ = std::fs::remove_file(&socket);
    }
    drop(listener);
    // Editors' connections end, and those that wait for the model.
    drop(loading);
    server.drain().await;
    // The next daemon needs the log, and the rest of this process takes a while to go: the system
    // gives a thread of low priority little time to end.
    log.close();
    result
}

/// Makes again what is missing of what others find the daemon by.
///
/// # Errors
/// The home is gone, or another daemon has taken over. This one can only end.
fn restore(home: &Paths, missing: Missing, socket: &Path) -> Result<(Option<File>, Listener)> {
    let elected = match missing {
        Missing::Home => {
            bail!("{}: moved or removed while the daemon ran", home.root().display())
        }
        Missing::Lock => Some(elect_again(home)?),
        Missing::Socket => None,
    };
    Ok((elected, Listener::open(socket)?))
}

/// How far the daemon is with loading its model.
#[derive(Clone)]
enum Loading {
    Busy,
    Done(Arc<App>, LearnNow),
    /// The reason.
    Failed(Arc<str>),
}

/// How a connection says that the daemon should end.
#[derive(Default)]
struct End {
    /// The user wants the daemon to end.
    stop: Notify,
    /// The open editors start another one, perhaps of a newer Hone.
    restart: Notify,
}

impl End {
    fn by(&self, command: &Command) {
        match command {
            Command::Restart => self.restart.notify_one(),
            _ => self.stop.notify_one(),
        }
    }
}

/// What all connections share.
struct Server {
    progress: watch::Receiver<Loading>,
    end: Arc<End>,
    /// One permit for each connection.
    connections: Arc<Semaphore>,
    /// Asks what the HTTP API does.
    http: mpsc::Sender<http::Question>,
}

impl Server {
    fn is_loading(&self) -> bool {
        matches!(*self.progress.borrow(), Loading::Busy)
    }

    fn app(&self) -> Option<Arc<App>> {
        match &*self.progress.borrow() {
            Loading::Done(app, _) => Some(app.clone()),
            Loading::Busy | Loading::Failed(_) => None,
        }
    }

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
        let (progress, end) = (self.progress.clone(), self.end.clone());
        let http = self.http.clone();
        tokio::spawn(async move {
            if let Err(error) = connection(stream, progress, &end, &http).await {
                tracing::debug!("connection ended: {error:#}");
            }
            drop(permit);
        });
    }

    /// Resolves when no client has been connected for the configured time, with that time in
    /// seconds. It never does while the model is being loaded.
    async fn idle(&self) -> u64 {
        match self.app() {
            Some(app) => idle(&app).await,
            None => std::future::pending().await,
        }
    }

    /// Resolves when a part has died without which the daemon cannot do its work.
    async fn vital_part_died(&self) -> Part {
        match self.app() {
            Some(app) => app.services.parts.vital_one_died().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until every event is on disk and the connections have ended.
    async fn drain(&self) {
        self.flush().await;
        // The client that asked the daemon to stop waits for the end of its stream.
        let all = self.connections.acquire_many(MAX_CONNECTIONS as u32);
        let _ = tokio::time::timeout(DRAIN_LIMIT, all).await;
        self.flush().await;
    }

    /// If it fails, the reason is in the log.
    async fn flush(&self) {
        if let Some(app) = self.app() {
            let _ = app.services.recorder.flush().await;
        }
    }
}

/// Resolves when no client has been connected for the configured time, with that time in seconds.
async fn idle(app: &App) -> u64 {
    let limit_s = || app.services.settings.current().lab.idle_exit_s;
    let limit = || Duration::from_secs(limit_s());
    let mut since = Instant::now();
    while since.elapsed() < limit() {
        tokio::time::sleep(IDLE_CHECK.min(limit())).await;
        let is_api_on = app.services.settings.current().api.enabled;
        if app.open_editors() > 0 || app.is_training() || is_api_on {
            since = Instant::now();
        }
    }
    limit_s()
}

async fn connection(
    stream: Stream,
    mut progress: watch::Receiver<Loading>,
    end: &End,
    http: &mpsc::Sender<http::Question>,
) -> Result<()> {
    let (read, mut write) = connection::split(stream);
    let mut read = BufReader::new(read);
    let hello: Hello = read_line(&mut read).await?;
    if let Some(error) = refusal(&hello) {
        write_line(&mut write, &Welcome::no(error)).await?;
        if hello.protocol > PROTOCOL {
            end.restart.notify_one();
        }
        return Ok(());
    }
    let (app, learn) = match welcome(&hello, &mut progress, &mut write).await? {
        Some(loaded) => loaded,
        None if hello.command.ends_daemon() => {
            end.by(&hello.command);
            return Ok(());
        }
        None => return Ok(()),
    };
    let app = &app;
    let daemon_ends = async { while progress.changed().await.is_ok() {} };
    match hello.command {
        Command::Lsp => {
            handlers::serve(app.clone(), learn, read, &mut write, daemon_ends).await;
        }
        Command::Status => write_line(&mut write, &app.status()).await?,
        Command::Why => write_line(&mut write, &app.services.requests.latest()).await?,
        Command::Snooze { snooze } => {
            app.services.snoozes.apply(&snooze);
            write_line(&mut write, &Reply::from(Ok(()))).await?;
        }
        Command::Learn => write_line(&mut write, &learn_now(app, &learn)).await?,
        Command::UseAdapter { adapter } => {
            let used = app.services.adapters.use_adapter(adapter).await;
            if used.is_ok() {
                app.services.health.clear(TroubleSource::Answers);
            }
            write_line(&mut write, &Reply::from(used)).await?;
        }
        Command::ImportAdapter { path } => {
            write_line(&mut write, &sendable(app.import_adapter(path).await)).await?;
        }
        Command::Adopt { file, origin, basis } => {
            write_line(&mut write, &sendable(app.adopt(file, origin, basis).await)).await?;
        }
        Command::Configure => {
            let read = app.services.settings.reload(&app.paths.config_file());
            write_line(&mut write, &Reply::from(read)).await?;
        }
        Command::Http => write_line(&mut write, &http::ask(http).await?).await?,
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
        Command::LabelsForTeam => {
            write_line(&mut write, &sendable(app.labels_for_team().await)).await?;
        }
        Command::Receive { message } => {
            write_line(&mut write, &sendable(app.receive(message).await)).await?;
        }
        Command::Events => {
            export::stream_all(app.services.recorder.log().clone(), &mut write).await?;
        }
        Command::Follow { from } => {
            let recorder = &app.services.recorder;
            // A client that follows sends nothing more. What can be read is its end.
            let end = async {
                tokio::select! {
                    _ = read.read_u8() => {}
                    () = daemon_ends => {}
                }
            };
            export::follow(recorder.log(), recorder.recorded(), from, &mut write, end).await?;
        }
        Command::AdvanceClock { ms } => {
            let moved = app.services.clock.advance(ms);
            app.tick();
            let result = moved.then_some(()).ok_or_else(|| anyhow!("this daemon's clock stays"));
            write_line(&mut write, &Reply::from(result)).await?;
        }
        command @ (Command::Stop | Command::Restart) => {
            // Their connections end with the daemon.
            let ending = Ending { editors: app.open_editors() };
            end.by(&command);
            let _ = write_line(&mut write, &ending).await;
            // The end of this stream tells the client that everything is on disk, or that the
            // daemon's log says why not.
            let _ = app.services.recorder.flush().await;
        }
        Command::Unknown => {}
    }
    write.shutdown().await.ok();
    Ok(())
}

/// Welcomes a client, and waits for the model. `None` if the client is not served: the model cannot
/// be loaded, or the client wants the daemon to end before it is.
async fn welcome(
    hello: &Hello,
    progress: &mut watch::Receiver<Loading>,
    write: &mut WriteHalf,
) -> Result<Option<(Arc<App>, LearnNow)>> {
    let is_busy = matches!(*progress.borrow(), Loading::Busy);
    let needs_no_model = hello.command.ends_daemon();
    let first = if is_busy && !needs_no_model { Welcome::loading() } else { Welcome::yes() };
    write_line(write, &first).await?;
    if is_busy && needs_no_model {
        return Ok(None);
    }
    let loading = progress.wait_for(|progress| !matches!(progress, Loading::Busy)).await?.clone();
    let (answer, app) = match loading {
        Loading::Done(app, learn) => (Welcome::yes(), Some((app, learn))),
        Loading::Failed(reason) => (Welcome::no(reason.to_string()), None),
        Loading::Busy => return Ok(None),
    };
    if first.loading {
        write_line(write, &answer).await?;
    }
    Ok(app)
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
