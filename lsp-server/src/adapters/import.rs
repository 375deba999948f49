//! An adapter that was trained elsewhere, on its way into the registry: its file is
//! written first, under no number, and gets one once the registry is asked.

use crate::adapters::registry::Registry;
use anyhow::{Context, Result};
use feedback::event::AdapterVersion;
use models::adapter::Adapter;
use models::file::publish;
use models::gguf::Gguf;
use models::peft;
use std::path::Path;
use tempfile::TempPath;

/// What PEFT has saved in a folder, or Hone in a GGUF file, for this base.
pub fn read(path: &Path, base: &Path, base_sha256: &str) -> Result<Adapter> {
    let base = Gguf::open(base)?;
    if path.is_dir() {
        return peft::import(path, &base, base_sha256);
    }
    let adapter = Adapter::read(path)?;
    adapter.check_base(&base, base_sha256)?;
    Ok(adapter)
}

pub struct Incoming {
    file: TempPath,
    sha256: String,
}

impl Incoming {
    pub fn write(folder: &Path, adapter: &Adapter) -> Result<Incoming> {
        let file = tempfile::Builder::new().prefix("import-").tempfile_in(folder);
        let file = file.with_context(|| folder.display().to_string())?.into_temp_path();
        let sha256 = adapter.write(&file)?;
        Ok(Incoming { file, sha256 })
    }

    pub fn import(
        self,
        registry: &mut Registry,
        base_sha256: &str,
        now_ms: u64,
    ) -> Result<AdapterVersion> {
        let version = registry.next_version();
        let path = registry.adapter_file(version);
        publish(&self.file, &path).with_context(|| path.display().to_string())?;
        registry.import(self.sha256.clone(), base_sha256, now_ms)?;
        Ok(version)
    }
}
