//! What is kept of a place: the text around it, what was written there, and the candidates.

use super::typing::Kind;
use anyhow::{Context, Result};
use feedback::event::StopReason;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// A line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// What it is recognised by.
    pub key: String,
    pub repository: String,
    pub author: String,
    pub commit: String,
    pub path: String,
    pub language: String,
    pub kind: Kind,
    /// The document before the cursor, as far as it is kept.
    pub before: String,
    /// The rest of the cursor's line: the marks that the editor has closed.
    pub closers: String,
    /// The lines below, as far as they are kept.
    pub after: String,
    /// What the author wrote: the rest of the line.
    pub rest: String,
    /// What the author has typed before in this commit, as far as it is kept.
    pub typed: String,
    pub prompt_tokens: usize,
    pub evaluated_tokens: u32,
    pub seconds: f64,
    /// The first answer, and its alternatives.
    pub candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Candidate {
    /// What is shown of it.
    pub shown: String,
    /// The text that was generated, of which the first `healing` bytes were typed already.
    pub text: String,
    pub healing: usize,
    pub stop: StopReason,
    /// The tokens, with the byte of `text` at which each ends, its log-prob, and its log-prob as
    /// the user sees it. The one that ends the line is among them.
    pub tokens: Vec<(usize, f32, f32)>,
    /// Tokens at the start that only reproduce what was typed.
    pub healed: usize,
    /// The names in what is shown.
    pub names: Vec<SeenName>,
}

/// A name, and who knows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SeenName {
    pub name: String,
    pub is_member: bool,
    pub is_declared: bool,
    pub is_builtin: bool,
    pub in_document: bool,
    /// In another open document, or a file that one imports.
    pub in_others: bool,
    /// In a file of the repository as the commit found it.
    pub in_tree: bool,
}

impl Record {
    /// The line of the cursor before it.
    pub fn line_before(&self) -> &str {
        self.before.rsplit('\n').next().unwrap_or_default()
    }

    /// The lines above the cursor's, and the lines with text below it.
    pub fn above(&self) -> &str {
        self.before.rsplit('\n').nth(1).unwrap_or_default()
    }

    pub fn below(&self) -> &str {
        self.after.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
    }
}

/// The file, to which places are appended.
pub struct Places {
    file: File,
    known: HashSet<String>,
}

impl Places {
    /// Opens a file. A last line that was cut is written again.
    pub fn open(path: &Path) -> Result<Places> {
        let named = || format!("cannot keep places in {}", path.display());
        let known = if path.exists() { read(path)? } else { vec![] };
        let whole: String = known
            .iter()
            .map(|record| Ok(format!("{}\n", serde_json::to_string(record)?)))
            .collect::<Result<_>>()?;
        std::fs::write(path, whole).with_context(named)?;
        let file = OpenOptions::new().append(true).open(path).with_context(named)?;
        Ok(Places { file, known: known.into_iter().map(|record| record.key).collect() })
    }

    pub fn has(&self, key: &str) -> bool {
        self.known.contains(key)
    }

    pub fn of_repository(&self, repository: &str) -> usize {
        self.known.iter().filter(|key| key.split('@').next() == Some(repository)).count()
    }

    pub fn add(&mut self, record: &Record) -> Result<()> {
        writeln!(self.file, "{}", serde_json::to_string(record)?)?;
        self.known.insert(record.key.clone());
        Ok(())
    }
}

/// Reads the places of a file. Lines that cannot be read are left out.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
