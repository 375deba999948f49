//! Reads a recording of an editor, and the candidates for its next edit that people rated.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

/// A text that replaces some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub range: Range<usize>,
    pub text: String,
}

/// What was changed at once in a document, in bytes of its text before that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub path: String,
    pub before: String,
    pub edit: Vec<Change>,
}

impl Step {
    /// The byte behind the last change, in the text after it.
    pub fn cursor(&self) -> Option<usize> {
        let last = self.edit.last()?;
        let earlier = &self.edit[..self.edit.len() - 1];
        let moved = earlier.iter().fold(last.range.start as isize, |at, change| {
            at + change.text.len() as isize - change.range.len() as isize
        });
        Some(moved.max(0) as usize + last.text.len())
    }

    pub fn after(&self) -> String {
        applied(&self.before, &self.edit)
    }
}

/// What happened in an editor before people were asked what should come next.
#[derive(Debug, PartialEq, Eq)]
pub struct Recording {
    pub steps: Vec<Step>,
    /// The path of the document that was changed last.
    pub last: String,
}

#[derive(Deserialize)]
struct Log {
    log: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Entry {
    #[serde(rename_all = "camelCase")]
    DocumentEncountered {
        id: u64,
        relative_path: String,
    },
    SetContent {
        id: u64,
        content: String,
    },
    Changed {
        id: u64,
        edit: Edit,
    },
    #[serde(other)]
    Other,
}

/// The first and last character of each change in UTF-16 units, and the new text.
type Edit = Vec<(usize, usize, String)>;

impl Recording {
    pub fn read(folder: &Path) -> Result<Recording> {
        let path = folder.join("recording.json");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Recording::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Recording> {
        let Log { log } = serde_json::from_str(text)?;
        let mut documents: HashMap<u64, (String, String)> = HashMap::new();
        let (mut steps, mut last) = (vec![], None);
        for entry in log {
            match entry {
                Entry::DocumentEncountered { id, relative_path } => {
                    let path = relative_path.replace('\\', "/");
                    documents.entry(id).or_default().0 = path;
                }
                Entry::SetContent { id, content } => {
                    let document = documents.entry(id).or_default();
                    document.1.clone_from(&content);
                    steps.push(Step { path: document.0.clone(), before: content, edit: vec![] });
                }
                Entry::Changed { id, edit } => {
                    let (path, text) = documents.get_mut(&id).context("an unknown document")?;
                    let edit = in_bytes(text, edit)?;
                    let step = Step { path: path.clone(), before: text.clone(), edit };
                    *text = step.after();
                    last = Some(path.clone());
                    steps.push(step);
                }
                Entry::Other => {}
            }
        }
        Ok(Recording { steps, last: last.context("nothing was changed")? })
    }

    /// The text of a document in the end.
    fn text(&self, path: &str) -> Option<String> {
        self.steps.iter().rev().find(|step| step.path == path).map(Step::after)
    }

    /// The language as an editor names it. A notebook is recorded as one text, whose cells say in
    /// what language they are.
    pub fn language(&self, path: &str) -> String {
        let ending = path.rsplit('.').next().unwrap_or_default();
        let text = self.text(path).unwrap_or_default();
        let named = text.lines().next().and_then(|line| line.split("[language=").nth(1));
        match (named, ending) {
            (Some(named), _) => named.trim_end_matches(']').to_owned(),
            (None, "ts") => "typescript".into(),
            (None, "tsx") => "typescriptreact".into(),
            (None, "js") => "javascript".into(),
            (None, "py") => "python".into(),
            (None, "rs") => "rust".into(),
            (None, "h") => "cpp".into(),
            (None, ending) => ending.to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Score {
    /// People called it bad.
    Bad,
    /// They called it acceptable.
    Valid,
    /// It is what they wanted next.
    NextEdit,
}

impl Score {
    pub fn name(self) -> &'static str {
        match self {
            Score::NextEdit => "wanted",
            Score::Valid => "acceptable",
            Score::Bad => "bad",
        }
    }
}

/// The candidates that people rated.
#[derive(Debug, Deserialize)]
pub struct Rated {
    edits: Vec<Candidate>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    document_uri: String,
    /// None stands for no edit.
    edit: Option<Edit>,
    score_category: Score,
}

impl Rated {
    pub fn read(folder: &Path) -> Result<Rated> {
        let path = folder.join("scoredEdits.json");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Returns how people rated what leads to this text of a document. Where two candidates lead
    /// there, the worse rating counts.
    pub fn score_of(&self, recording: &Recording, path: &str, text: &str) -> Option<Score> {
        let before = recording.text(path)?;
        let leads_there = |candidate: &&Candidate| {
            let Some(edit) = &candidate.edit else { return false };
            candidate.document_uri.ends_with(path)
                && in_bytes(&before, edit.clone())
                    .is_ok_and(|edit| is_same(&applied(&before, &edit), text))
        };
        self.edits.iter().filter(leads_there).map(|candidate| candidate.score_category).min()
    }
}

/// Returns true if two texts differ in nothing but the sort of their line breaks, which candidates
/// of models have in one way and files in another.
fn is_same(a: &str, b: &str) -> bool {
    a.replace("\r\n", "\n") == b.replace("\r\n", "\n")
}

/// The text with changes whose bytes count in the text before all of them.
fn applied(text: &str, edit: &[Change]) -> String {
    let (mut new, mut at) = (String::new(), 0);
    for change in edit {
        new.push_str(&text[at..change.range.start]);
        new.push_str(&change.text);
        at = change.range.end;
    }
    new.push_str(&text[at..]);
    new
}

fn in_bytes(text: &str, edit: Edit) -> Result<Vec<Change>> {
    let mut changes: Vec<Change> = vec![];
    for (start, end, new) in edit {
        let range = byte(text, start)?..byte(text, end)?;
        if range.start > range.end || changes.last().is_some_and(|c| c.range.end > range.start) {
            bail!("changes overlap or go backwards");
        }
        changes.push(Change { range, text: new });
    }
    Ok(changes)
}

fn byte(text: &str, units: usize) -> Result<usize> {
    let mut left = units;
    for (at, c) in text.char_indices() {
        if left == 0 {
            return Ok(at);
        }
        left = left.checked_sub(c.len_utf16()).context("a place within a character")?;
    }
    if left > 0 {
        bail!("a place behind the end of the text");
    }
    Ok(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made up, in the form of the recordings.
    const RECORDING: &str = r#"{"log": [
        {"kind": "meta", "data": {"kind": "log-origin"}},
        {"kind": "documentEncountered", "id": 3, "time": 1, "relativePath": "src\\shop.ts"},
        {"kind": "setContent", "id": 3, "time": 1, "content": "// 🙂\nlet cart = 1;\nuse(cart);\n"},
        {"kind": "selectionChanged", "id": 3, "selection": [[0, 0]], "time": 2},
        {"kind": "changed", "id": 3, "time": 3, "edit": [[10, 14, "basket"]]}
    ]}"#;

    const RATED: &str = r#"{"edits": [
        {"documentUri": "file:///r/src/shop.ts", "edit": null,
         "scoreCategory": "valid", "score": 0},
        {"documentUri": "file:///r/src/shop.ts", "edit": [[26, 30, "basket"]],
         "scoreCategory": "nextEdit", "score": 0},
        {"documentUri": "file:///r/src/shop.ts", "edit": [[22, 22, "re"]],
         "scoreCategory": "bad", "score": 0},
        {"documentUri": "file:///r/src/shop.ts", "edit": [[0, 0, "\n"]],
         "scoreCategory": "valid", "score": 0}
    ]}"#;

    #[test]
    fn a_recording_is_read_in_bytes_and_its_cursor_follows() {
        let recording = Recording::parse(RECORDING).unwrap();
        assert_eq!((&*recording.last, recording.steps.len()), ("src/shop.ts", 2));
        let step = &recording.steps[1];
        assert_eq!(&step.before[step.edit[0].range.clone()], "cart");
        let after = step.after();
        assert!(after.starts_with("// 🙂\nlet basket = 1;"), "{after}");
        assert_eq!(&after[step.cursor().unwrap()..], " = 1;\nuse(cart);\n");
        assert_eq!(recording.language("src/shop.ts"), "typescript");
        let gone = RECORDING.replace("[10, 14", "[10, 140");
        assert!(Recording::parse(&gone).is_err(), "a place behind the end");
    }

    #[test]
    fn an_offer_is_rated_by_the_text_that_it_leads_to() {
        let recording = Recording::parse(RECORDING).unwrap();
        let rated: Rated = serde_json::from_str(RATED).unwrap();
        let score = |text: &str| rated.score_of(&recording, "src/shop.ts", text).map(Score::name);
        let head = "// 🙂\nlet basket = 1;\n";
        assert_eq!(score(&format!("{head}use(basket);\n")), Some("wanted"));
        assert_eq!(score(&format!("{head}use(basket);\n").replace('\n', "\r\n")), Some("wanted"));
        assert_eq!(score(&format!("{head}reuse(cart);\n")), Some("bad"));
        assert_eq!(score(&format!("\n{head}use(cart);\n")), Some("acceptable"));
        assert_eq!(score(&format!("{head}use(x);\n")), None, "nobody has rated it");
    }
}
