//! The handshake: the first line in each direction on the daemon's socket. It says who is there,
//! which version, and which command. After `Welcome`, the command decides what follows.

use adapters::registry::Origin;
use adapters::registry::adoption::Basis;
use feedback::event::AdapterVersion;
use privacy::forget_scope::Scope;
use serde::{Deserialize, Serialize};
use services::snooze::Snooze;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The version of the protocol. It is raised when forwarders and daemons of different builds cannot
/// talk to each other.
pub const PROTOCOL: u32 = 2;

/// The longest first line, in bytes. It has room for a few names of a file, of 4096 bytes each.
const LINE_LIMIT: u64 = 32 * 1024;

/// The time in which the first line must arrive.
pub const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub version: String,
    #[serde(flatten)]
    pub command: Command,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "purpose", rename_all = "snake_case")]
pub enum Command {
    /// LSP follows.
    Lsp,
    /// One line of status JSON follows, and then the stream ends.
    Status,
    /// One line of JSON with the latest requests follows, and why each ended as it did.
    Why,
    /// Snoozes completions; a [`Reply`] follows.
    Snooze { snooze: Snooze },
    /// All events follow, each in one line of JSON.
    Events,
    /// The events from this number on follow, and then each as it is recorded.
    Follow { from: u64 },
    /// Moves a clock that can be moved; a [`Reply`] follows.
    AdvanceClock { ms: u64 },
    /// Ends the daemon. An [`Ending`] follows, if the model is loaded, and the stream ends when the
    /// daemon has ended.
    Stop,
    /// The same so that another takes its place, which the open editors start.
    Restart,
    /// Starts an update from the labels that wait.
    Learn,
    /// Makes another registered adapter serve; a [`Reply`] follows.
    UseAdapter { adapter: AdapterVersion },
    /// Registers the adapter in this PEFT folder or GGUF file; one line of `Result<AdapterVersion,
    /// String>` follows.
    ImportAdapter { path: PathBuf },
    /// Registers the adapter in this GGUF file and makes it serve, unless what it stands on has
    /// changed. One line of `Result<Result<AdapterVersion, Outdated>, String>` follows.
    Adopt { file: PathBuf, origin: Option<Origin>, basis: Basis },
    /// Reads `config.toml` again; a [`Reply`] follows.
    Configure,
    /// What the HTTP API does; one line of `HttpState` follows.
    Http,
    /// Forgets what is recorded within a scope. With `plan` it only answers what that would be. One
    /// line of `Result<Forgotten, String>` follows.
    Forget { scope: Scope, plan: bool },
    /// Learns for the team, for a round with this many members; ε in thousandths. One line of
    /// `Result<ContributionMessage, String>` follows.
    Contribute { members: usize, epsilon_parts: Option<u64> },
    /// How many labels wait that no contribution has learned from; one line of `Result<usize,
    /// String>` follows.
    LabelsForTeam,
    /// Takes a version of the team's adapter from this file; one line of `Result<Received,
    /// String>` follows.
    Receive { message: PathBuf },
    /// A command of a later version.
    #[serde(other)]
    Unknown,
}

impl Command {
    /// Returns true if it ends the daemon, which needs no model for that.
    pub fn ends_daemon(&self) -> bool {
        matches!(self, Command::Stop | Command::Restart)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    pub ok: bool,
    pub protocol: u32,
    pub version: String,
    pub pid: u32,
    /// The daemon loads its model. Another `Welcome` follows when that is done, or has failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loading: bool,
    /// The reason of a refusal, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The reply to a command that changes the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The reason of a refusal, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a daemon leaves behind when it ends.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ending {
    /// The open connections of editors, which start another.
    pub editors: usize,
}

impl From<anyhow::Result<()>> for Reply {
    fn from(result: anyhow::Result<()>) -> Reply {
        Reply { error: result.err().map(|error| format!("{error:#}")) }
    }
}

impl Hello {
    pub fn new(command: Command) -> Hello {
        let version = env!("CARGO_PKG_VERSION").into();
        Hello { protocol: PROTOCOL, version, command }
    }
}

impl Welcome {
    pub fn yes() -> Welcome {
        Welcome {
            ok: true,
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            loading: false,
            error: None,
        }
    }

    pub fn loading() -> Welcome {
        Welcome { loading: true, ..Welcome::yes() }
    }

    pub fn no(error: String) -> Welcome {
        Welcome { ok: false, error: Some(error), ..Welcome::yes() }
    }
}

pub async fn read_line<T: for<'a> Deserialize<'a>>(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> std::io::Result<T> {
    tokio::time::timeout(HANDSHAKE_LIMIT, read_late_line(reader)).await?
}

/// Does the same for a line that may come at any time.
pub async fn read_late_line<T: for<'a> Deserialize<'a>>(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> std::io::Result<T> {
    let mut line = String::new();
    let mut bounded = reader.take(LINE_LIMIT);
    if bounded.read_line(&mut line).await? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_str(&line).map_err(std::io::Error::other)
}

pub async fn write_line(
    writer: &mut (impl AsyncWrite + Unpin),
    value: &impl Serialize,
) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    writer.write_all(&line).await?;
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_a_later_version_can_be_read() {
        let later = r#"{"protocol":9,"version":"9.0.0","purpose":"teleport","speed":3}"#;
        let hello: Hello = serde_json::from_str(later).unwrap();
        assert_eq!((hello.protocol, hello.command), (9, Command::Unknown));
    }

    /// The fields of a command lie next to those of `Hello` in JSON, so a name that both have would
    /// be lost.
    #[test]
    fn every_command_is_read_as_it_was_written() {
        for command in [
            Command::Lsp,
            Command::Configure,
            Command::Http,
            Command::Follow { from: 7 },
            Command::AdvanceClock { ms: 7 },
            Command::UseAdapter { adapter: 3 },
            Command::Adopt {
                file: "/a.gguf".into(),
                origin: None,
                basis: Basis { compared_with: 2, generation: 5 },
            },
            Command::Forget { scope: Scope::File { names: vec!["/a".into()] }, plan: true },
            Command::Forget { scope: Scope::Since { at_ms: 7 }, plan: false },
            Command::Forget { scope: Scope::All, plan: true },
            Command::Contribute { members: 3, epsilon_parts: Some(1_500) },
            Command::LabelsForTeam,
            Command::Receive { message: "/m".into() },
        ] {
            let hello = Hello::new(command);
            let line = serde_json::to_string(&hello).unwrap();
            assert_eq!(serde_json::from_str::<Hello>(&line).unwrap(), hello, "{line}");
        }
    }

    #[tokio::test]
    async fn an_endless_first_line_is_cut_off() {
        let endless = vec![b'x'; 3 * LINE_LIMIT as usize];
        assert!(read_line::<Hello>(&mut endless.as_slice()).await.is_err());
    }
}
