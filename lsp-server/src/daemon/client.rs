//! The client side of the daemon's socket: it finds the daemon, starts it, and sends the one-line
//! requests of the command line.
#![allow(clippy::disallowed_types, reason = "it starts this program as the daemon")]

use crate::app::startup::ServeOptions;
use crate::daemon::election::ALREADY_RUNNING;
use crate::daemon::ends::Ends;
use crate::daemon::handshake::{
    Command, Ending, Hello, PROTOCOL, Reply, Welcome, read_late_line, read_line, write_line,
};
use crate::daemon::log_file;
use anyhow::{Context, Result, bail};
use feedback::log::LogError;
use host::paths::{Paths, cannot_open};
use host::platform::connection::{self, ReadHalf, WriteHalf};
use host::platform::files;
use host::platform::process::{detach, own_program};
use serde::de::DeserializeOwned;
use settings::Config;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, BufReader};
// Unlike the standard library's `Child`, tokio's leaves no zombie of a daemon that died.
use tokio::process::{self, Child};
use tokio::time::{Instant, sleep};

/// The time in which a daemon must find its model and listen. The slowest part is the first hash of
/// a large model.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The time in which a daemon must end.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The time between two looks at a daemon that starts or ends. An editor that starts waits for it.
const POLL: Duration = Duration::from_millis(10);

pub struct Connection {
    pub read: BufReader<ReadHalf>,
    pub write: WriteHalf,
    /// The daemon loads its model, and has another [`Welcome`] to say.
    pub is_loading: bool,
    /// The process of the daemon.
    pub pid: u32,
    /// The daemon, if this process has started it.
    pub daemon: Option<Child>,
}

/// How the loading of a daemon's model ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Loaded {
    Yes,
    /// The daemon ended before. Its status is known if this process has started it.
    DaemonGone(Option<ExitStatus>),
}

impl Connection {
    /// Waits until the daemon has loaded its model. The future can be dropped only together with
    /// the connection.
    ///
    /// # Errors
    /// The model cannot be loaded; the error gives the daemon's reason.
    pub async fn loaded(&mut self, home: &Paths) -> Result<Loaded> {
        if !self.is_loading {
            return Ok(Loaded::Yes);
        }
        let Ok(Welcome { error, .. }) = read_late_line(&mut self.read).await else {
            return self.gone(home).await;
        };
        self.is_loading = false;
        match error {
            None => Ok(Loaded::Yes),
            Some(error) => bail!("{error}"),
        }
    }

    /// llama.cpp ends the process on some files, and the daemon's log then says why. A daemon that
    /// was killed, or stopped, has no such reason.
    async fn gone(&mut self, home: &Paths) -> Result<Loaded> {
        let Some(daemon) = &mut self.daemon else { return Ok(Loaded::DaemonGone(None)) };
        let status = daemon.wait().await?;
        if let Some(code) = status.code()
            && code != 0
            && code != i32::from(ALREADY_RUNNING)
        {
            bail!("{}", last_line(&home.daemon_log()));
        }
        Ok(Loaded::DaemonGone(Some(status)))
    }
}

enum Refusal {
    /// No daemon listens.
    NoDaemon,
    /// The daemon speaks an older protocol and ends now.
    Older,
}

/// Connects to a running daemon, once its model is loaded. Returns `None` if there is none.
pub async fn connect(home: &Paths, command: Command) -> Result<Option<Connection>> {
    match dial(home, command).await? {
        Ok(mut connection) => match connection.loaded(home).await? {
            Loaded::Yes => Ok(Some(connection)),
            Loaded::DaemonGone(_) => Ok(None),
        },
        Err(Refusal::NoDaemon) => Ok(None),
        Err(Refusal::Older) => {
            bail!("the running daemon is of an older Hone and ends now; try again")
        }
    }
}

/// Does the same, but waits for a daemon that is just starting or ending.
pub async fn connect_settled(home: &Paths, command: Command) -> Result<Option<Connection>> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        let connection = connect(home, command.clone()).await?;
        if connection.is_some() || !lock_is_held(home)? {
            return Ok(connection);
        }
        anyhow::ensure!(
            Instant::now() <= deadline,
            "{}: a daemon holds this lock and cannot be reached; end the process `hone serve`",
            home.daemon_lock().display()
        );
        sleep(POLL).await;
    }
}

/// Returns whether a daemon that started after [`connect_settled`] had found none holds the log,
/// which made reading the files fail with this error. The caller then asks that daemon.
pub fn has_started_since(home: &Paths, error: &anyhow::Error) -> bool {
    let in_use = matches!(error.downcast_ref(), Some(LogError::InUse { .. }));
    in_use && lock_is_held(home).unwrap_or(false)
}

/// Returns whether an error means that there is no daemon: the socket is missing, or a dead daemon
/// left it, or the daemon died before it accepted the connection.
fn means_no_daemon(error: ErrorKind) -> bool {
    use ErrorKind::{ConnectionRefused, ConnectionReset, NotFound};
    matches!(error, NotFound | ConnectionRefused | ConnectionReset)
}

async fn dial(home: &Paths, command: Command) -> Result<Result<Connection, Refusal>> {
    let path = home.socket()?;
    let stream = match connection::connect(&path).await {
        Ok(stream) => stream,
        Err(error) if means_no_daemon(error.kind()) => return Ok(Err(Refusal::NoDaemon)),
        Err(error) => return Err(cannot_open(&path, &error)),
    };
    anyhow::ensure!(
        connection::is_with_own_user(&stream)?,
        "{}: another user listens there; set HONE_HOME to a folder of your own",
        path.display()
    );
    let (read, mut write) = connection::split(stream);
    let mut read = BufReader::new(read);
    let sent = write_line(&mut write, &Hello::new(command)).await;
    let welcome: Welcome = match (sent, read_line(&mut read).await) {
        (Ok(()), Ok(welcome)) => welcome,
        // The daemon ended after the connection and before its answer.
        _ => return Ok(Err(Refusal::NoDaemon)),
    };
    match welcome.error {
        None => {
            let Welcome { loading: is_loading, pid, .. } = welcome;
            Ok(Ok(Connection { read, write, is_loading, pid, daemon: None }))
        }
        Some(_) if welcome.protocol < PROTOCOL => Ok(Err(Refusal::Older)),
        Some(error) => bail!("{error}"),
    }
}

/// Connects to the daemon, and starts one if there is none. The daemon may still be loading. `ends`
/// counts those that ended before, in this call and earlier ones.
pub async fn connect_or_start(
    home: &Paths,
    options: &ServeOptions,
    ends: &mut Ends,
) -> Result<Connection> {
    home.create()?;
    connect_or_start_by(home, ends, || start_daemon(home, options)).await
}

async fn connect_or_start_by(
    home: &Paths,
    ends: &mut Ends,
    mut start: impl FnMut() -> Result<Child>,
) -> Result<Connection> {
    let deadline = Instant::now() + START_LIMIT;
    let mut child: Option<Child> = None;
    loop {
        if let Ok(connection) = dial(home, Command::Lsp).await? {
            return Ok(Connection { daemon: child, ..connection });
        }
        match child.as_mut().map(Child::try_wait).transpose()?.flatten() {
            None if child.is_none() => child = Some(start()?),
            None => {}
            // Another forwarder's daemon runs and answers the next attempt. If that daemon was just
            // dying, the lock is free now.
            Some(status)
                if status.code() == Some(ALREADY_RUNNING.into()) && !lock_is_held(home)? =>
            {
                child = None;
            }
            // It was killed, so another one is started.
            Some(status) if status.code().is_none() => {
                child = None;
                ends.add(home, Some(status))?;
            }
            // Another forwarder's daemon holds the lock and will answer.
            Some(_) if lock_is_held(home)? => {}
            Some(status) if !status.success() => bail!("{}", last_line(&home.daemon_log())),
            // It ended cleanly before it could be reached: by `hone stop`, or by a short
            // `lab.idle_exit_s`.
            Some(status) => {
                child = None;
                ends.add(home, Some(status))?;
            }
        }
        if Instant::now() > deadline {
            bail!("{}: the daemon did not answer in time", home.daemon_log().display());
        }
        sleep(POLL).await;
    }
}

fn start_daemon(home: &Paths, options: &ServeOptions) -> Result<Child> {
    let path = home.daemon_log();
    log_file::begin(&path);
    let log = files::private()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|error| cannot_open(&path, &error))?;
    let this = own_program().context("cannot tell where this program is")?;
    let mut command = process::Command::new(this);
    command
        .arg("serve")
        .args(options.to_args())
        // The folder of the editor that starts it stays free to be removed or unmounted.
        .current_dir(home.root())
        .env("HONE_HOME", home.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    if let Some(learner) = std::env::var_os("HONE_LEARNER").filter(|value| !value.is_empty()) {
        command.env("HONE_LEARNER", std::path::absolute(learner)?);
    }
    // An editor's Ctrl-C or end must not reach the other editors' daemon.
    detach(command.as_std_mut());
    command.spawn().context("cannot start the daemon")
}

fn lock_is_held(home: &Paths) -> Result<bool> {
    match File::open(home.daemon_lock()) {
        Ok(file) => Ok(matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(cannot_open(&home.daemon_lock(), &error)),
    }
}

/// The last line of the daemon's log, which says why it ended. The log never holds code.
fn last_line(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    match text.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => line.trim_start_matches("Error: ").to_owned(),
        None => format!("{}: the daemon ended without a reason", log.display()),
    }
}

/// Asks a running daemon for a change. Returns false if none runs.
///
/// # Errors
/// The daemon refuses; the error gives its reason.
pub async fn ask(home: &Paths, command: Command) -> Result<bool> {
    match question::<Reply>(home, command).await? {
        None => Ok(false),
        Some(Reply { error: None }) => Ok(true),
        Some(Reply { error: Some(error) }) => bail!("{error}"),
    }
}

/// Asks a running daemon. Returns `None` if none runs.
pub async fn question<T: DeserializeOwned>(home: &Paths, command: Command) -> Result<Option<T>> {
    let Some(mut connection) = connect_settled(home, command).await? else { return Ok(None) };
    let mut text = String::new();
    connection.read.read_to_string(&mut text).await?;
    serde_json::from_str(&text).map(Some).context("the daemon gave no answer")
}

/// Stops the daemon, if one runs. One whose socket was removed listens again soon.
pub async fn stop(home: &Paths) -> Result<Option<Ended>> {
    let ended = end(home, Command::Stop).await?;
    if ended.is_none() {
        return Ok(None);
    }
    let deadline = Instant::now() + STOP_LIMIT;
    while lock_is_held(home)? {
        if Instant::now() > deadline {
            bail!("the daemon did not end within {} s", STOP_LIMIT.as_secs());
        }
        sleep(POLL).await;
    }
    Ok(ended)
}

/// What has become of a daemon that is to start anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// None ran.
    NoneRan,
    /// The open editors find it gone and start another.
    LeftToEditors,
    /// No editor is open, and the next one starts another.
    LeftToNextEditor,
    /// Another serves.
    Done,
}

/// Ends the daemon. The next one takes the settings as they are now. Its lock may be held again at
/// once.
pub async fn restart(home: &Paths) -> Result<Restart> {
    let Some(Ended { pid, has_editors }) = end(home, Command::Restart).await? else {
        return Ok(Restart::NoneRan);
    };
    // The HTTP API's clients start none. Wrong settings are told by whoever starts the next one.
    if !Config::load(&home.config_file()).is_ok_and(|config| config.api.enabled) {
        return Ok(if has_editors { Restart::LeftToEditors } else { Restart::LeftToNextEditor });
    }
    let deadline = Instant::now() + STOP_LIMIT;
    // It may still welcome somebody while it ends.
    while start(home).await? == pid {
        if Instant::now() > deadline {
            bail!("the daemon did not end within {} s", STOP_LIMIT.as_secs());
        }
        sleep(POLL).await;
    }
    Ok(Restart::Done)
}

/// Has a daemon serve, which is started if there is none, and waits until it has its model. Returns
/// its process.
pub async fn start(home: &Paths) -> Result<u32> {
    let mut ends = Ends::default();
    let mut daemon = connect_or_start(home, &ServeOptions::default(), &mut ends).await?;
    daemon.loaded(home).await?;
    Ok(daemon.pid)
}

/// A daemon that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    pid: u32,
    /// True if editors were connected, which start another. One that still loaded its model did not
    /// tell, and an editor has started most of those.
    pub has_editors: bool,
}

/// Has the daemon end, if one runs.
async fn end(home: &Paths, command: Command) -> Result<Option<Ended>> {
    let ending = connect_settled(home, command).await?;
    let Some(mut connection) = ending else { return Ok(None) };
    let mut text = String::new();
    connection.read.read_to_string(&mut text).await?;
    let has_none = serde_json::from_str::<Ending>(&text).is_ok_and(|ending| ending.editors == 0);
    Ok(Some(Ended { pid: connection.pid, has_editors: !has_none }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use tokio::time::timeout;

    /// A process that succeeds and ends at once.
    fn ends_at_once() -> Result<Child> {
        Ok(process::Command::new("true").spawn()?)
    }

    /// A home in which no daemon has run.
    fn home() -> (tempfile::TempDir, Paths) {
        let folder = tempfile::tempdir().unwrap();
        let home = Paths::at(folder.path().into());
        home.create().unwrap();
        (folder, home)
    }

    /// A daemon that ended cleanly before a client reached it was taken for a success. The
    /// forwarder started no other, and the editor waited 120 seconds for an answer to `initialize`.
    #[tokio::test]
    async fn a_daemon_that_ends_before_it_is_reached_is_followed_by_another() {
        let (_folder, home) = home();
        let socket = home.socket().unwrap();
        let mut starts = 0;
        let mut ends = Ends::default();
        let connecting = connect_or_start_by(&home, &mut ends, || {
            starts += 1;
            if starts == 2 {
                let listener = tokio::net::UnixListener::bind(&socket)?;
                tokio::spawn(async move {
                    let (stream, _) = listener.accept().await.unwrap();
                    let (read, mut write) = stream.into_split();
                    let _: Hello = read_line(&mut BufReader::new(read)).await.unwrap();
                    write_line(&mut write, &Welcome::yes()).await.unwrap();
                });
            }
            ends_at_once()
        });
        let connected = timeout(Duration::from_secs(60), connecting).await;
        connected.expect("in time").unwrap();
        assert_eq!(starts, 2);
    }

    #[tokio::test]
    async fn daemons_that_all_end_before_they_are_reached_are_given_up() {
        let (_folder, home) = home();
        let mut ends = Ends::default();
        let connecting = connect_or_start_by(&home, &mut ends, ends_at_once);
        let connected = timeout(Duration::from_secs(60), connecting).await.expect("in time");
        let error = connected.map(drop).unwrap_err().to_string();
        assert!(error.contains("daemon.log: 5 daemons in a row ended before"), "{error}");
    }

    /// Daemons that were killed at once were started for two minutes without an end.
    #[tokio::test]
    async fn daemons_that_are_all_killed_are_given_up_with_what_helps() {
        let (_folder, home) = home();
        let killed_at_once = || -> Result<Child> {
            let mut child = process::Command::new("sleep").arg("60").spawn()?;
            child.start_kill()?;
            Ok(child)
        };
        let mut ends = Ends::default();
        let connecting = connect_or_start_by(&home, &mut ends, killed_at_once);
        let connected = timeout(Duration::from_secs(60), connecting).await.expect("in time");
        let error = connected.map(drop).unwrap_err().to_string();
        assert!(error.contains("5 daemons in a row were killed (signal 9)"), "{error}");
        assert!(error.contains("`hone model use`"), "{error}");
    }

    /// A daemon died after a client connected and before it answered, once in 500 kills. `hone lsp`
    /// took that for an error and ended, and with it the editor's completions.
    #[tokio::test]
    async fn a_daemon_that_dies_before_it_answers_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let home = Paths::at(folder.path().into());
        home.create().unwrap();
        let socket = home.socket().unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let connecting = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        drop(listener);
        let error = connecting.take_error().unwrap().expect("the connection is reset");
        assert!(means_no_daemon(error.kind()), "{error}");
        assert!(dial(&home, Command::Status).await.unwrap().is_err(), "no daemon listens");
    }
}
