//! `hone serve`: the one daemon of a user, behind a private Unix socket.

use crate::adapters::import;
use crate::app::Daemon;
use crate::app::startup::{self, ServeOptions};
use crate::config::Config;
use crate::daemon::handshake::{Answer, Hello, PROTOCOL, Purpose, Welcome, read_line, write_line};
use crate::paths::{self, Home};
use crate::protocol::handlers::{self, LearnNow};
use crate::report::export;
use crate::report::status::{self, LearnerState};
use anyhow::{Context, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
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
    let (daemon, learn_now) = startup::start(home, options).await?;
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
    tracing::info!("serving {} on {}", daemon.model.name, socket.display());

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
                let (daemon, stop, learn) = (daemon.clone(), stop.clone(), learn_now.clone());
                tokio::spawn(async move {
                    if let Err(error) = connection(stream, &daemon, &stop, learn).await {
                        tracing::debug!("connection ended: {error:#}");
                    }
                    drop(permit);
                });
            }
            () = idle(&daemon) => {
                tracing::info!("no editor for {} s: ending", daemon.config().daemon.idle_exit_s);
                break;
            }
            () = stop.notified() => break,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    let _ = std::fs::remove_file(&socket);
    drop(listener);
    let _ = daemon.flush().await;
    // Whoever asked us to stop waits for the end of its stream.
    let all = connections.acquire_many(MAX_CONNECTIONS as u32);
    let _ = tokio::time::timeout(DRAIN_LIMIT, all).await;
    let _ = daemon.flush().await;
    Ok(())
}

/// Exit status of a daemon that is one too many.
pub const ALREADY_RUNNING: u8 = 3;

#[derive(Debug, thiserror::Error)]
#[error(
    "{}: a daemon is already running; use it (`hone status`) or stop it (`hone stop`)",
    lock.display()
)]
pub struct AlreadyRunning {
    lock: PathBuf,
}

/// How long the lock must be held to be a daemon's: who only looks whether one
/// runs (`hone status`) holds it for an instant.
const GLANCE: Duration = Duration::from_millis(200);
const GLANCE_POLL: Duration = Duration::from_millis(10);

/// One daemon a user: the lock on `daemon.lock` is held as long as it lives.
pub fn elect(home: &Home) -> Result<File> {
    let path = home.daemon_lock();
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&path)
        .with_context(|| path.display().to_string())?;
    let began = std::time::Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < GLANCE => {
                std::thread::sleep(GLANCE_POLL);
            }
            Err(TryLockError::WouldBlock) => return Err(AlreadyRunning { lock: path }.into()),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| path.display().to_string());
            }
        }
    }
}

/// Resolves when nobody has been connected for the configured time.
async fn idle(daemon: &Daemon) {
    let limit = || Duration::from_secs(daemon.config().daemon.idle_exit_s);
    let mut since = Instant::now();
    while since.elapsed() < limit() {
        tokio::time::sleep(IDLE_CHECK.min(limit())).await;
        let training = daemon.learner.lock().state == LearnerState::Training;
        if daemon.open_sessions() > 0 || training {
            since = Instant::now();
        }
    }
}

async fn connection(
    stream: UnixStream,
    daemon: &Arc<Daemon>,
    stop: &Notify,
    learn: LearnNow,
) -> Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let hello: Hello = read_line(&mut read).await?;
    if hello.protocol != PROTOCOL {
        let newer = hello.protocol > PROTOCOL;
        let error = if newer {
            format!("this daemon ({}) is older and makes way", env!("CARGO_PKG_VERSION"))
        } else {
            format!(
                "`hone {}` is older than the running daemon ({}); restart the editor, or \
                 `hone stop` and reinstall",
                hello.version,
                env!("CARGO_PKG_VERSION")
            )
        };
        write_line(&mut write, &Welcome::no(error)).await?;
        if newer {
            stop.notify_one();
        }
        return Ok(());
    }
    if hello.purpose == Purpose::Unknown {
        let error = "unknown purpose; update the program that asked".to_owned();
        write_line(&mut write, &Welcome::no(error)).await?;
        return Ok(());
    }
    write_line(&mut write, &Welcome::yes()).await?;
    match hello.purpose {
        Purpose::Lsp => handlers::serve(daemon.session(), learn, read, &mut write).await,
        Purpose::Status => write_line(&mut write, &status::of(daemon)).await?,
        Purpose::Learn => {
            let waiting = daemon.waiting_episodes();
            if waiting > 0 {
                let _ = learn.try_send(());
            }
            write_line(&mut write, &serde_json::json!({ "waiting": waiting })).await?;
        }
        Purpose::UseAdapter { adapter } => {
            let answer = Answer::from(daemon.use_adapter(adapter).await);
            write_line(&mut write, &answer).await?;
        }
        Purpose::ImportAdapter { path } => {
            let importing = daemon.clone();
            let imported = tokio::task::spawn_blocking(move || {
                let model = &importing.model;
                let adapter = import::read(&path, &model.path, &model.sha256)?;
                importing.import_adapter(&adapter)
            });
            let answer = imported.await.map_err(anyhow::Error::from).flatten();
            write_line(&mut write, &answer.map_err(|error| format!("{error:#}"))).await?;
        }
        Purpose::Configure => {
            let config = Config::load(&daemon.home.config_file());
            let answer = Answer::from(config.map(|config| daemon.configure(config)));
            write_line(&mut write, &answer).await?;
        }
        Purpose::Forget { scope, plan } => {
            let answer = match plan {
                true => daemon.plan_to_forget(scope).await,
                false => daemon.forget(scope).await,
            };
            write_line(&mut write, &answer.map_err(|error| format!("{error:#}"))).await?;
        }
        Purpose::Events => export::stream(daemon.event_log(), &mut write).await?,
        Purpose::Stop => {
            stop.notify_one();
            // The end of this stream tells the caller that all is on disk, or in the
            // daemon's log why not.
            let _ = daemon.flush().await;
        }
        Purpose::Unknown => {}
    }
    write.shutdown().await.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_looks_at_the_lock_keeps_no_daemon_from_starting() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().into());
        home.create().unwrap();
        let looking = File::create(home.daemon_lock()).unwrap();
        looking.lock().unwrap();
        let looks = std::thread::spawn(move || {
            std::thread::sleep(2 * GLANCE_POLL);
            drop(looking);
        });
        let elected = elect(&home).unwrap();
        looks.join().unwrap();
        let other = elect(&home).unwrap_err();
        assert!(other.is::<AlreadyRunning>(), "{other:#}");
        drop(elected);
    }
}
