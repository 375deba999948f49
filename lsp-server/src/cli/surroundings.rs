//! The user's folders and the program search path, as the environment names them.

use host::platform::files::is_executable;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Tests make their own.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The user's home folder.
    pub home: PathBuf,
    /// This program, with links followed.
    pub program: PathBuf,
    /// The variable PATH.
    pub search_path: OsString,
    /// Where programs keep their settings (`~/.config`).
    pub config: PathBuf,
    /// Where programs keep their data (`~/.local/share`).
    pub data: PathBuf,
    /// Where Electron's programs, such as VS Code, keep their settings.
    pub electron: PathBuf,
    /// The name of Neovim's folders.
    pub nvim: String,
}

impl Surroundings {
    pub fn of_process() -> Surroundings {
        let home = std::env::home_dir().unwrap_or_default();
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = |name: &str, usual: &str| {
            variable(name).map_or_else(|| home.join(usual), PathBuf::from)
        };
        let config = folder("XDG_CONFIG_HOME", ".config");
        let electron = match std::env::consts::OS {
            "macos" => home.join("Library/Application Support"),
            "windows" => folder("APPDATA", "AppData/Roaming"),
            _ => config.clone(),
        };
        let program = std::env::current_exe().unwrap_or_default();
        Surroundings {
            program: program.canonicalize().unwrap_or(program),
            search_path: variable("PATH").unwrap_or_default(),
            data: folder("XDG_DATA_HOME", ".local/share"),
            nvim: std::env::var("NVIM_APPNAME").unwrap_or_else(|_| "nvim".into()),
            config,
            electron,
            home,
        }
    }

    /// The program of a name that is found first in PATH.
    pub fn on_path(&self, name: &str) -> Option<PathBuf> {
        let folders =
            std::env::split_paths(&self.search_path).filter(|folder| folder.is_absolute());
        let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        folders.map(|folder| folder.join(&file)).find(|path| is_executable(path))
    }

    /// Returns whether a path leads to this program.
    pub fn is_this(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|path| path == self.program)
    }

    /// A path as a user writes it, with `~` for the home folder.
    pub fn expand(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => PathBuf::from(path),
        }
    }
}
