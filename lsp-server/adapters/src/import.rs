//! Imports an adapter that was trained elsewhere. Its file is written first, under a name without a
//! number. The registry then gives it a number.

use crate::registry::{IMPORT_PREFIX, Origin, Registry};
use anyhow::{Context, Result, bail, ensure};
use feedback::event::AdapterVersion;
use models::adapter::{AdapterError, LoraAdapter};
use models::gguf::{Gguf, GgufError};
use models::peft;
use std::path::Path;
use tempfile::TempPath;

/// What can be imported, for messages.
const ADVICE: &str = "name a folder that PEFT has saved, or a GGUF file that Hone has exported";

/// Reads an adapter for this base: a folder that PEFT has saved, or a GGUF file that Hone has
/// exported.
pub fn read(path: &Path, base: &Path, base_sha256: &str) -> Result<LoraAdapter> {
    ensure!(path.try_exists().unwrap_or(true), "{} is not there; {ADVICE}", path.display());
    let base = Gguf::open(base)?;
    if path.is_dir() {
        return peft::import(path, &base, base_sha256);
    }
    let adapter = match LoraAdapter::read(path) {
        Err(AdapterError::Gguf(GgufError::NotGguf { .. })) => {
            bail!("{} is no adapter; {ADVICE}", path.display())
        }
        adapter => adapter?,
    };
    adapter.check_base(&base, base_sha256)?;
    Ok(adapter)
}

pub struct ImportedFile {
    file: TempPath,
    sha256: String,
}

impl ImportedFile {
    pub fn write(folder: &Path, adapter: &LoraAdapter) -> Result<ImportedFile> {
        let file = tempfile::Builder::new().prefix(IMPORT_PREFIX).tempfile_in(folder);
        let file = file.with_context(|| folder.display().to_string())?.into_temp_path();
        let sha256 = adapter.write(&file)?;
        Ok(ImportedFile { file, sha256 })
    }

    pub fn path(&self) -> &Path {
        &self.file
    }

    /// Registers the adapter and makes it serve (see [`Registry::adopt`]).
    pub fn adopt(
        self,
        registry: &mut Registry,
        base_sha256: &str,
        origin: Option<Origin>,
        now_ms: u64,
    ) -> Result<AdapterVersion> {
        registry.adopt(&self.file, self.sha256, base_sha256, origin, now_ms)
    }

    /// Registers the adapter. The registry gives it a number, and the file gets the name of that
    /// number.
    pub fn import(
        self,
        registry: &mut Registry,
        base_sha256: &str,
        origin: Option<Origin>,
        now_ms: u64,
    ) -> Result<AdapterVersion> {
        registry.import(&self.file, self.sha256, base_sha256, origin, now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::adapter;

    /// Contents of registry files that cannot be read.
    const UNREADABLE: [&str; 3] = ["", "{\"format\": 3, \"active\":", "{\"format\": 99}"];

    fn names(folder: &Path) -> Vec<String> {
        let files = std::fs::read_dir(folder).unwrap();
        let name = |file: std::io::Result<std::fs::DirEntry>| file.unwrap().file_name();
        let mut names: Vec<_> =
            files.map(|file| name(file).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A registry that cannot be read looks empty, so the next number seemed to be 1. The
    /// import renamed its file to `v0001.gguf` before the registry was asked and refused:
    /// the adapter that was there was lost.
    #[test]
    fn an_import_that_the_registry_refuses_replaces_no_adapter() {
        for text in UNREADABLE {
            let folder = tempfile::tempdir().unwrap();
            let (first, registry) =
                (folder.path().join("v0001.gguf"), folder.path().join("registry.json"));
            std::fs::write(&first, "the first adapter").unwrap();
            std::fs::write(&registry, text).unwrap();
            let (mut opened, _) = Registry::open(folder.path(), "base");
            let file = ImportedFile::write(folder.path(), &adapter("base")).unwrap();
            let refused = file.import(&mut opened, "base", None, 0).unwrap_err().to_string();
            assert!(refused.contains("registry.json"), "{refused}");
            assert_eq!(std::fs::read(&first).unwrap(), b"the first adapter", "{text}");
            assert_eq!(std::fs::read_to_string(&registry).unwrap(), text);
            assert_eq!(names(folder.path()), ["registry.json", "v0001.gguf"], "{text}");
        }
    }

    /// A registry that was lost, or a copy of it that is a little older, does not name every
    /// adapter in the folder. An import gave its file the number of one of them, and that
    /// one was lost.
    #[test]
    fn an_import_takes_no_number_that_a_file_has_already() {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join("v0001.gguf");
        std::fs::write(&first, "the first adapter").unwrap();
        std::fs::write(folder.path().join("v0002.optimizer"), "another's state").unwrap();
        let (mut registry, _) = Registry::open(folder.path(), "base");
        let file = ImportedFile::write(folder.path(), &adapter("base")).unwrap();
        assert_eq!(file.import(&mut registry, "base", None, 0).unwrap(), 3);
        assert_eq!(std::fs::read(&first).unwrap(), b"the first adapter");
        assert!(registry.check(3, "base").is_ok());
    }
}
