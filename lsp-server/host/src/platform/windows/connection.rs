//! The connection to the daemon: a named pipe that only its user can open.
//!
//! The pipe's name is derived from the folder that the socket would lie in. Where it would lie is a
//! file, which is there exactly while the daemon listens.
#![allow(unsafe_code)]

use super::security::{SecurityDescriptor, own_user, owner_of_handle};
use crate::platform::files;
use anyhow::{Context, Result};
use models::file::sha256_of;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;

/// Either end of a pipe.
pub trait Pipe: AsyncRead + AsyncWrite + AsRawHandle + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + AsRawHandle + Send + Sync + Unpin> Pipe for T {}

pub type Stream = Box<dyn Pipe>;
pub type ReadHalf = tokio::io::ReadHalf<Stream>;
pub type WriteHalf = tokio::io::WriteHalf<Stream>;

/// True if an end can say that it will write nothing more, and still read. A pipe is closed in both
/// directions at once.
pub const CLOSES_ONE_DIRECTION: bool = false;

/// The time for which a connection is tried while the daemon is between two clients.
const BUSY_LIMIT: Duration = Duration::from_secs(5);

const BUSY_POLL: Duration = Duration::from_millis(10);

/// The digits of the folder's hash in a pipe's name.
const HASH_DIGITS: usize = 32;

/// True if what is listened on is a file, which somebody may remove.
pub const LIES_ON_DISK: bool = false;

pub struct Listener {
    name: String,
    access: SecurityDescriptor,
    /// The end that the next client gets.
    next: NamedPipeServer,
}

impl Listener {
    /// Listens where only this user can connect. The caller must be the elected daemon.
    ///
    /// # Errors
    /// Somebody else has a pipe of this name.
    pub fn open(socket: &Path) -> Result<Listener> {
        let cannot = || format!("{}: cannot listen", socket.display());
        let name = name_of(socket).with_context(cannot)?;
        let access = SecurityDescriptor::of_own_user().with_context(cannot)?;
        let next = end(&name, &access, true).with_context(cannot)?;
        let mut file = files::private();
        file.create(true).truncate(true).write(true).open(socket).with_context(cannot)?;
        Ok(Listener { name, access, next })
    }

    /// The next connection. The future can be dropped without losing one.
    pub async fn accept(&mut self) -> io::Result<Stream> {
        self.next.connect().await?;
        let next = end(&self.name, &self.access, false)?;
        Ok(Box::new(std::mem::replace(&mut self.next, next)))
    }
}

/// The daemon's end of a connection to be. The first one is refused if the pipe exists, because
/// then it belongs to somebody else.
fn end(name: &str, access: &SecurityDescriptor, is_first: bool) -> io::Result<NamedPipeServer> {
    let mut attributes = access.attributes();
    let mut options = ServerOptions::new();
    options.first_pipe_instance(is_first);
    // SAFETY: the attributes are whole, and outlive the call with what they point to.
    unsafe { options.create_with_security_attributes_raw(name, (&raw mut attributes).cast()) }
}

pub async fn connect(socket: &Path) -> io::Result<Stream> {
    let name = name_of(socket)?;
    let began = Instant::now();
    loop {
        match ClientOptions::new().open(&name) {
            Ok(client) => return Ok(Box::new(client)),
            Err(error)
                if error.raw_os_error() == Some(ERROR_PIPE_BUSY as i32)
                    && began.elapsed() < BUSY_LIMIT =>
            {
                tokio::time::sleep(BUSY_POLL).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether the pipe belongs to this user. A client thereby knows that no other user
/// listens. The pipe's access list lets no other user connect.
pub fn is_with_own_user(stream: &Stream) -> io::Result<bool> {
    Ok(owner_of_handle(stream.as_raw_handle())? == own_user()?)
}

pub fn split(stream: Stream) -> (ReadHalf, WriteHalf) {
    tokio::io::split(stream)
}

/// Any path will do, because it is hashed.
pub fn check_path(_socket: &Path) -> Result<()> {
    Ok(())
}

/// The pipe's name. Two ways to write one folder give the same name.
fn name_of(socket: &Path) -> io::Result<String> {
    let folder = socket.parent().unwrap_or(Path::new(".")).canonicalize()?;
    let hash = sha256_of(folder.to_string_lossy().to_lowercase().as_bytes());
    Ok(format!(r"\\.\pipe\hone-{}", &hash[..HASH_DIGITS]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn what_is_written_before_an_end_is_closed_arrives() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("hone.sock");
        assert_eq!(connect(&socket).await.err().unwrap().kind(), io::ErrorKind::NotFound);
        let mut listener = Listener::open(&socket).unwrap();
        assert!(Listener::open(&socket).is_err(), "the name is taken");
        for _ in 0..3 {
            let client = tokio::spawn({
                let socket = socket.clone();
                async move {
                    let stream = connect(&socket).await.unwrap();
                    assert!(is_with_own_user(&stream).unwrap());
                    let (mut read, mut write) = split(stream);
                    write.write_all(b"question\n").await.unwrap();
                    let mut answer = String::new();
                    read.read_to_string(&mut answer).await.unwrap();
                    answer
                }
            });
            let stream = listener.accept().await.unwrap();
            let (mut read, mut write) = split(stream);
            let mut question = [0; 9];
            read.read_exact(&mut question).await.unwrap();
            assert_eq!(&question, b"question\n");
            let answer = "x".repeat(100_000);
            write.write_all(answer.as_bytes()).await.unwrap();
            write.shutdown().await.unwrap();
            drop((read, write));
            assert_eq!(client.await.unwrap(), answer);
        }
    }
}
