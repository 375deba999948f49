//! What an interrupted `hone learn --history` has learned so far. It continues from there.

use crate::team::TeamFiles;
use anyhow::{Context, Result, bail};
use models::file::{remove_folder, write_atomic};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of `begun.json`. An interrupted run of another version starts anew.
const FORMAT: u32 = 1;

/// What is learned from. A run that is asked for anything else starts anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistorySource {
    /// The folder that was named.
    pub folder: PathBuf,
    pub author: Option<String>,
    pub model_sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begun {
    format: u32,
    source: HistorySource,
    /// The commit that was the newest when it began, in hex. A later run draws the same texts.
    head: String,
}

/// The folder of the files. A version of the part that is learned, which has the form of a team's
/// shared part, is in it, and its number is that of the rounds that are done.
#[derive(Debug, Clone)]
pub struct HistoryFiles {
    folder: PathBuf,
}

impl HistoryFiles {
    /// The files of the home whose adapters lie in this folder.
    pub fn next_to(adapters: &Path) -> HistoryFiles {
        HistoryFiles { folder: adapters.with_file_name("history") }
    }

    fn begun_file(&self) -> PathBuf {
        self.folder.join("begun.json")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The part that is learned, and what rounding left out of it.
    pub fn learned(&self) -> TeamFiles {
        TeamFiles::at(self.folder.clone())
    }

    /// The commit at which an interrupted run with this source began. A file that cannot be read
    /// counts as none.
    pub fn head(&self, source: &HistorySource) -> Option<String> {
        let text = std::fs::read(self.begun_file()).ok()?;
        let begun: Begun = serde_json::from_slice(&text).ok()?;
        (begun.format == FORMAT && begun.source == *source).then_some(begun.head)
    }

    /// Notes that a run begins. What another one has left goes.
    pub fn begin(&self, source: &HistorySource, head: &str) -> Result<()> {
        self.remove()?;
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("{}: cannot be made", self.folder.display()))?;
        let begun = Begun { format: FORMAT, source: source.clone(), head: head.to_owned() };
        let file = self.begun_file();
        write_atomic(&file, &serde_json::to_vec(&begun)?)
            .with_context(|| format!("{}: cannot be written", file.display()))
    }

    /// # Errors
    /// The run that began is not wanted any more, because something was forgotten since. What it
    /// has written in the meantime is removed.
    pub fn check_wanted(&self) -> Result<()> {
        if self.begun_file().exists() {
            return Ok(());
        }
        self.remove()?;
        bail!(
            "something was forgotten in the meantime, so nothing is adopted; the same command \
             begins anew"
        )
    }

    /// Removes everything. A run that continues finds that out before its next round, and adopts
    /// nothing.
    pub fn remove(&self) -> Result<()> {
        remove_folder(&self.folder)
            .with_context(|| format!("{}: cannot be removed", self.folder.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_continues_only_from_one_that_learned_from_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let files = HistoryFiles::next_to(&folder.path().join("adapters"));
        let source = |author: Option<&str>| HistorySource {
            folder: "/p".into(),
            author: author.map(str::to_owned),
            model_sha256: "base".into(),
        };
        assert_eq!(files.head(&source(None)), None);
        files.begin(&source(None), "c0ffee").unwrap();
        std::fs::write(files.path("shared.core"), "what it learned").unwrap();
        assert_eq!(files.head(&source(None)).as_deref(), Some("c0ffee"));
        assert_eq!(files.head(&source(Some("ada"))), None);
        files.begin(&source(Some("ada")), "facade").unwrap();
        assert!(!files.path("shared.core").exists(), "it learned from other commits");
        std::fs::write(files.begun_file(), "{\"format\": 99}").unwrap();
        assert_eq!(files.head(&source(Some("ada"))), None);
        files.check_wanted().unwrap();
        files.remove().unwrap();
        files.remove().unwrap();
        // A run that continues writes into the folder again.
        std::fs::create_dir(files.path("")).unwrap();
        std::fs::write(files.path("shared.core"), "what it learned").unwrap();
        assert!(files.check_wanted().unwrap_err().to_string().contains("forgotten"));
        assert!(!folder.path().join("history").exists());
    }
}
