//! A file of the user's that is changed: never through a link, never one that has changed
//! meanwhile, and a copy of what was there stays.

use anyhow::{Context, Result, bail, ensure};
use host::platform::files;
use models::file::{read_plain, write_atomic};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The most bytes of an editor's file that is read.
pub const FILE_BYTES: u64 = 1 << 20;

/// The most copies of one file.
const COPIES_MAX: usize = 99;

pub struct SettingsFile<'p> {
    path: &'p Path,
    /// `None` if there is no file yet.
    text: Option<String>,
}

impl SettingsFile<'_> {
    /// # Errors
    /// There is something else than a plain file of text.
    pub fn read(path: &Path) -> Result<SettingsFile<'_>> {
        let at = || path.display().to_string();
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(SettingsFile { path, text: None });
            }
            Ok(found) if found.is_symlink() => {
                let to = path.canonicalize().unwrap_or_else(|_| PathBuf::from("nowhere"));
                bail!("{}: it is a link to {}; name that file with --write", at(), to.display());
            }
            Err(error) => return Err(error).with_context(at),
            Ok(_) => {}
        }
        let bytes = read_plain(path, FILE_BYTES).with_context(at)?;
        let text = String::from_utf8(bytes).ok();
        let text = text.with_context(|| format!("{}: it is no text in UTF-8", at()))?;
        Ok(SettingsFile { path, text: Some(text) })
    }

    /// Returns what is there, or nothing.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Puts another text into the file. Returns the copy of what was there.
    pub fn replace(&self, text: &str) -> Result<Option<PathBuf>> {
        let at = || format!("{}: cannot be written", self.path.display());
        ensure!(
            SettingsFile::read(self.path)?.text == self.text,
            "{}: it has changed meanwhile; run the command again",
            self.path.display()
        );
        let Some(before) = &self.text else {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder).with_context(at)?;
            }
            // It may have a token.
            let mut file =
                files::private().write(true).create_new(true).open(self.path).with_context(at)?;
            file.write_all(text.as_bytes()).with_context(at)?;
            return Ok(None);
        };
        let copy = self.copy(before)?;
        write_atomic(self.path, text.as_bytes()).with_context(at)?;
        Ok(Some(copy))
    }

    fn copy(&self, text: &str) -> Result<PathBuf> {
        let name = self.path.file_name().context("the file has no name")?.to_string_lossy();
        for number in 1..=COPIES_MAX {
            let end = if number == 1 { String::new() } else { format!("-{number}") };
            let copy = self.path.with_file_name(format!("{name}.before-hone{end}"));
            let made = files::private().write(true).create_new(true).open(&copy);
            let written = made.and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            });
            match written {
                Ok(()) => return Ok(copy),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                failed => {
                    failed.with_context(|| format!("{}: cannot be written", copy.display()))?
                }
            }
        }
        bail!("{}: it has {COPIES_MAX} copies; remove some", self.path.display())
    }
}
