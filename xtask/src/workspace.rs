//! The places of the repository and of the built programs.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Workspace {
    /// The repository.
    pub root: PathBuf,
    /// Cargo's target folder, which the user may have moved.
    pub target: PathBuf,
}

impl Workspace {
    pub fn find() -> Result<Workspace> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().context("xtask lies in no workspace")?.to_owned();
        ensure!(
            root.join("Cargo.toml").is_file(),
            "{} has moved since xtask was built: run `cargo clean -p xtask` and try again",
            root.display()
        );
        // This program is <target>/<profile>/xtask.
        let own = std::env::current_exe().context("cannot find this program's own path")?;
        let target = own.ancestors().nth(2).context("xtask was not started by cargo")?.to_owned();
        Ok(Workspace { root, target })
    }

    /// A program this workspace builds.
    pub fn binary(&self, name: &str) -> PathBuf {
        self.target.join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// Cargo, in this workspace and for the same target folder.
    pub fn cargo(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// Returns what cargo knows of the packages of this workspace and of all that they depend on.
    pub fn metadata(&self, options: &[&str]) -> Result<Value> {
        let mut cargo = self.cargo();
        cargo.args(["metadata", "--format-version", "1"]).args(options);
        let output = cargo.output().context("cannot start cargo")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cargo metadata failed: {errors}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Builds every package except xtask, which is running.
    pub fn cargo_build(&self) -> Command {
        let mut command = self.cargo();
        command.args(["build", "--release", "--workspace", "--exclude", "xtask"]);
        command
    }
}
