//! `hone serve`: the one daemon of a user, behind a private Unix socket.

use crate::app::App;
use crate::app::startup::{self, ServeOptions};
use crate::config::Config;
use crate::daemon::election::elect;
use crate::daemon::handshake::{Command, Hello, PROTOCOL, Reply, Welcome, read_line, write_line};
use crate::learning::LearnNow;
use crate::paths::{self, Home};
use crate::protocol::handlers;
use crate::report::export;
use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How often the daemon looks whether anybody still needs it.
const IDLE_CHECK: Duration = Duration::from_secs(1);

/// Connections at once; an editor window is one.
const MAX_CONNECTIONS: usize = 256;

/// Wait before the next connection where this one could not be taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time that open connections get to end when the daemon is asked to.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

pub async fn run(home: Home, options: &ServeOptions) -> Result<()> {
    home.create()?;
    let socket = home.socket()?;
    let _elected = elect(&home)?;
    let (app, learn_now) = startup::start(home, options).await?;
    // Ours by election: what lies there is a dead daemon's.
    match std::fs::remove_file(&socket) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("{}: stale socket", socket.display()));
        }
        _ => {}
    }
    let listener = UnixListener::bind(&socket)
        .with_context(|| format!("{}: cannot listen", socket.display()))?;
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
    tracing::info!("serving {} on {}", app.services.adapters.model().name, socket.display());

    let stop = Arc::new(Notify::new());
    let connections = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // Out of file descriptors: whoever knocked still waits, and
                    // asking at once would be asking for ever.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                // The folder's mode keeps others out already; one that was loosened does not.
                if stream.peer_cred().map_or(true, |peer| peer.uid() != paths::user()) {
                    tracing::warn!("another user knocked and was not let in");
                    continue;
                }
                let Ok(permit) = connections.clone().try_acquire_owned() else {
                    tracing::warn!("more than {MAX_CONNECTIONS} connections: one was refused");
                    continue;
                };
                let (app, stop, learn) = (app.clone(), stop.clone(), learn_now.clone());
                tokio::spawn(async move {
                    if let Err(error) = connection(stream, &app, &stop, learn).await {
                        tracing::debug!("connection ended: {error:#}");
                    }
                    drop(permit);
                });
            }
            () = idle(&app) => {
                tracing::info!("no editor for {} s: ending", app.services.settings.current().daemon.idle_exit_s);
                break;
            }
            () = stop.notified() => break,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    let _ = std::fs::remove_file(&socket);
    drop(listener);
    let _ = app.services.recorder.flush().await;
    // Whoever asked us to stop waits for the end of its stream.
    let all = connections.acquire_many(MAX_CONNECTIONS as u32);
    let _ = tokio::time::timeout(DRAIN_LIMIT, all).await;
    let _ = app.services.recorder.flush().await;
    Ok(())
}

/// Resolves when nobody has been connected for the configured time.
async fn idle(app: &App) {
    let limit = || Duration::from_secs(app.services.settings.current().daemon.idle_exit_s);
    let mut since = Instant::now();
    while since.elapsed() < limit() {
        tokio::time::sleep(IDLE_CHECK.min(limit())).await;
        if app.open_sessions() > 0 || app.is_training() {
            since = Instant::now();
        }
    }
}

async fn connection(
    stream: UnixStream,
    app: &Arc<App>,
    stop: &Notify,
    learn: LearnNow,
) -> Result<()> {
    let (read, mut write) = stream.into_split();
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
        Command::Learn => write_line(&mut write, &learn_now(app, &learn)).await?,
        Command::UseAdapter { adapter } => {
            let used = app.services.adapters.use_adapter(adapter).await;
            write_line(&mut write, &Reply::from(used)).await?;
        }
        Command::ImportAdapter { path } => {
            write_line(&mut write, &told(app.import_adapter(path).await)).await?;
        }
        Command::Configure => {
            let config = Config::load(&app.paths.config_file());
            let taken = config.map(|config| app.services.settings.replace(config));
            write_line(&mut write, &Reply::from(taken)).await?;
        }
        Command::Forget { scope, plan: true } => {
            write_line(&mut write, &told(app.plan_to_forget(scope).await)).await?;
        }
        Command::Forget { scope, plan: false } => {
            write_line(&mut write, &told(app.forget(scope).await)).await?;
        }
        Command::Events => export::stream(app.services.recorder.log().clone(), &mut write).await?,
        Command::Stop => {
            stop.notify_one();
            // The end of this stream tells the caller that all is on disk, or in the daemon's log
            // why not.
            let _ = app.services.recorder.flush().await;
        }
        Command::Unknown => {}
    }
    write.shutdown().await.ok();
    Ok(())
}

/// Why a program that connects is not served, if so, and what to do.
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
    let error = app.services.adapters.serving().learning_refusal();
    if waiting > 0 && error.is_none() {
        let _ = learn.try_send(());
    }
    serde_json::json!({ "waiting": waiting, "error": error })
}

/// A result as it is sent.
fn told<T>(result: Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{error:#}"))
}
