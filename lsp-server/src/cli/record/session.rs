//! A session that is recorded: its entries so far, and the documents that are left out.

use ::feedback::secrets::holds_secret;
use ropey::Rope;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// A longer text is data or generated.
const TEXT_BYTES_MAX: usize = 4 << 20;

/// What is known of a document.
#[derive(Default)]
struct Recorded {
    is_left_out: bool,
    text: Option<Rope>,
    /// All that was put in, one after the other: a secret may be typed and taken back.
    put_in: String,
}

pub struct Session<May> {
    may_record: May,
    documents: HashMap<i64, Recorded>,
    /// The entries, and the document of each that is about one.
    log: Vec<(Option<i64>, String)>,
}

impl<May: Fn(&str, &str) -> bool> Session<May> {
    /// `may_record` says of the address and the language of a document whether it may be recorded.
    pub fn new(may_record: May) -> Session<May> {
        Session { may_record, documents: HashMap::new(), log: Vec::new() }
    }

    /// Takes an entry. One that cannot be read is left out.
    pub fn take(&mut self, line: &str) {
        let Ok(Value::Object(mut entry)) = serde_json::from_str::<Value>(line) else { return };
        let id = entry.get("id").and_then(Value::as_i64);
        match (entry.get("kind").and_then(Value::as_str), id) {
            (Some("header"), _) => self.log.push((None, Value::Object(entry).to_string())),
            (Some("documentEncountered"), Some(id)) => {
                let text = |value: Option<Value>| match value {
                    Some(Value::String(text)) => text,
                    _ => String::new(),
                };
                let address = text(entry.remove("uri"));
                let language = text(entry.remove("languageId"));
                let document = self.documents.entry(id).or_default();
                document.is_left_out |=
                    address.is_empty() || !(self.may_record)(&address, &language);
                self.log.push((Some(id), Value::Object(entry).to_string()));
            }
            (Some(kind), Some(id)) => {
                let Some(document) = self.documents.get_mut(&id) else { return };
                document.follow(kind, &entry);
                if !document.is_left_out {
                    self.log.push((Some(id), Value::Object(entry).to_string()));
                }
            }
            _ => {}
        }
    }

    /// Returns the entries of the documents that may be recorded, and how many others there are.
    /// There are none if nothing was changed.
    pub fn finish(self) -> (Vec<String>, usize) {
        let is_out = |document: &Recorded| {
            let text = document.text.as_ref().map(Rope::to_string).unwrap_or_default();
            document.is_left_out || holds_secret(&document.put_in) || holds_secret(&text)
        };
        let out: HashMap<i64, bool> =
            self.documents.iter().map(|(id, document)| (*id, is_out(document))).collect();
        let changed = self.documents.iter().any(|(id, one)| !out[id] && !one.put_in.is_empty());
        let left_out = out.values().filter(|is_out| **is_out).count();
        let entries = self.log.into_iter();
        let kept = entries.filter(|(id, _)| id.is_none_or(|id| !out.get(&id).unwrap_or(&true)));
        (if changed { kept.map(|(_, entry)| entry).collect() } else { Vec::new() }, left_out)
    }
}

impl Recorded {
    /// Follows an entry about the document.
    fn follow(&mut self, kind: &str, entry: &serde_json::Map<String, Value>) {
        match kind {
            "setContent" => {
                let text = entry.get("content").and_then(Value::as_str).unwrap_or_default();
                self.is_left_out |= text.len() > TEXT_BYTES_MAX || holds_secret(text);
                self.text = Some(Rope::from_str(text));
            }
            "changed" => {
                let edit = entry.get("edit").map(Vec::<(usize, usize, String)>::deserialize);
                let Some(Ok(edit)) = edit else {
                    self.is_left_out = true;
                    return;
                };
                let is_followed = self.change(edit);
                self.is_left_out |= is_followed.is_none();
            }
            _ => {}
        }
        if self.is_left_out {
            (self.text, self.put_in) = (None, String::new());
        }
    }

    /// Makes changes of the text, whose offsets count UTF-16 units. Returns nothing if they are of
    /// another text, or if a line that they touch holds a secret.
    fn change(&mut self, mut edit: Vec<(usize, usize, String)>) -> Option<()> {
        let text = self.text.as_mut()?;
        edit.sort_by_key(|(start, ..)| std::cmp::Reverse(*start));
        for (start, end, inserted) in edit {
            let from = text.try_utf16_cu_to_char(start).ok()?;
            let to = text.try_utf16_cu_to_char(end).ok().filter(|to| from <= *to)?;
            text.remove(from..to);
            text.insert(from, &inserted);
            // A secret may be completed here and be gone at the end.
            let end = from + inserted.chars().count();
            let lines = text.char_to_line(from)..=text.char_to_line(end);
            let written: String = lines.map(|line| text.line(line).to_string()).collect();
            if holds_secret(&written) {
                return None;
            }
            self.put_in.push_str(&inserted);
        }
        (text.len_bytes() <= TEXT_BYTES_MAX).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEY: &str = "AKIAIOSFODNN7EXAMPLQ";

    fn document(id: i64, address: &str) -> Value {
        json!({"kind": "documentEncountered", "id": id, "relativePath": "a.rs", "uri": address,
               "languageId": "rust", "time": 1})
    }

    fn content(id: i64, text: &str) -> Value {
        json!({"kind": "setContent", "id": id, "content": text, "time": 2})
    }

    fn changed(id: i64, edit: Value) -> Value {
        json!({"kind": "changed", "id": id, "edit": edit, "v": 2, "time": 3})
    }

    fn recorded(entries: &[Value]) -> (Vec<Value>, usize) {
        let mut session = Session::new(|address: &str, _: &str| !address.ends_with(".env"));
        session.take(&json!({"kind": "header", "time": 0}).to_string());
        entries.iter().for_each(|entry| session.take(&entry.to_string()));
        let (log, left_out) = session.finish();
        (log.iter().map(|entry| serde_json::from_str(entry).unwrap()).collect(), left_out)
    }

    #[test]
    fn what_may_be_recorded_is_written_without_its_address() {
        let entries =
            [document(0, "file:///p/a.rs"), content(0, "a🙂b"), changed(0, json!([[3, 4, "c"]]))];
        let (log, left_out) = recorded(&entries);
        assert_eq!((log.len(), left_out), (4, 0));
        assert_eq!(log[1]["relativePath"], "a.rs");
        assert!(log[1].get("uri").is_none() && log[1].get("languageId").is_none());
        assert_eq!(log[2..], entries[1..]);
    }

    #[test]
    fn ignored_files_and_files_that_ever_held_a_secret_are_left_out_as_a_whole() {
        let other =
            [document(0, "file:///p/a.rs"), content(0, ""), changed(0, json!([[0, 0, "x"]]))];
        let typed: Vec<Value> = KEY
            .chars()
            .enumerate()
            .map(|(at, key)| changed(1, json!([[at, at, key.to_string()]])))
            .chain([changed(1, json!([[0, KEY.len(), ""]]))])
            .collect();
        let document = |address| document(1, address);
        for (address, text, edits) in [
            ("file:///p/.env", "", vec![changed(1, json!([[0, 0, "x"]]))]),
            ("file:///p/b.rs", KEY, vec![changed(1, json!([[0, 20, ""]]))]),
            ("file:///p/b.rs", "", typed),
            ("file:///p/b.rs", &KEY[..10], vec![changed(1, json!([[10, 10, &KEY[10..]]]))]),
            (
                "file:///p/b.rs",
                &KEY[..10],
                vec![
                    changed(1, json!([[10, 10, &KEY[10..]]])),
                    changed(1, json!([[0, KEY.len(), ""]])),
                ],
            ),
            ("file:///p/b.rs", "ab", vec![changed(1, json!([[9, 9, "past the end"]]))]),
        ] {
            let mut entries = other.to_vec();
            entries.extend([document(address), content(1, text)]);
            entries.extend(edits);
            let (log, left_out) = recorded(&entries);
            assert_eq!((log.len(), left_out), (4, 1), "{address} {text}");
            assert!(log.iter().all(|entry| entry["id"] != 1), "{log:?}");
        }
    }

    #[test]
    fn a_session_without_a_change_is_none() {
        assert_eq!(recorded(&[document(0, "file:///p/a.rs"), content(0, "x")]).0.len(), 0);
        assert_eq!(recorded(&[json!("x"), json!({"kind": "changed"})]).0.len(), 0);
    }
}
