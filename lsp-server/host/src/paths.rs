//! The paths of Hone's files. All of them lie in one folder, which `HONE_HOME` can move.

use crate::platform::connection;
use anyhow::{Context, Result, anyhow, ensure};
use directories::ProjectDirs;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

mod home_folder;
pub mod lock;

#[derive(Debug, Clone)]
pub struct Paths {
    root: PathBuf,
}

/// The paths that `hone status` shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathsView {
    pub home: PathBuf,
    pub config: PathBuf,
    pub socket: PathBuf,
    pub log: PathBuf,
}

impl Paths {
    /// `HONE_HOME`, or the platform's data folder.
    pub fn from_env() -> Result<Paths> {
        let root = match std::env::var_os("HONE_HOME").filter(|value| !value.is_empty()) {
            Some(root) => checked(root.as_ref())?,
            None => ProjectDirs::from("dev", "hone", "hone")
                .context("no home folder found; set HONE_HOME to a folder for Hone's files")?
                .data_local_dir()
                .to_owned(),
        };
        Ok(Paths::at(root))
    }

    pub fn at(root: PathBuf) -> Paths {
        Paths { root }
    }

    /// The folder that all of them lie in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn config_file(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// The token of the HTTP API.
    pub fn api_token(&self) -> PathBuf {
        self.root.join("api-token")
    }

    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    pub fn adapters(&self) -> PathBuf {
        self.root.join("adapters")
    }

    /// Returns what is recorded. Only the process that holds [`Self::daemon_lock`] writes there.
    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    pub fn event_log(&self) -> PathBuf {
        self.data().join("events.sled")
    }

    /// The times that the clock has shown. Retention needs them to notice a wrong clock.
    pub fn clock_history(&self) -> PathBuf {
        self.data().join("clock.json")
    }

    /// The files and folders that the user has forgotten, by their hashes.
    pub fn forgotten(&self) -> PathBuf {
        self.data().join("forgotten")
    }

    /// Returns what the engine has computed of prompts, for the learner.
    pub fn prompts(&self) -> PathBuf {
        self.root.join("prompts")
    }

    /// Recorded sessions of the user.
    pub fn recordings(&self) -> PathBuf {
        self.root.join("recordings")
    }

    pub fn daemon_lock(&self) -> PathBuf {
        self.run().join("daemon.lock")
    }

    /// Returns what a daemon notes while it starts, in case that it is killed.
    pub fn loading_note(&self) -> PathBuf {
        self.run().join("loading.json")
    }

    /// The lock of `hone learn --history`.
    pub fn history_lock(&self) -> PathBuf {
        self.run().join("history.lock")
    }

    pub fn daemon_log(&self) -> PathBuf {
        self.root.join("logs").join("daemon.log")
    }

    /// # Errors
    /// The path is too long for a socket. The error says how to fix that.
    pub fn socket(&self) -> Result<PathBuf> {
        let path = self.socket_path();
        connection::check_path(&path)?;
        Ok(path)
    }

    pub fn paths(&self) -> PathsView {
        PathsView {
            home: self.root.clone(),
            config: self.config_file(),
            socket: self.socket_path(),
            log: self.daemon_log(),
        }
    }

    fn socket_path(&self) -> PathBuf {
        self.run().join("hone.sock")
    }

    fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// Makes every folder that is missing, so that only its owner can read it.
    ///
    /// # Errors
    /// A folder cannot be made or used, or others can read it. The error says what to do.
    pub fn create(&self) -> Result<()> {
        home_folder::create(&self.root)
    }
}

/// The folder that `HONE_HOME` names.
fn checked(root: &Path) -> Result<PathBuf> {
    let name = root.display();
    // It would be another folder wherever one stands, and a shell leaves a quoted `~` as it is.
    ensure!(
        root.is_absolute(),
        "HONE_HOME is {name}, which is no absolute path; set it to one, such as \
         HONE_HOME=\"$HOME/hone\""
    );
    ensure!(
        !root.exists() || root.is_dir(),
        "{name}: HONE_HOME is a file and no folder; set it to a folder, or move the file elsewhere"
    );
    std::path::absolute(root).context("HONE_HOME is not a usable path")
}

/// What to do about a folder that cannot be written.
pub const MAKE_WRITABLE: &str = "make the folder writable for yourself, or set HONE_HOME to \
                                 another folder";

/// Returns why a file of Hone's own cannot be opened, and what to do about it.
pub fn cannot_open(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let fix = match error.kind() {
        ErrorKind::PermissionDenied => {
            "it may belong to another user, such as root after `sudo hone`; give it back to \
             yourself, or set HONE_HOME to another folder"
        }
        ErrorKind::ReadOnlyFilesystem => MAKE_WRITABLE,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some room for it",
        _ => "move it elsewhere, and Hone makes it anew",
    };
    anyhow!("{}: cannot be opened: {error}; {fix}", path.display())
}

/// The path without its root, and without its drive or server where there are such.
pub fn below_root(path: &Path) -> &Path {
    let mut parts = path.components();
    while let Some(Component::Prefix(_) | Component::RootDir) = parts.clone().next() {
        parts.next();
    }
    parts.as_path()
}

/// Returns where a path leads behind all links. What is not there is named in the nearest folder
/// above it that is. This reads the disk.
pub fn without_links(path: &Path) -> Option<PathBuf> {
    let (there, real) =
        path.ancestors().find_map(|there| Some((there, there.canonicalize().ok()?)))?;
    let rest = path.strip_prefix(there).ok()?;
    // With nothing to add, a slash would be added.
    Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
}

/// The path without `.` and `..`, which an editor's URI may contain.
pub fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_an_absolute_path_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for there in [folder.path().to_owned(), folder.path().join("to/be/made")] {
            assert_eq!(checked(&there).unwrap(), there);
        }
        for relative in ["~/hone", "hone", "./hone", "../hone"] {
            let error = checked(Path::new(relative)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("HONE_HOME is {relative}, ")), "{error}");
        }
        let error = checked(&file).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: HONE_HOME is a file", file.display())), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_told_with_what_helps() {
        for (kind, fix) in [
            (ErrorKind::PermissionDenied, "`sudo hone`"),
            (ErrorKind::ReadOnlyFilesystem, MAKE_WRITABLE),
            (ErrorKind::StorageFull, "free some room"),
            (ErrorKind::IsADirectory, "move it elsewhere"),
        ] {
            let error = cannot_open(Path::new("/h/run/daemon.lock"), &kind.into()).to_string();
            assert!(error.starts_with("/h/run/daemon.lock: cannot be opened: "), "{error}");
            assert!(error.contains(fix), "{error}");
        }
    }
}
