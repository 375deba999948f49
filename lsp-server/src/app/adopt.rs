//! Takes adapters that were trained outside of the daemon.

use crate::app::App;
use adapters::import::{self, ImportedFile};
use adapters::registry::adoption::{Basis, Outdated};
use adapters::registry::{Origin, Registry};
use anyhow::{Result, ensure};
use feedback::event::AdapterVersion;
use std::path::PathBuf;

impl App {
    /// Registers an adapter that was trained elsewhere and returns its version. It does not serve
    /// until the user chooses it.
    pub async fn import_adapter(&self, path: PathBuf) -> Result<AdapterVersion> {
        let file = self.imported(path).await?;
        let (base_sha256, now_ms) = self.base_and_date();
        let change = self.services.adapters.change().await;
        let (_, version) = change
            .commit(move |registry| file.import(registry, &base_sha256, None, now_ms))
            .await?;
        Ok(version)
    }

    /// Registers an adapter and makes it serve, unless what it stands on has changed.
    pub async fn adopt(
        &self,
        path: PathBuf,
        origin: Option<Origin>,
        basis: Basis,
    ) -> Result<Result<AdapterVersion, Outdated>> {
        let file = self.imported(path).await?;
        self.adopt_file(file, origin, basis).await
    }

    pub(super) async fn adopt_file(
        &self,
        file: ImportedFile,
        origin: Option<Origin>,
        basis: Basis,
    ) -> Result<Result<AdapterVersion, Outdated>> {
        let (base_sha256, now_ms) = self.base_and_date();
        // Nothing is forgotten, and nothing else begins to serve, while this change lives.
        let change = self.services.adapters.change().await;
        if let Err(outdated) = change.registry().check_basis(basis) {
            return Ok(Err(outdated));
        }
        let (version, path) = (change.registry().next_version(), file.path().to_owned());
        let register = move |registry: &mut Registry| {
            let adopted = file.adopt(registry, &base_sha256, origin, now_ms)?;
            ensure!(adopted == version, "v{version} was given to another adapter");
            Ok(())
        };
        change.swap(version, path, register).await?;
        tracing::info!("adapter v{version} serves, as adopted");
        Ok(Ok(version))
    }

    /// Reads an adapter and writes it to a file without a number.
    async fn imported(&self, path: PathBuf) -> Result<ImportedFile> {
        let (model, folder) = (self.services.adapters.model().clone(), self.paths.adapters());
        self.services.adapters.serving().check_writable()?;
        // Reading and writing tens of megabytes must not block the async runtime.
        let file = host::tasks::blocking(move || {
            let adapter = import::read(&path, &model.path, &model.sha256)?;
            ImportedFile::write(&folder, &adapter)
        });
        file.await?
    }

    fn base_and_date(&self) -> (String, u64) {
        (self.services.adapters.model().sha256.clone(), self.services.clock.unix_ms())
    }
}
