//! A stretch of a real file, as somebody types it.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// A stretch of a file as it is typed.
pub struct Trace {
    pub path: PathBuf,
    pub language: &'static str,
    pub text: String,
    /// Byte offset of the cursor before the first key, and after each key.
    pub cursors: Vec<usize>,
    /// The place where the text begins that stands behind the typed stretch.
    end: usize,
}

impl Trace {
    pub fn of(path: &Path, keys: usize) -> Result<Trace> {
        let text = text_of(path)?;
        let language = match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => "rust",
            Some("ts") => "typescript",
            Some("lua") => "lua",
            Some("py") => "python",
            other => bail!("{}: a trace of {other:?} files has no language", path.display()),
        };
        let middle = (text.len() / 2..).find(|&at| text.is_char_boundary(at)).unwrap_or_default();
        let is_code = |line: &str| {
            let line = line.trim();
            !line.is_empty()
                && !["//", "#", "--", "\"\"\"", "*"].iter().any(|c| line.starts_with(c))
        };
        let mut start = middle + text[middle..].find('\n').context("one line is no trace")? + 1;
        while !is_code(text[start..].lines().next().context("no code in the second half")?) {
            start += text[start..].find('\n').context("no code in the second half")? + 1;
        }
        let blanks =
            |at: usize, marks: &[char]| at + text[at..].find(|c| !marks.contains(&c)).unwrap_or(0);
        let mut cursors = vec![blanks(start, &[' ', '\t'])];
        while cursors.len() <= keys {
            let at = cursors[cursors.len() - 1];
            let key = text[at..].chars().next().context("the file ends before the trace")?;
            let mut next = at + key.len_utf8();
            if key == '\n' {
                // The editor inserts the indentation.
                next = blanks(next, &[' ', '\t', '\n']);
            }
            cursors.push(next);
        }
        let last = cursors[keys];
        let end = text[last..].find('\n').map_or(text.len(), |at| last + at);
        let path = std::path::absolute(path)?;
        Ok(Trace { path, language, text, cursors, end })
    }

    pub fn before(&self, key: usize) -> &str {
        &self.text[..self.cursors[key]]
    }

    /// The rest of the line that the user will have typed.
    pub fn truth(&self, key: usize) -> &str {
        self.text[self.cursors[key]..self.end].split('\n').next().unwrap_or_default()
    }

    pub fn after(&self) -> &str {
        &self.text[self.end..]
    }
}

pub fn text_of(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}
