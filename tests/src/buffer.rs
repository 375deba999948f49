//! One open file of an editor: a text with a cursor. Every change is sent to the server.

use rehearsal::client::{Client, Item, TriggerKind};
use rehearsal::document::{Position, Range};

/// The small model continues it by `Thursday, Friday, …`.
pub const WEEK: &str = "// Monday, Tuesday, Wednesday, |\n";

/// Opens a file, and accepts the offer at its cursor.
pub fn accept_one(client: &Client, name: &str, marked: &str) {
    let mut buffer = Buffer::open(client, name, marked);
    let item = buffer.offer();
    buffer.accept(&item);
}

pub struct Buffer<'a> {
    client: &'a Client,
    uri: String,
    text: String,
    /// Byte offset in `text`.
    cursor: usize,
}

impl<'a> Buffer<'a> {
    /// Opens a Rust file; `|` in the text marks the cursor.
    pub fn open(client: &'a Client, name: &str, marked: &str) -> Buffer<'a> {
        let cursor = marked.find('|').expect("a cursor");
        let text = marked.replacen('|', "", 1);
        let uri = format!("file:///project/{name}");
        client.open(&uri, "rust", &text).expect("didOpen is sent");
        Buffer { client, uri, text, cursor }
    }

    pub fn uri(&self) -> &str {
        &self.uri
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The cursor in UTF-16 units.
    pub fn position(&self) -> Position {
        let before = &self.text[..self.cursor];
        let line = before.matches('\n').count() as u32;
        let column = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
        Position { line, character: column as u32 }
    }

    pub fn complete(&self) -> Option<Item> {
        let items = self
            .client
            .inline_completion(&self.uri, self.position(), TriggerKind::Automatic)
            .expect("an answer to inlineCompletion");
        assert!(items.len() <= 1, "one offer at a time: {items:?}");
        items.into_iter().next()
    }

    /// The offers for a user who invokes completion; the first is on screen.
    pub fn ask(&self) -> Vec<Item> {
        self.client
            .inline_completion(&self.uri, self.position(), TriggerKind::Invoked)
            .expect("an answer to inlineCompletion")
    }

    /// An offer that the client has confirmed to show.
    pub fn offer(&self) -> Item {
        let item = self.complete().expect("the model has something to offer here");
        self.client.did_show(&item).expect("didShowCompletion is sent");
        item
    }

    /// Inserts text at the cursor in one change.
    pub fn insert(&mut self, text: &str) {
        let at = self.position();
        self.client
            .change(&self.uri, Some(Range { start: at, end: at }), text)
            .expect("didChange is sent");
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Deletes so many bytes before the cursor in one change.
    pub fn delete_before(&mut self, bytes: usize) {
        let end = self.position();
        self.cursor -= bytes;
        self.text.replace_range(self.cursor..self.cursor + bytes, "");
        let start = self.position();
        self.client.change(&self.uri, Some(Range { start, end }), "").expect("didChange is sent");
    }

    /// Types an opening bracket; the editor inserts the closing one behind the cursor.
    pub fn type_pair(&mut self, pair: &str) {
        self.insert(pair);
        self.cursor -= 1;
    }

    /// Moves the cursor behind this text, which stands there.
    pub fn right(&mut self, over: &str) {
        assert!(self.text[self.cursor..].starts_with(over));
        self.cursor += over.len();
    }

    /// Types text, one change a character.
    pub fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.insert(&c.to_string());
        }
    }

    /// Inserts an offer in one change. It replaces the closing brackets behind the cursor
    /// that its range names.
    pub fn take(&mut self, item: &Item) {
        let at = self.position();
        let range = item.range.unwrap_or(Range { start: at, end: at });
        assert_eq!((range.start, range.end.line), (at, at.line), "{item:?}");
        let replaced = (range.end.character - at.character) as usize;
        self.client.change(&self.uri, Some(range), &item.insert_text).expect("didChange is sent");
        self.text.replace_range(self.cursor..self.cursor + replaced, &item.insert_text);
        self.cursor += item.insert_text.len();
    }

    /// What VS Code does on Tab: the change first, then the command.
    pub fn accept(&mut self, item: &Item) {
        self.take(item);
        self.client.accept(&item.id).expect("hone.accept is answered");
    }
}
