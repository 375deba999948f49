//! What a home has on disk: every byte, and the text behind token ids.

use models::gguf::Gguf;
use models::vocab::Vocab;
use serde_json::Value;
use std::path::Path;

/// Returns whether any file of a home holds this text. Models are left out.
pub fn on_disk(folder: &Path, text: &str) -> bool {
    let mut found = false;
    visit(folder, &mut |bytes| {
        found |= bytes.windows(text.len()).any(|window| window == text.as_bytes());
    });
    found
}

/// The text in all files of a home. Models are left out.
pub fn all_text(folder: &Path) -> String {
    let mut all = String::new();
    visit(folder, &mut |bytes| all.push_str(&String::from_utf8_lossy(bytes)));
    all
}

fn visit(folder: &Path, file: &mut dyn FnMut(&[u8])) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder of the home")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if !path.ends_with("models") {
                visit(&path, file);
            }
        } else {
            // A socket, or a file that is being removed, cannot be read.
            file(&std::fs::read(&path).unwrap_or_default());
        }
    }
}

/// Turns the token ids in an event into text.
pub struct Decoder(Vocab);

impl Decoder {
    pub fn of(model: &Path) -> Decoder {
        let gguf = Gguf::open(model).expect("a model");
        Decoder(Vocab::from_gguf(&gguf).expect("a vocabulary"))
    }

    /// Every list of token ids in an event, each on a line of its own.
    pub fn text(&self, event: &Value) -> String {
        let mut text = String::new();
        self.append(event, &mut text);
        text
    }

    fn append(&self, value: &Value, text: &mut String) {
        match value {
            Value::Array(items) => {
                let ids = items.iter().map(|item| item.as_u64().or_else(|| item["id"].as_u64()));
                let bytes: Vec<u8> =
                    ids.flatten().flat_map(|id| self.0.piece(id as u32).to_vec()).collect();
                text.push_str(&String::from_utf8_lossy(&bytes));
                text.push('\n');
                items.iter().for_each(|item| self.append(item, text));
            }
            Value::Object(fields) => fields.values().for_each(|field| self.append(field, text)),
            _ => {}
        }
    }
}
