//! The entries of a recording's log, and the texts that they change.

use super::{Event, OtherAnswer, RecordedDocument, Recording, Replacement, What};
use crate::developer::common_ends;
use crate::limits;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::ops::Range;

/// The version of the format. A later one that only adds something has the same.
const DOCUMENT_TYPE: &str = "workspaceRecording@1.";

/// What the entries say so far.
#[derive(Default)]
pub struct Log {
    pub recording: Recording,
    /// The number of entries that were read.
    pub entries: usize,
    /// True if the file has a log.
    pub is_there: bool,
    /// The time of the entry before, by the recording's clock.
    last: Option<u64>,
    at_ms: u64,
    /// The documents by their ids in the log.
    ids: HashMap<i64, usize>,
    /// The text of each document that has one, and the number of its last change.
    texts: Vec<Option<(String, i64)>>,
    /// Texts that may come back.
    stored: HashMap<String, String>,
    /// The bytes of all texts that documents had or that were stored.
    bytes: usize,
}

impl Log {
    /// Takes an entry.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn take(&mut self, number: usize, mut entry: Value) -> Result<(), String> {
        let kind = entry["kind"].as_str().ok_or("it has no `kind`")?.to_owned();
        self.pass(&entry["time"]);
        let what = match kind.as_str() {
            "header" => return known(&entry["documentType"]),
            "meta" | "applicationStart" | "bookmark" => return Ok(()),
            "documentEncountered" => return self.encounter(&entry),
            "event" => ended(&mut entry["data"])?,
            _ => self.in_document(&kind, entry)?,
        };
        if let Some(what) = what {
            self.recording.events.push(Event { entry: number, at_ms: self.at_ms, what });
        }
        Ok(())
    }

    /// Moves the clock. Entries may be written a little later than what they report.
    fn pass(&mut self, time: &Value) {
        let Some(time) = time.as_u64().or_else(|| time.as_f64().map(|time| time as u64)) else {
            return;
        };
        let pause = time.saturating_sub(self.last.unwrap_or(time));
        self.at_ms += pause.min(limits::RECORDED_PAUSE_MS_MAX);
        self.last = Some(time);
    }

    fn encounter(&mut self, entry: &Value) -> Result<(), String> {
        let id = entry["id"].as_i64().ok_or("it has no `id`")?;
        let path = entry["relativePath"].as_str().ok_or("it has no `relativePath`")?;
        let documents = &mut self.recording.documents;
        if documents.len() >= limits::RECORDED_DOCUMENTS_MAX {
            return Err("there are too many documents".into());
        }
        self.ids.insert(id, documents.len());
        documents.push(RecordedDocument { path: path.replace('\\', "/") });
        self.texts.push(None);
        Ok(())
    }

    fn in_document(&mut self, kind: &str, mut entry: Value) -> Result<Option<What>, String> {
        const KINDS: [&str; 9] = [
            "setContent",
            "storeContent",
            "restoreContent",
            "opened",
            "closed",
            "changed",
            "focused",
            "selectionChanged",
            "documentEvent",
        ];
        if !KINDS.contains(&kind) {
            return Err(format!("unknown kind `{kind}`"));
        }
        let id = entry["id"].as_i64().ok_or("it has no `id`")?;
        let document =
            *self.ids.get(&id).ok_or_else(|| format!("document {id} was not encountered"))?;
        let version = entry["v"].as_i64().unwrap_or(0);
        let content_id = entry["contentId"].as_str().unwrap_or_default().to_owned();
        Ok(match kind {
            "setContent" => {
                let Value::String(text) = entry["content"].take() else {
                    return Err("it has no `content`".into());
                };
                Some(self.set(document, text, version)?)
            }
            "storeContent" => {
                if let Some((text, _)) = &self.texts[document] {
                    let text = text.clone();
                    self.keep(text.len())?;
                    self.stored.insert(content_id, text);
                }
                None
            }
            "restoreContent" => {
                let text = self.stored.get(&content_id).cloned();
                let text = text.ok_or_else(|| format!("content `{content_id}` was not stored"))?;
                Some(self.set(document, text, version)?)
            }
            "closed" => Some(What::Closed { document }),
            "focused" => Some(What::Focused { document }),
            "changed" => Some(self.change(document, &entry["edit"], version)?),
            "selectionChanged" => self.select(document, &entry["selection"])?,
            "documentEvent" => self.told(document, &entry["data"]),
            _ => None,
        })
    }

    fn set(&mut self, document: usize, text: String, version: i64) -> Result<What, String> {
        if text.len() > limits::RECORDED_TEXT_BYTES_MAX {
            return Err("its text is too long".into());
        }
        self.keep(text.len())?;
        self.texts[document] = Some((text.clone(), version));
        Ok(What::Text { document, text })
    }

    /// Counts a text that is kept.
    fn keep(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        match self.bytes > limits::RECORDED_TEXTS_BYTES_MAX {
            true => Err("its texts are too long together".into()),
            false => Ok(()),
        }
    }

    fn change(&mut self, document: usize, edit: &Value, version: i64) -> Result<What, String> {
        let Some((text, at)) = &mut self.texts[document] else {
            return Err("its document has no text yet".into());
        };
        let replacements = replacements(text, edit)?;
        for replacement in &replacements {
            text.replace_range(replacement.range.clone(), &replacement.text);
        }
        if text.len() > limits::RECORDED_TEXT_BYTES_MAX {
            return Err("its text becomes too long".into());
        }
        *at = version;
        Ok(What::Changed { document, replacements, reason: None })
    }

    fn select(&self, document: usize, selection: &Value) -> Result<Option<What>, String> {
        let ranges = Vec::<(u64, u64)>::deserialize(selection)
            .map_err(|error| format!("its `selection` is no list of [start, end]: {error}"))?;
        let Some((text, _)) = &self.texts[document] else { return Ok(None) };
        let bytes = |(a, b): (u64, u64)| Ok(byte(text, a.min(b))?..byte(text, a.max(b))?);
        let carets =
            ranges.into_iter().map(bytes).collect::<Result<Vec<Range<usize>>, String>>()?;
        Ok(Some(What::Selected { document, carets }))
    }

    /// Returns what another part of the editor says about a document.
    fn told(&mut self, document: usize, data: &Value) -> Option<What> {
        match data["sourceId"].as_str()? {
            "TextModel.setChangeReason" => {
                let reason = data["source"].as_str()?.to_owned();
                let is_last = self.texts[document].as_ref()?.1 == data["v"].as_i64()?;
                let changes = self.recording.events.iter_mut().rev();
                let last =
                    changes.filter(|event| event.acts_in() == Some(document)).find_map(|event| {
                        match &mut event.what {
                            What::Changed { reason, .. } => Some(reason),
                            _ => None,
                        }
                    });
                if let Some(known) = last.filter(|_| is_last) {
                    *known = Some(reason);
                }
                None
            }
            "InlineCompletions.fetch" if data["kind"] == "start" => {
                Some(What::Asked { document, request: data["requestId"].as_u64()? })
            }
            _ => None,
        }
    }
}

/// Returns what the `edit` of an entry replaces in a text, from the last range to the first.
///
/// # Errors
/// What is wrong with it.
pub fn replacements(text: &str, edit: &Value) -> Result<Vec<Replacement>, String> {
    let edits = Vec::<(u64, u64, String)>::deserialize(edit)
        .map_err(|error| format!("its `edit` is no list of [start, end, text]: {error}"))?;
    let mut replacements = Vec::new();
    for (start, end, inserted) in edits {
        if end < start {
            return Err(format!("a change at {start} ends before it begins"));
        }
        let range = byte(text, start)?..byte(text, end)?;
        let same = common_ends(&text[range.clone()], &inserted);
        replacements.push(Replacement { range, text: inserted, same });
    }
    replacements.sort_by_key(|one| std::cmp::Reverse(one.range.start));
    if replacements.windows(2).any(|pair| pair[1].range.end > pair[0].range.start) {
        return Err("its changes overlap".into());
    }
    Ok(replacements)
}

/// Returns whether the format is one that can be read.
fn known(document_type: &Value) -> Result<(), String> {
    match document_type.as_str() {
        Some(name) if name.starts_with(DOCUMENT_TYPE) => Ok(()),
        Some(name) => Err(format!("`{name}` is no format that is known; {DOCUMENT_TYPE}0 is")),
        None => Ok(()),
    }
}

/// Returns what another tool answered, if the entry is about that.
fn ended(data: &mut Value) -> Result<Option<What>, String> {
    if data["sourceId"] != "InlineCompletions.fetch" || data["kind"] != "end" {
        return Ok(None);
    }
    let Some(request) = data["requestId"].as_u64() else { return Ok(None) };
    if data["error"].is_string() {
        return Ok(Some(What::Answered { request, answers: None }));
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        range: String,
        text: String,
        #[serde(default)]
        is_inline_edit: bool,
    }
    let answers = match data["result"].take() {
        Value::Null => Vec::new(),
        list => Vec::<Answer>::deserialize(list)
            .map_err(|error| format!("its `result` cannot be read: {error}"))?,
    };
    let answers = answers.into_iter().map(|answer| {
        let range = lines_and_columns(&answer.range).ok_or_else(|| {
            format!("`{}` is no range [line,column -> line,column]", answer.range)
        })?;
        Ok(OtherAnswer { range, text: answer.text, is_edit: answer.is_inline_edit })
    });
    let answers = answers.collect::<Result<Vec<_>, String>>()?;
    Ok(Some(What::Answered { request, answers: Some(answers) }))
}

/// Reads `[1,2 -> 3,4]`.
fn lines_and_columns(range: &str) -> Option<[u32; 4]> {
    let inner = range.strip_prefix('[')?.strip_suffix(']')?;
    let numbers = inner.split(" -> ").flat_map(|end| end.split(','));
    let numbers: Vec<u32> = numbers
        .map(|number| number.trim().parse().ok().filter(|n| *n > 0))
        .collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// The byte of an offset that counts UTF-16 units.
fn byte(text: &str, offset: u64) -> Result<usize, String> {
    let mut units = 0;
    for (at, character) in text.char_indices() {
        if units == offset {
            return Ok(at);
        }
        if units > offset {
            return Err(format!("offset {offset} is inside a character"));
        }
        units += character.len_utf16() as u64;
    }
    match units == offset {
        true => Ok(text.len()),
        false if units > offset => Err(format!("offset {offset} is inside a character")),
        false => Err(format!("offset {offset} is past the end, which is {units}")),
    }
}
