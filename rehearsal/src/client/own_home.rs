//! A home for a measurement, whose daemon ends with it.

use super::Client;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub struct OwnHome {
    folder: TempDir,
    program: PathBuf,
}

impl OwnHome {
    /// Makes a home for this `hone` with the models of a folder and this `config.toml`.
    pub fn new(program: &Path, models: &Path, settings: &str) -> Result<OwnHome> {
        let folder = tempfile::tempdir()?;
        let own = folder.path().join("models");
        fs::create_dir(&own)?;
        for model in fs::read_dir(models)? {
            let model = model?;
            let (from, to) = (model.path(), own.join(model.file_name()));
            // On another disk it has to be copied.
            fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop))?;
        }
        let home = OwnHome { folder, program: program.to_owned() };
        home.configure(settings)?;
        Ok(home)
    }

    /// Writes this `config.toml`.
    pub fn configure(&self, settings: &str) -> Result<()> {
        let path = self.folder.path().join("config.toml");
        fs::write(&path, settings).with_context(|| path.display().to_string())
    }

    /// Returns a command of `hone` in this home.
    pub fn hone(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env("HONE_HOME", self.folder.path()).args(arguments);
        command
    }

    /// Starts an editor, which starts the daemon.
    pub fn editor(&self) -> Result<Client> {
        let client = Client::spawn(self.hone(&["lsp"]).stderr(Stdio::inherit()))?;
        client.initialize(&[])?;
        Ok(client)
    }

    /// Runs `hone pause learning` or `hone resume learning`.
    pub fn learning(&self, verb: &str) -> Result<()> {
        let status = self.hone(&[verb, "learning"]).stdout(Stdio::null()).status();
        let status = status.context("cannot run hone")?;
        ensure!(status.success(), "`hone {verb} learning` failed");
        Ok(())
    }
}

impl Drop for OwnHome {
    fn drop(&mut self) {
        let _ = self.hone(&["stop"]).stdout(Stdio::null()).status();
    }
}
