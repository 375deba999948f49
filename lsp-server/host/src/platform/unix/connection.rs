//! The connection to the daemon: a Unix socket that only its user can open.

use super::user;
use anyhow::{Context, Result, ensure};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

pub type Stream = UnixStream;
pub type ReadHalf = OwnedReadHalf;
pub type WriteHalf = OwnedWriteHalf;

/// True if an end can say that it will write nothing more, and still read.
pub const CLOSES_ONE_DIRECTION: bool = true;

/// The longest path that a Unix socket can have on Linux and macOS, in bytes.
const PATH_BYTES: usize = 103;

/// True if what is listened on is a file, which somebody may remove.
pub const LIES_ON_DISK: bool = true;

pub struct Listener(UnixListener);

impl Listener {
    /// Listens where only this user can connect. The caller must be the elected daemon, so that a
    /// socket which is there belongs to a dead one.
    pub fn open(socket: &Path) -> Result<Listener> {
        match std::fs::remove_file(socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("{}: stale socket", socket.display()));
            }
            _ => {}
        }
        let listener = UnixListener::bind(socket)
            .with_context(|| format!("{}: cannot listen", socket.display()))?;
        std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
        Ok(Listener(listener))
    }

    /// The next connection. The future can be dropped without losing one.
    pub async fn accept(&mut self) -> io::Result<Stream> {
        self.0.accept().await.map(|(stream, _)| stream)
    }
}

pub async fn connect(socket: &Path) -> io::Result<Stream> {
    UnixStream::connect(socket).await
}

/// Returns whether the process at the other end is one of this user.
pub fn is_with_own_user(stream: &Stream) -> io::Result<bool> {
    Ok(stream.peer_cred()?.uid() == user())
}

pub fn split(stream: Stream) -> (ReadHalf, WriteHalf) {
    stream.into_split()
}

/// # Errors
/// The path is too long for a socket. The error says how to fix that.
pub fn check_path(socket: &Path) -> Result<()> {
    ensure!(
        socket.as_os_str().len() <= PATH_BYTES,
        "{}: too long for a socket ({PATH_BYTES} bytes at most); set HONE_HOME to a shorter path",
        socket.display()
    );
    Ok(())
}
