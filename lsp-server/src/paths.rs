//! The paths of Hone's files. All of them lie in one folder, which `HONE_HOME` can move.

use anyhow::{Context, Result};
use directories::ProjectDirs;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The longest path that a Unix socket can have on Linux and macOS, in bytes.
const SOCKET_PATH_BYTES: usize = 103;

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
            Some(root) => std::path::absolute(root).context("HONE_HOME is not a usable path")?,
            None => ProjectDirs::from("dev", "hone", "hone")
                .context("no home folder found; set HONE_HOME to a folder for Hone's files")?
                .data_dir()
                .to_owned(),
        };
        Ok(Paths::at(root))
    }

    pub fn at(root: PathBuf) -> Paths {
        Paths { root }
    }

    pub fn config_file(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    pub fn adapters(&self) -> PathBuf {
        self.root.join("adapters")
    }

    pub fn event_log(&self) -> PathBuf {
        self.root.join("data").join("events.sled")
    }

    /// The times that the clock has shown. Retention needs them to notice a wrong clock.
    pub fn clock_history(&self) -> PathBuf {
        self.root.join("data").join("clock.json")
    }

    /// The files and folders that the user has forgotten, by their hashes.
    pub fn forgotten(&self) -> PathBuf {
        self.root.join("data").join("forgotten")
    }

    pub fn daemon_lock(&self) -> PathBuf {
        self.run().join("daemon.lock")
    }

    pub fn daemon_log(&self) -> PathBuf {
        self.root.join("logs").join("daemon.log")
    }

    /// # Errors
    /// The path is too long for a socket. The error says how to fix that.
    pub fn socket(&self) -> Result<PathBuf> {
        let path = self.socket_path();
        anyhow::ensure!(
            path.as_os_str().len() <= SOCKET_PATH_BYTES,
            "{}: too long for a socket ({SOCKET_PATH_BYTES} bytes at most); set HONE_HOME to a \
             shorter path",
            path.display()
        );
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

    /// Makes every folder, and lets only its owner read it.
    pub fn create(&self) -> Result<()> {
        for folder in ["", "data", "adapters", "models", "run", "logs"] {
            private_folder(&self.root.join(folder))?;
        }
        Ok(())
    }
}

/// The user that this process runs as.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes a folder that only this user can read. It refuses a folder, or a link to a folder, that
/// belongs to another user, because the owner of a folder decides what lies in it.
fn private_folder(path: &Path) -> Result<()> {
    let cannot = || format!("{}: cannot make this folder private to you", path.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(cannot)?;
    for metadata in [std::fs::symlink_metadata(path), std::fs::metadata(path)] {
        anyhow::ensure!(
            metadata.with_context(cannot)?.uid() == user(),
            "{}: belongs to another user; set HONE_HOME to a folder of your own",
            path.display()
        );
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).with_context(cannot)
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
