//! What is kept of a place: what was written there, and the answers.

use super::typing::Kind;
use anyhow::{Context, Result};
use rehearsal::developer::is_right;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// A line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// The repository, the commit, the path, the line, and the byte of the line.
    pub key: String,
    pub repository: String,
    pub commit: String,
    pub language: String,
    pub kind: Kind,
    /// The cursor's line before it.
    pub line_before: String,
    /// The marks behind the cursor that the editor has closed.
    pub closers: String,
    /// What the author wrote: the rest of the line.
    pub rest: String,
    pub prompt_tokens: usize,
    pub seconds: f64,
    /// The line that would be shown of each answer, the first answer first. Empty where nothing
    /// would be.
    pub answers: Vec<String>,
}

/// What an answer is worth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// It is the whole rest of the line.
    pub is_exact: bool,
    /// Its characters, if the developer of a rehearsal would take it without fixing it.
    pub right_chars: usize,
}

impl Record {
    /// Compares an answer with what the author wrote. Marks that the editor has closed need not be
    /// in it, if the line ends with them. An answer that was not given is worth nothing.
    pub fn outcome(&self, answer: usize) -> Outcome {
        let offer = self.answers.get(answer).map_or("", |offer| offer.trim_end());
        let rest = self.rest.trim_end();
        let before_marks = rest.strip_suffix(&*self.closers).unwrap_or(rest);
        let is_exact = !offer.is_empty() && (offer == rest || offer == before_marks);
        let is_right = is_exact || is_right(offer, rest);
        Outcome { is_exact, right_chars: if is_right { offer.chars().count() } else { 0 } }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_the_editor_has_closed_need_not_be_in_an_exact_answer() {
        let record = Record {
            key: String::new(),
            repository: String::new(),
            commit: String::new(),
            language: "rust".into(),
            kind: Kind::MidLine,
            line_before: "call(".into(),
            closers: ")".into(),
            rest: "first, second)".into(),
            prompt_tokens: 0,
            seconds: 0.0,
            answers: ["first, second", "first, second)", "second", ""].map(str::to_owned).into(),
        };
        let exact = (0..5).map(|answer| record.outcome(answer).is_exact);
        assert_eq!(exact.collect::<Vec<_>>(), [true, true, false, false, false]);
        assert_eq!(record.outcome(0).right_chars, 13);
        assert_eq!(record.outcome(4), Outcome::default());
    }
}
