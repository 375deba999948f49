//! What is known of a message that cannot be read: its id, its method and the document that it is
//! about. They are found while the bytes pass, so a message of any length costs no memory, and
//! damage behind them does not matter.

use serde_json::Value;

/// The levels of objects and arrays in which something is looked for.
const LEVELS: usize = 4;

/// The longest key, id, method or address that is kept, in bytes.
const TEXT_BYTES: usize = 4096;

#[derive(Debug, Default, Clone, PartialEq)]
pub struct Outline {
    /// A number or a text, if the message is a request.
    pub id: Option<Value>,
    pub method: Option<String>,
    /// The address of the document or notebook.
    pub uri: Option<String>,
}

impl Outline {
    pub fn of(message: &[u8]) -> Outline {
        let mut scanner = Scanner::default();
        scanner.push(message);
        scanner.outline()
    }
}

/// Reads the bytes of a message as they arrive.
#[derive(Debug, Default)]
pub struct Scanner {
    found: Outline,
    /// The objects and arrays around this byte. Only the outermost are in `levels`.
    depth: usize,
    levels: Vec<Level>,
    text: Text,
    /// A number at the place of the id.
    number: Vec<u8>,
}

#[derive(Debug, Default)]
struct Level {
    is_object: bool,
    awaits_key: bool,
    key: String,
}

/// The text between quotes that is being read, as JSON escapes it.
#[derive(Debug, Default)]
struct Text {
    is_open: bool,
    is_escaped: bool,
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Scanner {
    pub fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.text.is_open {
                if self.text.ends_with(byte) {
                    self.take_text();
                }
            } else {
                self.mark(byte);
            }
        }
    }

    pub fn outline(mut self) -> Outline {
        self.take_number();
        self.found
    }

    fn mark(&mut self, byte: u8) {
        match byte {
            b'"' => self.text = Text { is_open: true, ..Text::default() },
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth <= LEVELS {
                    let is_object = byte == b'{';
                    let awaits_key = is_object;
                    self.levels.push(Level { is_object, awaits_key, key: String::new() });
                }
            }
            b'}' | b']' => {
                self.take_number();
                self.depth = self.depth.saturating_sub(1);
                self.levels.truncate(self.depth);
            }
            b',' => {
                self.take_number();
                if let Some(level) = self.level() {
                    level.awaits_key = level.is_object;
                }
            }
            b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'
                if self.is_at(&["id"]) && self.number.len() < TEXT_BYTES =>
            {
                self.number.push(byte);
            }
            _ => {}
        }
    }

    /// The innermost object or array, if it is one of the outermost levels.
    fn level(&mut self) -> Option<&mut Level> {
        if self.depth == self.levels.len() { self.levels.last_mut() } else { None }
    }

    fn is_at(&self, keys: &[&str]) -> bool {
        self.depth == keys.len() && self.levels.iter().map(|level| &level.key).eq(keys)
    }

    fn take_text(&mut self) {
        let text = std::mem::take(&mut self.text).read();
        if let Some(level) = self.level().filter(|level| level.awaits_key) {
            (level.key, level.awaits_key) = (text, false);
        } else if self.is_at(&["id"]) {
            self.found.id = Some(text.into());
        } else if self.is_at(&["method"]) {
            self.found.method = Some(text);
        } else if ["textDocument", "notebookDocument"]
            .iter()
            .any(|document| self.is_at(&["params", document, "uri"]))
        {
            self.found.uri = Some(text);
        }
    }

    fn take_number(&mut self) {
        let number = std::mem::take(&mut self.number);
        if let Ok(id) = serde_json::from_slice::<i64>(&number) {
            self.found.id = Some(id.into());
        }
    }
}

impl Text {
    /// Takes a byte. Returns whether it is the quote at the end.
    fn ends_with(&mut self, byte: u8) -> bool {
        if byte == b'"' && !self.is_escaped {
            self.is_open = false;
            return true;
        }
        self.is_escaped = byte == b'\\' && !self.is_escaped;
        if self.bytes.len() < TEXT_BYTES {
            self.bytes.push(byte);
        } else {
            self.is_cut = true;
        }
        false
    }

    /// The text without its escapes. One that is too long or no text is an empty one, which is the
    /// name of nothing.
    fn read(self) -> String {
        let quoted = [b"\"", self.bytes.as_slice(), b"\""].concat();
        let text = serde_json::from_slice(&quoted).ok().filter(|_| !self.is_cut);
        text.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outline(id: Value, method: &str, uri: &str) -> Outline {
        let id = Some(id).filter(|id| !id.is_null());
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Outline { id, method: text(method), uri: text(uri) }
    }

    #[test]
    fn the_order_of_the_keys_does_not_matter() {
        let text = "{\"uri\": \"no\", \"id\": 8, [\\";
        let document = json!({"uri": "file:///ü", "text": text, "version": 1});
        let opened =
            json!({"method": "textDocument/didOpen", "params": {"textDocument": document}});
        let expected = outline(Value::Null, "textDocument/didOpen", "file:///ü");
        assert_eq!(Outline::of(opened.to_string().as_bytes()), expected);
        let uri_last = r#"{"params":{"textDocument":{"text":"{","uri":"file:\/\/\/\u00fc"},
            "uri":"no","deep":[[{"textDocument":{"uri":"no"}}]]},
            "method":"textDocument\/didOpen"}"#;
        assert_eq!(Outline::of(uri_last.as_bytes()), expected);
    }

    #[test]
    fn requests_have_an_id() {
        for id in [json!(7), json!(-1), json!("a\"b")] {
            let request = json!({"id": id, "method": "m", "params": {"id": 9, "method": "no"}});
            assert_eq!(Outline::of(request.to_string().as_bytes()), outline(id, "m", ""));
        }
        assert_eq!(Outline::of(br#"{"id": 7"#), outline(json!(7), "", ""));
        assert_eq!(Outline::of(br#"{"id": 1.5}"#), outline(Value::Null, "", ""));
        assert_eq!(Outline::of(br#"{"id": [7], "method": "m"}"#), outline(Value::Null, "m", ""));
    }

    #[test]
    fn what_stands_before_damage_is_found() {
        let damaged =
            br#"{"method":"textDocument/didChange","params":{"textDocument":{"uri":"x:a"},"con"#;
        assert_eq!(Outline::of(damaged), outline(Value::Null, "textDocument/didChange", "x:a"));
        for noise in [&b""[..], b"]]]", b"\"", b"{{{{{{{\"a\":", b"\xff\xff{\"method\":\"\xff\"}"] {
            assert_eq!(Outline::of(noise).uri, None);
        }
        let long = format!(r#"{{"method":"{}"}}"#, "m".repeat(TEXT_BYTES + 1));
        assert_eq!(Outline::of(long.as_bytes()).method.unwrap(), "", "it is not kept");
    }
}
